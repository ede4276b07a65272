//! Reads a whole reply, and the message that starts a stream.

use toolgate_model::{Block, Fields, Finish, Reply, ReplyHead, ReplyId, StopReason, Translated, TurnError};

use super::content_read::read_output_block;
use super::error;
use super::wire::{MessageHeadIn, UsageIn, extras};
use crate::json;

/// Fields that a stream sends only at its end.
const LATE_FIELDS: [&str; 3] = ["container", "context_management", "stop_details"];

/// Reads a host's reply.
pub(super) fn read(body: &[u8]) -> Result<Translated<Reply>, TurnError> {
    let message: MessageHeadIn = json::read(body).map_err(|unreadable| {
        // Some proxies send errors with status 200.
        if let Some(error) = error::in_reply(body) {
            return error;
        }
        let at = unreadable.path.map_or_else(String::new, |path| format!(" (at {path})"));
        TurnError::upstream(format!("the host's reply is not a message of the Messages API{at}"))
            .caused_by(unreadable.cause)
    })?;
    let (head, blocks, tail) = split(message)?;
    let blocks = blocks.ok_or_else(|| {
        error::in_reply(body).unwrap_or_else(|| TurnError::upstream("the host's reply has no `content`"))
    })?;
    Ok(Translated::exact(Reply { head, blocks, finish: tail.into_finish() }))
}

/// The end of a reply, as far as it is known.
#[derive(Default)]
pub(super) struct ReplyTail {
    pub(super) reason: Option<String>,
    pub(super) sequence: Option<String>,
    pub(super) usage: Option<UsageIn>,
    pub(super) extra: Fields,
}

impl ReplyTail {
    pub(super) fn into_finish(self) -> Finish {
        Finish {
            stop: self.reason.map_or(StopReason::EndTurn, read_stop_reason),
            stop_sequence: self.sequence,
            usage: self.usage.map(UsageIn::into_usage),
            extras: extras(self.extra),
        }
    }
}

/// Splits a message into head, blocks and end. The message in a stream's first frame has no end.
pub(super) fn split(message: MessageHeadIn) -> Result<(ReplyHead, Option<Vec<Block>>, ReplyTail), TurnError> {
    let MessageHeadIn {
        id,
        model,
        content,
        stop_reason,
        stop_sequence,
        usage,
        _kind: _,
        _role: _,
        mut extra,
    } = message;
    let mut late = Fields::new();
    for name in LATE_FIELDS {
        if let Some(value) = extra.shift_remove(name) {
            late.insert(name.to_owned(), value);
        }
    }
    let blocks = content
        .map(|blocks| blocks.into_iter().map(read_output_block).collect::<Result<Vec<_>, _>>())
        .transpose()
        .map_err(|kind| {
            TurnError::upstream(format!(
                "the host's reply contains a {kind} block, which only users may send"
            ))
        })?;
    let head = ReplyHead {
        id: id.map(ReplyId::from),
        model,
        created: None,
        service_tier: None,
        extras: extras(extra),
    };
    Ok((head, blocks, ReplyTail { reason: stop_reason, sequence: stop_sequence, usage, extra: late }))
}

fn read_stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        _ => StopReason::Other(reason),
    }
}
