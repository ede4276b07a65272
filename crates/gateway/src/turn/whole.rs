//! A reply in one piece, folded from its events.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use toolgate_backend::EventStream;
use toolgate_dialect::ReplyContext;
use toolgate_dialect::openai_chat::merge_choices;
use toolgate_model::reply::Fold;
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{Reply, ReplyId, TurnError};

use super::keep::Said;
use super::prepare::Asked;
use super::record::TurnRecord;
use super::samples::{self, Opened, event_streams};
use crate::service::Worker;

/// Writes the reply in the client's dialect, and keeps it where that was asked for.
pub(super) async fn collect(
    worker: &Arc<Worker>,
    asked: Asked,
    opened: Opened,
    record: &mut TurnRecord,
) -> Result<Bytes, TurnError> {
    let context = asked.context();
    let mut streams = event_streams(opened)?;
    if streams.len() > 1 {
        return join(streams, &asked, &context, record).await;
    }
    let Some(events) = streams.pop() else { return Ok(Bytes::new()) };
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

/// Several answers in one reply.
async fn join(
    streams: Vec<EventStream>,
    asked: &Asked,
    context: &ReplyContext,
    record: &mut TurnRecord,
) -> Result<Bytes, TurnError> {
    let mut written = Vec::with_capacity(streams.len());
    let mut usage = None;
    for events in streams {
        let reply = fold(events, record).await?;
        samples::add(&mut usage, reply.finish.usage.as_ref());
        let choice = asked.api.dialect().write_reply(&reply, context);
        record.lost(choice.losses);
        written.push(choice.value);
    }
    record.read(usage);
    Ok(merge_choices(written).into())
}

/// One reply from a stream of events.
async fn fold(mut events: EventStream, record: &mut TurnRecord) -> Result<Reply, TurnError> {
    let mut settler = StopReasonNormalizer::new();
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
