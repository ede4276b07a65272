//! From a routed turn to the beginning of its answer.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use toolgate_backend::{Answer, AnswerBody};
use toolgate_dialect::registry;
use toolgate_model::{Delivery, DialectId, ErrorKind, TurnError};

use super::record::TurnRecord;
use super::request::RoutedTurn;
use super::stream::OpenStream;
use super::{going_away, samples, whole};
use crate::service::Worker;

/// A turn that waits for its first event.
pub(super) type Start = BoxFuture<'static, Result<Answer, TurnError>>;

/// A reply that is ready to be sent.
pub(super) enum Reply {
    Whole(Bytes),
    Stream(Box<OpenStream>),
}

/// Starts the turn and waits for its first event. A stream whose first event takes long begins without it, so that the
/// client sees pings.
pub(super) async fn answer(
    worker: &Arc<Worker>,
    mut routed: RoutedTurn,
    record: &mut TurnRecord,
) -> Result<Reply, TurnError> {
    let mut start = start(&routed)?;
    let Some(answer) = unless_stopping(worker, first_event(worker, &routed, &mut start)).await? else {
        return Ok(Reply::Stream(OpenStream::starting(worker, routed, start)));
    };
    let mut answer = answer?;
    record.set_answer(&mut answer);
    record.watch_answer(&answer, &routed);
    match (routed.turn.delivery, answer.body) {
        (Delivery::Stream(_), body) => Ok(Reply::Stream(OpenStream::answered(worker, routed, body))),
        (Delivery::Whole, AnswerBody::Whole(body)) => {
            record.set_usage(body.usage);
            if record.is_watched() {
                watch_whole(routed.turn.dialect.id(), &body.bytes, record);
            }
            if let Some(keeping) = routed.keep_relayed(worker, &answer.upstream, &body.bytes) {
                keeping.await;
            }
            Ok(Reply::Whole(body.bytes))
        }
        (Delivery::Whole, AnswerBody::Events(events)) => {
            let bytes = Box::pin(whole::collect(worker, routed, events, record));
            unless_stopping(worker, bytes).await?.map(Reply::Whole)
        }
        (Delivery::Whole, AnswerBody::Relay(_)) => Err(TurnError::new(
            ErrorKind::Internal,
            "the back end relays a stream for a request that asked for one body; please report this",
        )),
    }
}

/// Reads a relayed body for people who watch. One that cannot be read reaches the client all the same.
fn watch_whole(dialect: DialectId, body: &[u8], record: &mut TurnRecord) {
    let read = registry::find(dialect.name).and_then(|dialect| dialect.upstream.read_reply(body).ok());
    let events = read.map(|reply| reply.value.into_events()).unwrap_or_default();
    for event in &events {
        record.watch_event(event);
    }
}

fn start(routed: &RoutedTurn) -> Result<Start, TurnError> {
    match samples::wanted(routed)? {
        Some(count) => Ok(samples::start(routed, count)),
        None => Ok(routed.route.start(routed.turn.clone())),
    }
}

/// The answer; `None` if a stream should begin without it.
async fn first_event(
    worker: &Worker,
    routed: &RoutedTurn,
    start: &mut Start,
) -> Option<Result<Answer, TurnError>> {
    match routed.turn.delivery {
        Delivery::Whole => Some(start.await),
        // An agent's program waits, so that an error keeps its status.
        Delivery::Stream(_) if routed.is_from_agent => Some(start.await),
        Delivery::Stream(_) => tokio::time::timeout(worker.shared.limits.commit_after, start).await.ok(),
    }
}

/// The output of the future, unless the gateway stops first.
async fn unless_stopping<T>(worker: &Worker, future: impl Future<Output = T>) -> Result<T, TurnError> {
    tokio::select! {
        biased;
        outcome = future => Ok(outcome),
        () = worker.tasks.grace_over().cancelled() => Err(going_away()),
    }
}
