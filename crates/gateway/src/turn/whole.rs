//! A reply in one body, folded from its events.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use toolgate_backend::EventStream;
use toolgate_model::reply::Fold;
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{Losses, Reply, ReplyId, TurnError, TurnEvent};

use super::record::TurnRecord;
use super::request::RoutedTurn;
use super::stored_item::IdIssuer;
use super::stored_reply::CompleteReply;
use crate::service::Worker;

/// Writes the reply in the client's dialect, and stores it if the client may continue it.
pub(super) async fn collect(
    worker: &Arc<Worker>,
    routed: RoutedTurn,
    events: EventStream,
    record: &mut TurnRecord,
) -> Result<Bytes, TurnError> {
    let mut losses = Losses::default();
    let folded = fold(events, &mut losses, |event| record.watch_event(event)).await;
    record.add_losses(losses);
    let mut reply = folded?;
    record.set_usage(reply.finish.usage.clone());
    let (context, request) = (routed.context(), routed.request());
    if routed.keeper.is_some() {
        reply.head.id = Some(ReplyId::new(context.fallback_id.as_str()));
    }
    let dialect = routed.turn.dialect;
    let written = dialect.write_reply(&reply, &context);
    record.add_losses(written.losses);
    if let Some(keeper) = routed.keeper {
        let complete =
            CompleteReply { reply, context, written: Some(written.value.clone()), ids: IdIssuer::Gateway };
        keeper.keep(Arc::clone(worker), dialect, request, complete).await;
    }
    Ok(written.value.into())
}

/// One reply from a stream of events.
pub(super) async fn fold(
    mut events: EventStream,
    losses: &mut Losses,
    mut watch: impl FnMut(&TurnEvent),
) -> Result<Reply, TurnError> {
    let mut normalizer = StopReasonNormalizer::new();
    let mut fold = Fold::new();
    while let Some(batch) = events.next().await {
        let batch = batch?;
        losses.append(batch.losses);
        for event in batch.events {
            let event = normalizer.event(event);
            watch(&event);
            fold.event(event).map_err(out_of_order)?;
        }
    }
    fold.end().map_err(out_of_order)
}

fn out_of_order(error: toolgate_model::GrammarError) -> TurnError {
    TurnError::upstream("the host's reply has its parts in an impossible order; try again").caused_by(error)
}
