//! Whether the agent may use a built-in tool: one request, one decision, made by whoever the gateway asks.

use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

/// The agent wants to use a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRequest {
    /// The turn it is in.
    pub turn: Uuid,
    /// The session the turn is in.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// What it would do.
    pub input: Value,
    /// Changes of the rules that the program proposes.
    pub suggestions: Vec<Value>,
    /// Why the program asks.
    pub reason: Option<String>,
}

/// What is decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It may.
    Allow {
        /// Another input than the one asked about.
        input: Option<Value>,
        /// Changes of the rules for the rest of the session: those decided on, never simply those proposed.
        updates: Vec<Value>,
    },
    /// It may not.
    Deny {
        /// Why, for the model.
        message: String,
        /// True where the turn is to end with it.
        interrupt: bool,
    },
}

/// Who decides. Must come to a decision: a request that nobody answers in time is a denial.
pub trait Decider: Send + Sync {
    /// Decides. Dropping the future withdraws the request.
    fn decide(&self, request: ApprovalRequest) -> BoxFuture<'static, Decision>;
}

/// Denies everything: for gateways where nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Decider for DenyAll {
    fn decide(&self, request: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let message = format!("No rule allows {} here, and nobody can be asked.", request.tool);
        Box::pin(std::future::ready(Decision::Deny { message, interrupt: false }))
    }
}
