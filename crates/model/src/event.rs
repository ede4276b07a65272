//! The events of a streamed reply: blocks open, grow and close, one at a time.

use crate::extras::{Extras, Opaque};
use crate::ids::{CallId, ModelName, ReplyId, ToolName};
use crate::message::ReasoningKind;
use crate::seal::Seal;
use crate::tool::CallKind;
use crate::usage::Usage;

/// One event of a reply: `Started (BlockStarted BlockDelta* BlockFinished | Usage)* Finished`.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// The reply starts.
    Started(ReplyHead),
    /// A block opens.
    BlockStarted(BlockStart),
    /// The open block grows.
    BlockDelta(Delta),
    /// The open block is complete.
    BlockFinished(BlockEnd),
    /// Token counts so far; later ones replace earlier ones.
    Usage(Usage),
    /// The reply is complete.
    Finished(Finish),
}

/// What is known at the start of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplyHead {
    /// The host's id for the reply.
    pub id: Option<ReplyId>,
    /// The host's name for the model.
    pub model: Option<ModelName>,
    /// The creation time in seconds since 1970, if the host states it.
    pub created: Option<u64>,
    /// The price and speed that the host chose, if it states it.
    pub service_tier: Option<String>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// The block that opens.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockStart {
    /// Text.
    Text,
    /// A refusal.
    Refusal,
    /// Reasoning, with extras that its dialect needs before the block is complete.
    Reasoning(Extras),
    /// A call, whose arguments follow.
    ToolCall {
        /// Identifies the call in its result.
        id: CallId,
        /// The tool's name.
        name: ToolName,
        /// Whether the input is JSON or free text.
        kind: CallKind,
    },
    /// A complete opaque block: no deltas follow.
    Opaque(Opaque),
}

/// A delta of the open block.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text, in a text, refusal or reasoning block.
    Text(String),
    /// The next paragraph of a reasoning block. Text without one opens a [`ReasoningKind::Full`] paragraph.
    Paragraph(ReasoningKind),
    /// More of a call's input.
    Arguments(String),
}

impl Delta {
    /// The length of its text in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Arguments(text) => text.len(),
            Self::Paragraph(_) => 0,
        }
    }

    /// True if it has no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is known at the end of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockEnd {
    /// The seal of a reasoning block.
    pub seal: Option<Seal>,
    /// Fields of its own dialect that are complete only now (citations, annotations, item ids).
    pub extras: Extras,
}

/// Why the reply ended, and its usage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// The reason.
    pub stop: StopReason,
    /// The stop sequence that ended the reply.
    pub stop_sequence: Option<String>,
    /// The final token counts; `None` if the host sent none.
    pub usage: Option<Usage>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The model finished its answer.
    #[default]
    EndTurn,
    /// The model called tools.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// A stop sequence was produced.
    StopSequence,
    /// A long turn was paused; send it back to continue.
    PauseTurn,
    /// The model refused.
    Refusal,
    /// The host's content filter intervened.
    ContentFilter,
    /// The context window is full.
    ContextWindow,
    /// A reason unknown to this version.
    Other(String),
}
