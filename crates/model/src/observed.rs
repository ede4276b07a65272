//! What people can watch: one stream of events about sessions and turns, for the console, the audit log and tools.
//!
//! ```text
//!  session? turn_started (text_delta | reasoning_delta | call … | usage | losses)* turn_ended
//!  a call:  call_started input_delta* input_complete (asked decided)? running* result?
//! ```
//!
//! The JSON of these types is a public format (`docs/watching.md`): names and meanings never change, and readers ignore
//! fields and types that they do not know. Blocks of one turn may interleave, so every event names its block or call.
//! A client runs its own tools, so the gateway may never see their results.

mod opening;
mod position;
mod question;
mod session;
#[cfg(test)]
mod tests;
mod turn;
mod watch;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::approval::QuestionId;
use crate::ids::{CallId, ToolName};
use crate::message::ToolOutcome;

pub use opening::{MAX_OPENING_BYTES, MAX_TITLE_CHARS, opening_text, title};
pub use position::{Epoch, EventPosition, InvalidPosition};
pub use question::DecidedOutcome;
pub use session::{BackendKind, ObservedSession, SessionState};
pub use turn::{ObservedLoss, TurnEnd, TurnEndKind, TurnStart, UsageCounts, stop_reason};
pub use watch::{ReplyWatcher, new_results};

/// The longest text of a `result` event. The conversation has the whole result.
pub const MAX_RESULT_BYTES: usize = 16 * 1024;

/// One event with its place in the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedEvent {
    /// The position in the stream.
    #[serde(flatten)]
    pub position: EventPosition,
    /// When it happened, in milliseconds since 1970.
    pub at: i64,
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// What happened.
    #[serde(flatten)]
    pub observation: Observation,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The session.
    pub session: SessionName,
    /// The turn; absent for events outside of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The call that started a sub-agent, if the event is a step of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallId>,
}

impl Subject {
    /// A session outside of turns.
    pub fn session(session: SessionName) -> Self {
        Self { session, turn: None, parent: None }
    }

    /// The main conversation of a turn.
    pub fn turn(session: SessionName, turn: Uuid) -> Self {
        Self { session, turn: Some(TurnId(turn)), parent: None }
    }

    /// A sub-agent of the same turn.
    #[must_use]
    pub fn below(&self, parent: Option<&str>) -> Self {
        Self { parent: parent.map(CallId::from), ..self.clone() }
    }
}

/// A session: what `x-session-id` says for sessions of agents, and `SessionName::from_opening` for others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionName(Arc<str>);

impl SessionName {
    /// Takes the name as it is.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A turn: the id in the `request-id` header of its response and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(pub Uuid);

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Observation {
    /// A session appeared, or its description changed.
    Session(ObservedSession),
    /// A turn started.
    TurnStarted(TurnStart),
    /// A turn ended. Every started turn has exactly one end.
    TurnEnded(Box<TurnEnd>),
    /// The model wrote text.
    TextDelta {
        /// The number of the block in its turn (and sub-agent).
        block: u32,
        /// The new text.
        text: String,
    },
    /// The model wrote reasoning.
    ReasoningDelta {
        /// The number of the block in its turn (and sub-agent).
        block: u32,
        /// The new text.
        text: String,
    },
    /// The model starts to write a call.
    CallStarted {
        /// The call's id.
        call: CallId,
        /// The tool's name: the client's own name for its tools.
        tool: ToolName,
        /// Who runs the tool.
        runs_in: RunsIn,
    },
    /// The model wrote a part of a call's input.
    InputDelta {
        /// The call.
        call: CallId,
        /// The new text.
        text: String,
    },
    /// The input is complete: it is the concatenation of all its deltas.
    InputComplete {
        /// The call.
        call: CallId,
    },
    /// Somebody is asked whether the call may run.
    Asked {
        /// The question.
        question: QuestionId,
        /// The call; absent if the program did not name it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The tool's name.
        tool: ToolName,
        /// When it is denied if nobody answers, in milliseconds since 1970; absent if it waits for ever.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<i64>,
    },
    /// It was decided whether the call may run, by a person or by a rule.
    Decided {
        /// The question; absent if nobody was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
        /// The call; absent if the program did not name it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The decision.
        outcome: DecidedOutcome,
        /// Who or what decided: `console`, `api`, `terminal`, `rule: …`.
        by: String,
    },
    /// The tool runs.
    Running {
        /// The call.
        call: CallId,
        /// How long it has been running, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elapsed_ms: Option<u64>,
        /// What it is doing, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The call's result is there.
    Result {
        /// The call.
        call: CallId,
        /// Whether the tool succeeded.
        outcome: CallOutcome,
        /// The beginning of its text, at most [`MAX_RESULT_BYTES`].
        text: String,
        /// The length of the whole text in bytes.
        bytes: usize,
    },
    /// Token counts of the turn so far; later ones replace earlier ones.
    Usage(UsageCounts),
    /// Parts of the request or reply that a translation could not represent.
    Losses {
        /// The losses.
        losses: Vec<ObservedLoss>,
    },
}

impl Observation {
    /// A `result` with its text cut to [`MAX_RESULT_BYTES`].
    pub fn result(call: CallId, outcome: ToolOutcome, mut text: String) -> Self {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(MAX_RESULT_BYTES));
        Self::Result { call, outcome: outcome.into(), text, bytes }
    }

    /// The name of the type, as in the JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::TurnStarted(_) => "turn_started",
            Self::TurnEnded(_) => "turn_ended",
            Self::TextDelta { .. } => "text_delta",
            Self::ReasoningDelta { .. } => "reasoning_delta",
            Self::CallStarted { .. } => "call_started",
            Self::InputDelta { .. } => "input_delta",
            Self::InputComplete { .. } => "input_complete",
            Self::Asked { .. } => "asked",
            Self::Decided { .. } => "decided",
            Self::Running { .. } => "running",
            Self::Result { .. } => "result",
            Self::Usage(_) => "usage",
            Self::Losses { .. } => "losses",
        }
    }
}

/// Who runs a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsIn {
    /// The client, which sends the result with its next request.
    Client,
    /// The agent: a built-in tool.
    Agent,
    /// The gateway: a tool of an MCP server.
    Gateway,
}

/// Whether a tool succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It succeeded.
    Ok,
    /// It failed or was denied.
    Error,
}

impl From<ToolOutcome> for CallOutcome {
    fn from(outcome: ToolOutcome) -> Self {
        match outcome {
            ToolOutcome::Success => Self::Ok,
            ToolOutcome::Error => Self::Error,
        }
    }
}
