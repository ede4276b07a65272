//! One turn from the request's bytes to the reply's, one file per step:
//!
//! ```text
//!  head.rs     API, caller and headers of the request
//!  request.rs  body ─▶ RoutedTurn: peeked at or parsed, admitted, with a route
//!  answer.rs   RoutedTurn ─▶ the back end's answer (samples.rs wraps it when a client wants several)
//!  reply.rs    answer ─▶ TurnReply: whole.rs or stream.rs give its bytes
//!  record.rs   after the last byte: log line, usage record, metrics
//! ```
//!
//! `stored_reply.rs` keeps replies that a later request may continue, `stored_item.rs` their items, and `complete.rs` adds
//! them to a request that names them. `count.rs` and `compact.rs` are endpoints beside turns.

mod answer;
mod compact;
mod complete;
mod count;
mod head;
mod record;
mod relay_reader;
mod reply;
mod request;
mod samples;
mod stored_item;
mod stored_reply;
mod stream;
mod watched;
mod whole;

use std::sync::Arc;

use bytes::Bytes;
use toolgate_model::{ErrorKind, TurnError};

use self::answer::answer;
use self::record::TurnRecord;
use self::request::route;
use crate::service::Worker;

pub(crate) use self::compact::compact;
pub(crate) use self::count::count_tokens;
pub(crate) use self::head::TurnHead;
pub(crate) use self::reply::{ID_NAMES, TurnBody, TurnReply};
pub(crate) use self::stored_reply::{StoredReply, no_such_response, store_failed};

/// A turn whose head was received. Dropped before it is answered, it records that the client left.
pub(crate) struct OpenTurn {
    worker: Arc<Worker>,
    head: TurnHead,
    /// Boxed, because it moves from step to step until the last byte is sent.
    record: Box<TurnRecord>,
}

impl OpenTurn {
    pub(crate) fn new(worker: &Arc<Worker>, head: TurnHead) -> Self {
        let record = Box::new(TurnRecord::begin(&worker.shared, head.api, &head.caller));
        Self { worker: Arc::clone(worker), head, record }
    }

    /// Answers the turn once its body was received, or could not be.
    pub(crate) async fn answer(self, body: Result<Bytes, TurnError>) -> TurnReply {
        let Self { worker, head, mut record } = self;
        let api = head.api;
        let outcome = async {
            let routed = route(&worker, head, body?, &mut record).await?;
            record.watch(&routed);
            answer(&worker, routed, &mut record).await
        };
        // Boxed, because its state is large and the turn's future is moved.
        match Box::pin(outcome).await {
            Ok(reply) => TurnReply::success(reply, record),
            Err(error) => TurnReply::failure(api, &error, record),
        }
    }
}

/// The error that open replies end with when the gateway stops.
fn going_away() -> TurnError {
    TurnError::new(ErrorKind::Unavailable, "the gateway is shutting down; send the request again in a moment")
}
