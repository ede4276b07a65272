//! The description and state of a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The description of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedSession {
    /// The owner of the key, or `local`.
    pub caller: Arc<str>,
    /// The first line of the user's first text; absent if it has no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model that the client named; the agent's name if somebody else runs it.
    pub model: Arc<str>,
    /// Which kind of back end answers.
    pub backend: BackendKind,
    /// The state at this moment. Events after this one change it.
    pub state: SessionState,
}

/// Which kind of back end answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    /// Claude Code, run by the gateway.
    Agent,
    /// A text-only model whose tools are written into its prompt.
    Prompted,
    /// A model with tools of its own.
    Native,
    /// An agent that somebody else runs and that only asks for permission here.
    External,
}

/// The state of a session. It follows from the events: `turn_started` → running, `asked` → waiting, the last open
/// question decided → running, `turn_ended` → idle, failed or interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It has no turn yet.
    Starting,
    /// A turn is in progress.
    Running,
    /// A person must decide something.
    Waiting,
    /// The last turn finished. The client may continue it.
    Idle,
    /// The last turn failed.
    Failed,
    /// The last turn was interrupted.
    Interrupted,
}
