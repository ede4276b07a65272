//! The tool server that offers a client's tools to the program (A5, E8): an MCP server whose messages are inside control
//! requests.

use serde_json::{Value, json};

use super::SERVER;
use super::tools::AgentTools;

/// JSON-RPC: method not found.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: invalid parameters.
const INVALID_PARAMS: i64 = -32602;
/// The protocol version for a program that names none.
const PROTOCOL: &str = "2025-11-25";

/// Serves a client's tools.
#[derive(Clone, Debug, Default)]
pub struct ToolServer {
    list: Value,
}

/// The response to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAnswer {
    /// Respond with this message now.
    Now(Value),
    /// Respond when the client sends the result.
    Held(HeldCall),
}

/// A call that waits for the client's result.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldCall {
    /// The JSON-RPC id of the request.
    rpc: Value,
    /// The call's id in the model's message.
    pub call: String,
}

impl ToolServer {
    /// A server with these tools.
    pub fn new(tools: &AgentTools) -> Self {
        let list = tools.served().iter().map(|tool| tool.entry().clone());
        Self { list: Value::Array(list.collect()) }
    }

    /// Handles one message.
    pub fn answer(&self, message: &Value) -> ServerAnswer {
        let rpc = message.get("id").cloned();
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"].as_str().unwrap_or(PROTOCOL),
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": SERVER, "version": "1" },
            }),
            "tools/list" => json!({ "tools": self.list }),
            "tools/call" => {
                return match params["_meta"]["claudecode/toolUseId"].as_str() {
                    Some(call) => {
                        ServerAnswer::Held(HeldCall { rpc: rpc.unwrap_or_default(), call: call.to_owned() })
                    }
                    None => failure(rpc, INVALID_PARAMS, "the call does not say which tool_use it is"),
                };
            }
            // The program waits for a response to notifications too.
            method if method == "ping" || method.starts_with("notifications/") => json!({}),
            method => {
                return failure(rpc, METHOD_NOT_FOUND, &format!("this server has no method `{method}`"));
            }
        };
        ServerAnswer::Now(json!({ "jsonrpc": "2.0", "id": rpc_id(rpc), "result": result }))
    }
}

/// The response to a held call, with the result as MCP content.
pub fn call_answer(call: &HeldCall, content: &Value, outcome: toolgate_model::ToolOutcome) -> Value {
    let is_error = outcome == toolgate_model::ToolOutcome::Error;
    json!({ "jsonrpc": "2.0", "id": call.rpc, "result": { "content": content, "isError": is_error } })
}

/// The response to a held call that will not be run.
pub fn call_failure(call: &HeldCall, why: &str) -> Value {
    let content = json!([{ "type": "text", "text": why }]);
    call_answer(call, &content, toolgate_model::ToolOutcome::Error)
}

fn failure(rpc: Option<Value>, code: i64, why: &str) -> ServerAnswer {
    let error = json!({ "code": code, "message": why });
    ServerAnswer::Now(json!({ "jsonrpc": "2.0", "id": rpc_id(rpc), "error": error }))
}

fn rpc_id(rpc: Option<Value>) -> Value {
    rpc.unwrap_or_else(|| json!(0))
}
