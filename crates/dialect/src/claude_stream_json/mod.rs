//! How Claude Code talks as a child process: JSON lines over its stdin and stdout. Pure: lines in, lines out.
//!
//! ```text
//!  the program ─ Line::read ─▶ stream events, results, questions (control requests)
//!  write::*    ─ lines ──────▶ the program: opening, history, user turns, answers
//!  ToolServer  ─ answers the program's MCP messages about the client's tools (A5, E8)
//! ```
//!
//! The program moves weekly, so every set is open: an unknown type, subtype or field is ignored (B1). Conversations
//! travel as the JSON of the Messages API, which the program speaks with its model; whoever uses this module reads
//! and writes that JSON with the dialect that owns it.

mod line;
mod script;
mod tool_server;
mod tools;
pub mod write;

#[cfg(test)]
mod tests;

pub use line::{ControlRequest, InvalidLine, Line, Outcome, PermissionRequest, RequestId};
pub use script::{HiddenSteps, HistoryLine, Script, interrupted_result, script};
pub use tool_server::{HeldCall, ServerAnswer, ToolServer, call_answer, call_failure};
pub use tools::{AgentTools, ServedTool, result_content};

/// The tool server's name: the model sees a client's tool `f` as `mcp__client__f`.
pub const SERVER: &str = "client";

/// What stands before every tool of [`SERVER`] in the model's sight.
pub const PREFIX: &str = "mcp__client__";
