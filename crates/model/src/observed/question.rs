//! Questions and their outcomes, as people watch them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{BackendKind, Observation, ObservedSession, SessionName, SessionState, Subject, TurnId};
use crate::approval::{Decision, Outcome, Question, QuestionId, Resolution, ToolUse};
use crate::ids::{CallId, ToolName};

/// What was decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedOutcome {
    /// It may run.
    Allowed,
    /// It may not run.
    Denied,
    /// A given text is the result, and no tool runs.
    Answered,
    /// Nobody answered in time, so it may not run.
    TimedOut,
    /// The agent no longer wants to know.
    Withdrawn,
}

impl From<&Outcome> for DecidedOutcome {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Decided(Decision::Allow { .. }) => Self::Allowed,
            Outcome::Decided(Decision::Deny { .. }) => Self::Denied,
            Outcome::Decided(Decision::Answer { .. }) => Self::Answered,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Withdrawn => Self::Withdrawn,
        }
    }
}

/// The longest name of a session. Agents elsewhere choose theirs.
const MAX_SESSION_NAME_BYTES: usize = 128;

impl Subject {
    /// The session and turn of a tool use. Its call names the sub-agent, if one made it.
    pub fn of_tool_use(tool_use: &ToolUse) -> Self {
        let turn = tool_use.turn.as_deref().and_then(|turn| Uuid::parse_str(turn).ok()).map(TurnId);
        let session = &tool_use.session[..tool_use.session.floor_char_boundary(MAX_SESSION_NAME_BYTES)];
        Self { session: SessionName::new(session), turn, parent: None }
    }
}

impl Observation {
    /// The session of an agent that somebody else runs.
    pub fn external_session(tool_use: &ToolUse) -> Self {
        Self::Session(ObservedSession {
            caller: tool_use.caller.as_str().into(),
            title: None,
            model: tool_use.agent.as_str().into(),
            backend: BackendKind::External,
            state: SessionState::Starting,
        })
    }

    /// A question is asked.
    pub fn asked(question: &Question) -> Self {
        Self::Asked {
            question: question.id.clone(),
            call: call_of(&question.tool_use),
            tool: ToolName::from(question.tool_use.tool.as_str()),
            deadline: question.deadline,
        }
    }

    /// A question has its outcome; `None` if a rule decided and nobody was asked.
    pub fn decided(question: Option<&QuestionId>, tool_use: &ToolUse, resolution: &Resolution) -> Self {
        Self::Decided {
            question: question.cloned(),
            call: call_of(tool_use),
            outcome: DecidedOutcome::from(&resolution.outcome),
            by: resolution.by.clone(),
        }
    }
}

fn call_of(tool_use: &ToolUse) -> Option<CallId> {
    tool_use.call.as_deref().map(CallId::from)
}
