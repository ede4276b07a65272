//! From one dialect to the others and back: what differs must have been reported.

use std::sync::Arc;

use toolgate_model::settle::Settler;
use toolgate_model::{Losses, Reply, TurnRequest, reply};

use super::{Verdict, context, essence};
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
                let told = essence::of_request(&read.value);
                judge(
                    &format!("request in {name}"),
                    &essence::of_request(request),
                    &told,
                    &written.losses,
                    faults,
                );
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
                let told = essence::of_reply(&read.value);
                judge(
                    &format!("reply in {name}"),
                    &essence::of_reply(&reply),
                    &told,
                    &written.losses,
                    faults,
                );
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

/// Differences are faults unless a loss was reported.
pub(super) fn judge(what: &str, before: &[String], after: &[String], losses: &Losses, faults: &mut Verdict) {
    // Where the host counted no tokens a dialect may put its estimate.
    let counted = before.iter().any(|line| line.starts_with("tokens "));
    let after: Vec<&String> = after.iter().filter(|line| counted || !line.starts_with("tokens ")).collect();
    if before.iter().eq(after.iter().copied()) || !losses.is_empty() {
        return;
    }
    let gone = before.iter().find(|line| !after.contains(line));
    let new = after.iter().find(|line| !before.contains(*line));
    faults.push(format!("{what} differs and no loss was reported: {gone:.120?} became {new:.120?}"));
}

/// The reply as the gateway hands it to another dialect.
pub(super) fn settled(reply: &Reply) -> Reply {
    let mut settler = Settler::new();
    let events = reply.clone().into_events().into_iter().map(|event| settler.event(event));
    reply::fold(events).unwrap_or_else(|_| reply.clone())
}
