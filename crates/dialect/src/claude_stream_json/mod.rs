//! Claude Code's protocol as a child process: JSON lines over stdin and stdout. Converts lines, without I/O.
//!
//! ```text
//!  program    ─ Line::read ─▶ stream events, results, control requests
//!  write::*   ─ lines ──────▶ program: initialization, history, user turns, control responses
//!  ToolServer ─ answers the program's MCP messages about the client's tools (A5, E8)
//! ```
//!
//! The program changes weekly, so unknown types, subtypes and fields are ignored (B1). Conversations are in the JSON of
//! the Messages API, which the program uses with its model; callers read and write that JSON with its own dialect.

mod conversation;
mod line;
mod tool_server;
mod tools;
pub mod write;

#[cfg(test)]
mod tests;

pub use conversation::{HistoryLine, OwnSteps, Script, cut_off, script};
pub use line::{Ask, BrokenLine, Line, Outcome, PermissionAsk, RequestId};
pub use tool_server::{HeldCall, ServerAnswer, ToolServer, call_answer, call_failure};
pub use tools::{AgentTools, ServedTool, result_content};

/// The name of the tool server: the model sees a client's tool `f` as `mcp__client__f`.
pub const SERVER: &str = "client";

/// The prefix of every tool of [`SERVER`], as the model sees it.
pub const PREFIX: &str = "mcp__client__";
