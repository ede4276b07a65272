//! The model `demo`: a script inside the binary. It greets, calls the offered tools when asked ("call `get_weather` for
//! Paris"), and reports their results. It is for first steps, documentation and tests.

mod arguments;
mod script;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use toolgate_model::{
    BlockEnd, BlockStart, Delta, Finish, ReplyHead, ReplyId, StopReason, TurnError, TurnEvent, TurnRequest,
    Usage, estimate,
};

use self::script::{Action, PlannedCall};
use crate::turn::{Answer, AnswerBody, Backend, Batch, Turn};

/// Token counts are estimated at four bytes per token.
const BYTES_PER_TOKEN: usize = 4;

/// Arguments are streamed in chunks of about this size, like those of real models.
const ARGUMENT_CHUNK_BYTES: usize = 12;

/// The scripted model.
pub(crate) struct Demo {
    name: Arc<str>,
}

impl Demo {
    pub(crate) fn new() -> Self {
        Self { name: Arc::from("demo") }
    }
}

impl Backend for Demo {
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let events = reply_batches(&turn);
        // Yields after each batch, so that it is sent before the next and clients see a stream.
        let paced = stream::iter(events).then(|events| async move {
            tokio::task::yield_now().await;
            Ok(Batch::from(events))
        });
        let answer = Answer::new(Arc::clone(&self.name), AnswerBody::Events(Box::pin(paced)));
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

/// The whole reply, in the batches in which it is sent.
fn reply_batches(turn: &Turn) -> Vec<Vec<TurnEvent>> {
    let request = &turn.request;
    let head = ReplyHead {
        id: Some(ReplyId::new(format!("demo_{}", turn.id.simple()))),
        model: Some(request.model.clone()),
        ..ReplyHead::default()
    };
    let mut batches = vec![vec![TurnEvent::Started(head)]];
    let mut output = 0;
    let mut finish = Finish::default();
    match script::next_action(request) {
        Action::Say(text) => {
            let (text, stop) = apply_limits(request, text);
            output += tokens(&text);
            push_text(&text, &mut batches);
            finish.stop = stop;
        }
        Action::Call(calls) => {
            let prelude = script::announce(&calls);
            output += tokens(&prelude);
            push_text(&prelude, &mut batches);
            for (index, call) in calls.into_iter().enumerate() {
                output += tokens(&call.arguments);
                let id = format!("call_{}_{index}", turn.id.simple());
                batches.push(call_events(id, call));
            }
            finish.stop = StopReason::ToolUse;
        }
    }
    finish.usage = Some(Usage { input: estimate::input_tokens(request), output, ..Usage::default() });
    batches.push(vec![TurnEvent::Finished(finish)]);
    batches
}

fn push_text(text: &str, batches: &mut Vec<Vec<TurnEvent>>) {
    batches.push(vec![TurnEvent::BlockStarted(BlockStart::Text)]);
    for word in text.split_inclusive(' ') {
        batches.push(vec![TurnEvent::BlockDelta(Delta::Text(word.to_owned()))]);
    }
    batches.push(vec![TurnEvent::BlockFinished(BlockEnd::default())]);
}

fn call_events(id: String, call: PlannedCall) -> Vec<TurnEvent> {
    let PlannedCall { name, kind, arguments } = call;
    let mut events = vec![TurnEvent::BlockStarted(BlockStart::ToolCall { id: id.into(), name, kind })];
    let mut rest = arguments.as_str();
    while !rest.is_empty() {
        let (chunk, left) = rest.split_at(rest.ceil_char_boundary(ARGUMENT_CHUNK_BYTES));
        events.push(TurnEvent::BlockDelta(Delta::Arguments(chunk.to_owned())));
        rest = left;
    }
    events.push(TurnEvent::BlockFinished(BlockEnd::default()));
    events
}

/// Applies `max_tokens` and stop sequences.
fn apply_limits(request: &TurnRequest, mut text: String) -> (String, StopReason) {
    let mut stop = StopReason::EndTurn;
    let stops = request
        .sampling
        .stop
        .iter()
        .filter(|stop| !stop.is_empty())
        .filter_map(|stop| text.find(stop.as_str()));
    if let Some(start) = stops.min() {
        text.truncate(start);
        stop = StopReason::StopSequence;
    }
    let max_tokens =
        request.max_output.and_then(|max_tokens| usize::try_from(max_tokens).ok()).unwrap_or(usize::MAX);
    let max_bytes = max_tokens.saturating_mul(BYTES_PER_TOKEN);
    if text.len() > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes));
        stop = StopReason::MaxTokens;
    }
    (text, stop)
}

fn tokens(text: &str) -> u64 {
    u64::try_from(text.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
