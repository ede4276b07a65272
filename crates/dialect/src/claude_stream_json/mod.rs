//! The protocol of Claude Code as a child process: JSON lines over stdin and stdout. No I/O: lines in, lines out.
//!
//! ```text
//!  the program ─ AgentLine::read ─▶ stream events, results, control requests
//!  write::*    ─ lines ──────▶ the program: opening, history, user messages, responses
//!  ToolServer  ─ answers the program's MCP messages about the client's tools (A5, E8)
//! ```
//!
//! The program is released weekly, so unknown types, subtypes and fields are ignored (B1). Conversations are Messages
//! API JSON, because the program speaks that API with its model; callers read and write it with the dialect that owns
//! it.

mod line;
mod model_request;
mod progress;
mod script;
mod tool_server;
mod tools;
pub mod write;

#[cfg(test)]
mod tests;

pub use line::{AgentLine, ControlRequest, InvalidLine, PermissionRequest, RequestId, TurnOutcome};
pub use model_request::without_program_prompt;
pub use progress::ToolProgress;
pub use script::{HiddenSteps, HistoryLine, HistoryScript, interrupted_result, script};
pub use tool_server::{HeldCall, ServerAnswer, ToolServer, call_answer, call_failure};
pub use tools::{AgentTools, ServedTool, result_content};

/// The MCP server's name: the model sees a client's tool `f` as `mcp__client__f`.
pub const SERVER: &str = "client";

/// The prefix of every tool name of [`SERVER`] that the model sees.
pub const PREFIX: &str = "mcp__client__";

/// The tool with which the model gives an answer that matches a schema.
const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// Begins the client's instructions in a model request, so that they can be told from the program's own.
const INSTRUCTIONS_MARK: &str = "[instructions]\n";
