//! Translation into the other dialects and back: every difference must be reported as a loss.

use std::sync::Arc;

use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{Losses, Reply, TurnRequest, pairing, reply};

use crate::adaptation::{Host, adapted};
use crate::essence::{self, Statement};
use crate::explain::unexplained;
use crate::{Verdict, context};
use toolgate_dialect::Translation;
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::registry::{self, Dialect};

/// Every other dialect accepts the translated request and reads the same content, up to reported losses.
pub(super) fn request(from: &Dialect, request: &TurnRequest, faults: &mut Verdict) {
    for (name, dialect) in others(from) {
        let mut translation = Translation::new(dialect.upstream);
        let profile = HostFacts::at(dialect.upstream.id(), "").profile(request.model.as_str());
        let written = match translation.request(from.client.id(), request, &request.model, &profile) {
            Ok(written) => written,
            Err(error) => {
                faults.push(format!("writing the request in {name} failed: {error}"));
                continue;
            }
        };
        match dialect.client.read_request(&written.body) {
            Ok(read) => {
                // A result without a call is written as user text.
                let mut repaired = request.clone();
                if written.losses.contains("tool result") {
                    pairing::repair(&mut repaired.messages, &mut Losses::default());
                }
                let host = Host { dialect: dialect.upstream.id(), profile: &profile };
                let before = essence::of_request(&adapted(&repaired, host, &written.losses));
                let after = essence::of_written(&repaired, &read.value, translation.names());
                report_unexplained(&format!("request in {name}"), &before, &after, &written.losses, faults);
            }
            Err(error) => faults.push(format!("reading the request in {name} failed: {error}")),
        }
    }
}

/// Every other dialect reads the translated reply with the same content, up to reported losses.
pub(super) fn reply(from: &Dialect, reply: &Reply, request: &Arc<TurnRequest>, faults: &mut Verdict) {
    let reply = normalized(reply);
    for (name, dialect) in others(from) {
        let written = dialect.client.write_reply(&reply, &context(request));
        match dialect.upstream.read_reply(&written.value) {
            Ok(read) => {
                let (before, after) = (essence::of_reply(&reply), essence::of_reply(&read.value));
                report_unexplained(&format!("reply in {name}"), &before, &after, &written.losses, faults);
            }
            Err(error) => faults.push(format!("reading the reply in {name} failed: {error}")),
        }
    }
}

/// The dialects other than this one.
pub(super) fn others(from: &Dialect) -> impl Iterator<Item = &'static (&'static str, Dialect)> {
    let own = from.client.id();
    registry::ALL.iter().filter(move |(_, dialect)| dialect.client.id() != own)
}

/// Adds a fault for the first difference that no loss explains.
pub(super) fn report_unexplained(
    what: &str,
    before: &[Statement],
    after: &[Statement],
    losses: &Losses,
    faults: &mut Verdict,
) {
    faults.extend(unexplained(before, after, losses).map(|found| format!("{what} differs: {found}")));
}

/// The reply as the gateway passes it to another dialect.
pub(super) fn normalized(reply: &Reply) -> Reply {
    let mut normalizer = StopReasonNormalizer::new();
    let events = reply.clone().into_events().into_iter().map(|event| normalizer.event(event));
    reply::fold(events).unwrap_or_else(|_| reply.clone())
}
