//! Decides whether an agent may use a tool: first by rules, then by a person, then by a timeout.
//!
//! ```text
//! tool use ─▶ verdict: deny ▶ ask ▶ allow, on parsed commands, paths and hosts ─▶ decision
//!                └─ ask, uncertain or not covered ─▶ inbox: waits for an answer ─▶ decision
//!                                                         └─ timeout: its own outcome, never a refusal (C4)
//! ```
//!
//! Rules look at what an agent asks to do, not at what programs do. They are not a sandbox.

mod answer;
mod command_line;
mod effect;
mod folder;
mod glob;
mod grants;
mod inbox;
mod message;
mod path;
mod pattern;
mod rule;
mod rules;
#[cfg(test)]
mod tests;
mod verdict;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolgate_backend::Decider;
use toolgate_model::approval::{Decision, ToolUse};

pub(crate) use answer::{Answer, AnswerError, Answered, CODEX};
pub(crate) use folder::Folder;
pub(crate) use grants::{NewRule, RuleRefused, ScopeName};
pub use inbox::MAX_WAITING;
pub(crate) use inbox::{Conclusion, Inbox, InboxWorker};
pub use rule::{Rule, RuleAction, RuleError, RuleOrigin};
pub use rules::{Rules, Ruling, Workdir};
pub use webhook::WebhookConfig;

/// The approval settings.
#[derive(Clone, Debug)]
pub struct ApprovalConfig {
    /// How long a question waits for an answer; `None` for ever.
    pub timeout: Option<Duration>,
    /// What happens to a turn whose question nobody answered.
    pub after_timeout: AfterTimeout,
    /// Rules that decide without a person.
    pub rules: Rules,
    /// Receives questions and their outcomes.
    pub webhook: Option<WebhookConfig>,
}

/// What happens to a turn whose question nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTimeout {
    /// It ends: an agent that goes on asks for the same thing again.
    EndTurn,
    /// The model sees why the tool did not run, and continues.
    Continue,
}

impl Default for ApprovalConfig {
    /// No rules, and ten minutes for a person to answer.
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_mins(10)),
            after_timeout: AfterTimeout::EndTurn,
            rules: Rules::default(),
            webhook: None,
        }
    }
}

/// Decides about the tool uses of one agent.
#[derive(Clone)]
pub(crate) struct Approvals {
    inbox: Arc<Inbox>,
    folder: Folder,
}

impl Approvals {
    /// For an agent that works in this folder, which relative paths start from.
    pub(crate) fn new(inbox: &Arc<Inbox>, folder: &std::path::Path) -> Self {
        Self { inbox: Arc::clone(inbox), folder: Folder::of_own_agent(folder) }
    }
}

impl Decider for Approvals {
    fn decide(&self, tool_use: ToolUse) -> BoxFuture<'static, Decision> {
        Box::pin(Arc::clone(&self.inbox).decide(tool_use, self.folder.clone()))
    }
}
