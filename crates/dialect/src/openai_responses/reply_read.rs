//! Reads a whole response, and the parts of one that streams share.

use serde_json::{Value, json};
use toolgate_model::{
    Block, ErrorKind, Extras, Fields, Finish, Losses, Reply, ReplyHead, StopReason, Translated, TurnError,
    Usage,
};

use super::ID;
use super::content_read;
use super::error;
use super::usage;
use super::wire::{self, Item, ResponseBody};

/// Reads a response.
pub(super) fn read(body: &[u8]) -> Result<Translated<Reply>, TurnError> {
    let body: ResponseBody = wire::read_host(body)?;
    if let Some(error) = failure(&body) {
        return Err(error);
    }
    if body.output.is_none() {
        return Err(TurnError::upstream(
            "the host's answer has no `output`: check that its address is the one of a Responses API",
        ));
    }
    let (head, tail) = split(body);
    let ReplyTail { items, status, reason, usage } = tail;
    let blocks: Vec<Block> = items.into_iter().flat_map(content_read::blocks).collect();
    let mut seen = SeenBlocks::default();
    for block in &blocks {
        seen.add(block);
    }
    let finish = finish(status, reason, usage, seen);
    Ok(Translated { value: Reply { head, blocks, finish }, losses: Losses::default() })
}

/// The error of a response that failed.
pub(super) fn failure(body: &ResponseBody) -> Option<TurnError> {
    let failed = body.status.as_deref() == Some("failed") || body.output.is_none();
    match &body.error {
        Some(error) if failed => Some(error::from_value(error, None)),
        None if body.status.as_deref() == Some("failed") => Some(TurnError::new(
            ErrorKind::Upstream,
            "the host says that the response failed and not why: try again",
        )),
        Some(_) | None => None,
    }
}

/// What a response ends with.
pub(super) struct ReplyTail {
    /// What was seen.
    pub(super) items: Vec<Item>,
    /// How it ended.
    pub(super) status: Option<String>,
    /// Why, if it is incomplete.
    pub(super) reason: Option<String>,
    /// What it cost.
    pub(super) usage: Option<Usage>,
}

/// Parts what is known at the start of a response from what is known at its end.
pub(super) fn split(body: ResponseBody) -> (ReplyHead, ReplyTail) {
    let mut extra = body.extra;
    extra.retain(|_, value| !content_read::is_empty_value(value));
    extra.extend(body.error.map(|error| ("error".to_owned(), error)));
    let head = ReplyHead {
        id: body.id.map(Into::into),
        model: body.model.map(Into::into),
        created: body.created_at.and_then(|at| at.as_u64().or_else(|| whole_seconds(at.as_f64()?))),
        // It repeats what the request asked for.
        extras: Extras::marked(ID, extra).all_envelope_fields(),
    };
    let tail = ReplyTail {
        items: body.output.unwrap_or_default(),
        status: body.status,
        reason: body.incomplete_details.and_then(|details| details.reason),
        usage: body.usage.map(usage::read),
    };
    (head, tail)
}

/// Some hosts date their replies in fractions of a second.
fn whole_seconds(at: f64) -> Option<u64> {
    format!("{:.0}", at.trunc()).parse().ok()
}

/// What kinds of blocks were seen: they decide between reasons that the API does not tell apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenBlocks {
    called: bool,
    refused: bool,
}

impl SeenBlocks {
    /// Takes note of a block.
    pub(super) fn add(&mut self, block: &Block) {
        match block {
            Block::ToolCall(_) => self.called = true,
            Block::Refusal(_) => self.refused = true,
            Block::Text(_) | Block::Reasoning(_) | Block::Opaque(_) => {}
        }
    }
}

/// Why a response ended.
pub(super) fn finish(
    status: Option<String>,
    reason: Option<String>,
    usage: Option<Usage>,
    seen: SeenBlocks,
) -> Finish {
    let stop = match (status.as_deref(), reason.as_deref()) {
        (Some("incomplete"), Some("max_output_tokens")) => StopReason::MaxTokens,
        (Some("incomplete"), Some("content_filter")) => StopReason::ContentFilter,
        (Some("incomplete"), reason) => StopReason::Other(reason.unwrap_or("incomplete").to_owned()),
        (Some("completed" | "complete") | None, _) if seen.called => StopReason::ToolUse,
        (Some("completed" | "complete") | None, _) if seen.refused => StopReason::Refusal,
        (Some("completed" | "complete") | None, _) => StopReason::EndTurn,
        (Some(other), _) => StopReason::Other(other.to_owned()),
    };
    let mut extras = Fields::new();
    let told = status_of(&stop);
    if let Some(status) = status.filter(|status| (status.as_str(), reason.as_deref()) != told) {
        extras.insert("status".to_owned(), Value::from(status));
        extras.extend(reason.map(|reason| ("incomplete_details".to_owned(), json!({ "reason": reason }))));
    }
    Finish { stop, stop_sequence: None, usage, extras: Extras::of(ID, extras) }
}

/// The status, and the reason of an incomplete one.
pub(super) fn status_of(stop: &StopReason) -> (&str, Option<&str>) {
    match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => ("incomplete", Some("max_output_tokens")),
        StopReason::ContentFilter => ("incomplete", Some("content_filter")),
        StopReason::Other(status) if ["queued", "in_progress", "cancelled"].contains(&status.as_str()) => {
            (status, None)
        }
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::Other(_) => ("completed", None),
    }
}
