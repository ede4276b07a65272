//! A reply in one piece, folded from its events.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use toolgate_backend::{AnswerBody, EventStream};
use toolgate_model::reply::Fold;
use toolgate_model::settle::Settler;
use toolgate_model::{ErrorKind, Reply, ReplyId, TurnError};

use super::keep::Said;
use super::prepare::Asked;
use super::record::TurnRecord;
use crate::service::Worker;

/// Writes the reply in the client's dialect, and keeps it where that was asked for.
pub(super) async fn collect(
    worker: &Arc<Worker>,
    asked: Asked,
    body: AnswerBody,
    record: &mut TurnRecord,
) -> Result<Bytes, TurnError> {
    let events = match body {
        AnswerBody::Events(events) => events,
        AnswerBody::Whole(body) => return Ok(body.bytes),
        AnswerBody::Relay(_) => {
            return Err(TurnError::new(
                ErrorKind::Internal,
                "a whole reply was asked for and a stream came; please report this",
            ));
        }
    };
    let context = asked.context();
    let mut reply = fold(events, record).await?;
    record.read(reply.finish.usage.clone());
    if asked.keeper.is_some() {
        reply.head.id = Some(ReplyId::new(context.fallback_id.as_str()));
    }
    let dialect = asked.api.dialect();
    let written = dialect.write_reply(&reply, &context);
    record.lost(written.losses);
    if let Some(keeper) = asked.keeper {
        let said = Said { reply, context, written: Some(written.value.clone()) };
        keeper.keep(Arc::clone(worker), dialect, Arc::clone(&asked.turn.request), said).await;
    }
    Ok(written.value.into())
}

/// One reply from a stream of events.
async fn fold(mut events: EventStream, record: &mut TurnRecord) -> Result<Reply, TurnError> {
    let mut settler = Settler::new();
    let mut fold = Fold::new();
    while let Some(batch) = events.next().await {
        let batch = batch?;
        record.lost(batch.losses);
        for event in batch.events {
            fold.event(settler.event(event)).map_err(out_of_order)?;
        }
    }
    fold.end().map_err(out_of_order)
}

fn out_of_order(error: toolgate_model::GrammarError) -> TurnError {
    TurnError::upstream("the host's reply makes no sense as a whole; try again").caused_by(error)
}
