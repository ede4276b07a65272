//! A reply as it comes: blocks that open, fill and close, one at a time.

use crate::extras::{Extras, Opaque};
use crate::ids::{CallId, ModelName, ReplyId, ToolName};
use crate::message::{ReasoningKind, Seal};
use crate::tool::CallKind;
use crate::usage::Usage;

/// One step of a reply: `Started (BlockStarted BlockDelta* BlockFinished | Usage)* Finished`.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// The model begins to answer.
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

/// What is known when the model begins to answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplyHead {
    /// The host's id for the reply.
    pub id: Option<ReplyId>,
    /// The model that answers, as the host names it.
    pub model: Option<ModelName>,
    /// When, in seconds since 1970, if the host says so.
    pub created: Option<u64>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// What opens.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockStart {
    /// Prose.
    Text,
    /// Why the model will not answer.
    Refusal,
    /// A thought, with what its own dialect must know of it before it is complete.
    Reasoning(Extras),
    /// A call, whose arguments follow.
    ToolCall {
        /// Ties it to its result.
        id: CallId,
        /// The tool.
        name: ToolName,
        /// Whether the input is JSON or free text.
        kind: CallKind,
    },
    /// A block of one dialect, complete at once: no deltas follow.
    Opaque(Opaque),
}

/// How the open block grows.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text, in a text, refusal or reasoning block.
    Text(String),
    /// A reasoning block begins its next paragraph. The first text opens a [`ReasoningKind::Full`] one by itself.
    Paragraph(ReasoningKind),
    /// More of a call's input.
    Arguments(String),
}

impl Delta {
    /// How many bytes it carries.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Arguments(text) => text.len(),
            Self::Paragraph(_) => 0,
        }
    }

    /// True where it carries no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is known once a block is complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockEnd {
    /// A reasoning block's proof.
    pub seal: Option<Seal>,
    /// Fields of its own dialect, known in full only now (citations, annotations, item ids).
    pub extras: Extras,
}

/// Why the reply ended, and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// Why.
    pub stop: StopReason,
    /// The stop text that was met.
    pub stop_sequence: Option<String>,
    /// The final token counts; `None` where the host gave none.
    pub usage: Option<Usage>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Why a reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The model had said what it wanted.
    #[default]
    EndTurn,
    /// It wants tools run.
    ToolUse,
    /// The output limit was met.
    MaxTokens,
    /// A stop text was met.
    StopSequence,
    /// A long turn paused; send it back to go on.
    PauseTurn,
    /// The model declined.
    Refusal,
    /// The host's filter intervened.
    ContentFilter,
    /// The context window is full.
    ContextWindow,
    /// Something newer.
    Other(String),
}
