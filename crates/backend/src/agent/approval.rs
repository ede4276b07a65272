//! Whether an agent may use a built-in tool: one request, one decision by the gateway's [`Decider`].

use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

/// A request of an agent to use a built-in tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRequest {
    /// The turn the call belongs to.
    pub turn: Uuid,
    /// The session the turn belongs to.
    pub session: String,
    /// The tool's name.
    pub tool: String,
    /// The call's input.
    pub input: Value,
    /// Permission rule changes that the program proposes.
    pub suggestions: Vec<Value>,
    /// The program's reason for asking.
    pub reason: Option<String>,
}

/// The answer to an [`ApprovalRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The tool may run.
    Allow {
        /// Replaces the call's input.
        input: Option<Value>,
        /// Permission rule changes for the rest of the session. Only explicitly chosen ones, never a copy of the
        /// suggestions.
        updates: Vec<Value>,
    },
    /// The tool may not run.
    Deny {
        /// The reason, shown to the model.
        message: String,
        /// True if the denial also ends the turn.
        interrupt: bool,
    },
}

/// Decides on approval requests. It must always decide: treat a request that nobody answers in time as denied.
pub trait Decider: Send + Sync {
    /// Decides on one request. Dropping the future withdraws the request.
    fn decide(&self, request: ApprovalRequest) -> BoxFuture<'static, Decision>;
}

/// Denies everything. For gateways where nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Decider for DenyAll {
    fn decide(&self, request: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let message = format!("Permission denied: no rule allows {}, and nobody can be asked.", request.tool);
        Box::pin(std::future::ready(Decision::Deny { message, interrupt: false }))
    }
}
