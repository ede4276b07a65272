//! From one dialect to the others and back: what differs must have been reported.

use std::sync::Arc;

use toolgate_model::settle::Settler;
use toolgate_model::{Losses, Reply, TurnRequest, pairing, reply};

use super::essence::{self, Said};
use super::explain::unexplained;
use super::{Verdict, context};
use crate::registry::{self, Dialect};

/// The request in the other dialects is accepted there, and says the same up to reported losses.
pub(super) fn request(from: &Dialect, request: &TurnRequest, faults: &mut Verdict) {
    for (name, dialect) in others(from) {
        let written = match dialect.upstream.write_request(request) {
            Ok(written) => written,
            Err(error) => {
                faults.push(format!("request is not written in {name}: {error}"));
                continue;
            }
        };
        match dialect.client.read_request(&written.body) {
            Ok(read) => {
                // A result for no call is told as text of the user.
                let mut mended = request.clone();
                if written.losses.contains("tool result") {
                    pairing::repair(&mut mended.messages, &mut Losses::default());
                }
                let before = essence::of_request(&mended);
                let after = essence::of_written(&read.value, &written.names);
                judge(&format!("request in {name}"), &before, &after, &written.losses, faults);
            }
            Err(error) => faults.push(format!("request in {name} is refused there: {error}")),
        }
    }
}

/// The reply in the other dialects reads back as the same, up to reported losses.
pub(super) fn reply(from: &Dialect, reply: &Reply, request: &Arc<TurnRequest>, faults: &mut Verdict) {
    let reply = settled(reply);
    for (name, dialect) in others(from) {
        let written = dialect.client.write_reply(&reply, &context(request));
        match dialect.upstream.read_reply(&written.value) {
            Ok(read) => {
                let (before, after) = (essence::of_reply(&reply), essence::of_reply(&read.value));
                judge(&format!("reply in {name}"), &before, &after, &written.losses, faults);
            }
            Err(error) => faults.push(format!("reply in {name} is not read there: {error}")),
        }
    }
}

/// The dialects other than this one.
pub(super) fn others(from: &Dialect) -> impl Iterator<Item = &'static (&'static str, Dialect)> {
    let own = from.client.id();
    registry::ALL.iter().filter(move |(_, dialect)| dialect.client.id() != own)
}

/// Differences are faults unless a loss speaks for them.
pub(super) fn judge(what: &str, before: &[Said], after: &[Said], losses: &Losses, faults: &mut Verdict) {
    faults.extend(unexplained(before, after, losses).map(|found| format!("{what} differs: {found}")));
}

/// The reply as the gateway hands it to another dialect.
pub(super) fn settled(reply: &Reply) -> Reply {
    let mut settler = Settler::new();
    let events = reply.clone().into_events().into_iter().map(|event| settler.event(event));
    reply::fold(events).unwrap_or_else(|_| reply.clone())
}
