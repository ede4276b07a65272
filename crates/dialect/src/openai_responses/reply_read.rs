//! Reads a whole response, and what whole responses share with streams.

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
    let response: ResponseBody =
        wire::read_host(body).map_err(|unreadable| find_error(body).unwrap_or(unreadable))?;
    if let Some(error) = failure(&response) {
        return Err(error);
    }
    if response.output.is_none() {
        return Err(find_error(body).unwrap_or_else(|| {
            TurnError::upstream(
                "the host's response has no `output`: check the upstream's base_url and dialect",
            )
        }));
    }
    let (head, tail) = split(response);
    let ReplyTail { items, status, reason, usage } = tail;
    let blocks: Vec<Block> = items.into_iter().flat_map(content_read::blocks).collect();
    let mut seen = SeenBlocks::default();
    for block in &blocks {
        seen.add(block);
    }
    let finish = finish(status, reason, usage, seen);
    Ok(Translated { value: Reply { head, blocks, finish }, losses: Losses::default() })
}

/// The error that a host sent in place of a response.
fn find_error(body: &[u8]) -> Option<TurnError> {
    error::find(&serde_json::from_slice(body).ok()?)
}

/// The error of a failed response.
pub(super) fn failure(body: &ResponseBody) -> Option<TurnError> {
    let failed = body.status.as_deref() == Some("failed") || body.output.is_none();
    match &body.error {
        Some(error) if failed => Some(error::from_value(error)),
        None if body.status.as_deref() == Some("failed") => Some(TurnError::new(
            ErrorKind::Upstream,
            "the host reported a failed response without an error: try again",
        )),
        Some(_) | None => None,
    }
}

/// The parts of a response that are known at its end.
pub(super) struct ReplyTail {
    /// The output items.
    pub(super) items: Vec<Item>,
    /// `status`.
    pub(super) status: Option<String>,
    /// The reason if the status is `incomplete`.
    pub(super) reason: Option<String>,
    /// Token counts.
    pub(super) usage: Option<Usage>,
}

/// Splits a response into what is known at its start and at its end.
pub(super) fn split(body: ResponseBody) -> (ReplyHead, ReplyTail) {
    let mut extra = body.extra;
    extra.retain(|_, value| !content_read::is_empty_value(value));
    extra.extend(body.error.map(|error| ("error".to_owned(), error)));
    let head = ReplyHead {
        id: body.id.map(Into::into),
        model: body.model.map(Into::into),
        created: body.created_at.and_then(|at| at.as_u64().or_else(|| whole_seconds(at.as_f64()?))),
        service_tier: extra.get("service_tier").and_then(Value::as_str).map(str::to_owned),
        // The unknown fields repeat the request's settings.
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

/// Some hosts send fractions of a second.
fn whole_seconds(at: f64) -> Option<u64> {
    format!("{:.0}", at.trunc()).parse().ok()
}

/// Which kinds of blocks a reply contains. They decide between stop reasons that the API does not distinguish.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenBlocks {
    call: bool,
    refusal: bool,
}

impl SeenBlocks {
    /// Records the kind of a block.
    pub(super) fn add(&mut self, block: &Block) {
        match block {
            Block::ToolCall(_) => self.call = true,
            Block::Refusal(_) => self.refusal = true,
            Block::Text(_) | Block::Reasoning(_) | Block::Opaque(_) => {}
        }
    }
}

/// Reads why a response ended.
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
        (Some("completed" | "complete") | None, _) if seen.call => StopReason::ToolUse,
        (Some("completed" | "complete") | None, _) if seen.refusal => StopReason::Refusal,
        (Some("completed" | "complete") | None, _) => StopReason::EndTurn,
        (Some(other), _) => StopReason::Other(other.to_owned()),
    };
    let mut extras = Fields::new();
    let written = status_of(&stop);
    if let Some(status) = status.filter(|status| (status.as_str(), reason.as_deref()) != written) {
        extras.insert("status".to_owned(), Value::from(status));
        extras.extend(reason.map(|reason| ("incomplete_details".to_owned(), json!({ "reason": reason }))));
    }
    Finish { stop, stop_sequence: None, usage, extras: Extras::of(ID, extras) }
}

/// The status, and the reason if it is incomplete.
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
