//! The start and end of a turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::StopReason;
use crate::loss::{Loss, Losses};
use crate::usage::Usage;

/// The start of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStart {
    /// The model that the client named.
    pub model: Arc<str>,
    /// The dialect of the client: `anthropic-messages`, `openai-chat`, `openai-responses`.
    pub dialect: Arc<str>,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// How it ended.
    pub outcome: TurnEndKind,
    /// The HTTP status that describes the outcome; 499 if the client disconnected.
    pub status: u16,
    /// From the request to the last byte of the reply.
    pub duration_ms: u64,
    /// From the request to the first event of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event_ms: Option<u64>,
    /// Why the reply ended; absent if that was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Token counts and cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageCounts>,
    /// The upstream or agent that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Arc<str>>,
    /// What the translation could not represent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<ObservedLoss>,
    /// How calls of a text-only model were recovered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<String>,
    /// The error of a turn that did not finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEndKind {
    /// The client got its whole reply.
    Finished,
    /// The client got an error.
    Failed,
    /// The client disconnected.
    Interrupted,
}

/// Token counts and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageCounts {
    /// Input tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// How many of the output tokens were reasoning, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// The price in US dollars, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl From<&Usage> for UsageCounts {
    fn from(usage: &Usage) -> Self {
        // Extras are fields of one dialect, and this format has no dialect.
        let Usage { input, cache_read, cache_write, output, reasoning, cost_usd, extras: _ } = usage;
        Self {
            input: *input,
            cache_read: *cache_read,
            cache_write: *cache_write,
            output: *output,
            reasoning: *reasoning,
            cost_usd: *cost_usd,
        }
    }
}

/// Something that a translation could not represent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedLoss {
    /// The path of the field.
    pub place: String,
    /// The reason, for people.
    pub reason: String,
}

impl ObservedLoss {
    /// The losses of a turn, routine ones last.
    pub fn list(losses: &Losses) -> Vec<Self> {
        let copied = |loss: &Loss| Self { place: loss.place.clone(), reason: loss.reason.clone() };
        losses.routine_last().map(copied).collect()
    }
}

/// The name of a stop reason in this format.
pub fn stop_reason(stop: &StopReason) -> String {
    let name = match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::PauseTurn => "pause_turn",
        StopReason::Refusal => "refusal",
        StopReason::ContentFilter => "content_filter",
        StopReason::ContextWindow => "context_window",
        StopReason::Other(other) => other,
    };
    name.to_owned()
}
