//! Whether an agent may use a built-in tool: one tool use, one decision by the gateway's [`Decider`].

use futures_util::future::BoxFuture;
use toolgate_model::approval::{Decision, ToolUse};

/// Decides about tool uses. It must always decide: treat a question that nobody answers in time as denied.
pub trait Decider: Send + Sync {
    /// Decides about one tool use. Dropping the future withdraws the question.
    fn decide(&self, tool_use: ToolUse) -> BoxFuture<'static, Decision>;
}

/// Denies everything. For gateways where nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Decider for DenyAll {
    fn decide(&self, tool_use: ToolUse) -> BoxFuture<'static, Decision> {
        let tool = tool_use.tool;
        let denied =
            Decision::deny(format!("Permission denied: no rule allows {tool}, and nobody can be asked."));
        Box::pin(std::future::ready(denied))
    }
}
