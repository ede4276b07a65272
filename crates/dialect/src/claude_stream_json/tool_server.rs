//! The MCP server that offers the client's tools to the program (A5, E8). Its messages travel inside control requests.

use serde_json::{Value, json};

use super::SERVER;
use super::tools::AgentTools;

/// JSON-RPC: method not found.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: invalid params.
const INVALID_PARAMS: i64 = -32602;
/// The protocol version to answer with if the program names none.
const PROTOCOL: &str = "2025-11-25";

/// Serves the client's tools.
#[derive(Clone, Debug, Default)]
pub struct ToolServer {
    list: Value,
}

/// The server's answer to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAnswer {
    /// An immediate answer.
    Now(Value),
    /// A call that the client will answer.
    Held(HeldCall),
}

/// A call that waits for the client.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldCall {
    /// The JSON-RPC id of the response.
    rpc_id: Value,
    /// The `tool_use` id in the model's message.
    pub call: String,
}

impl ToolServer {
    /// Serves these tools.
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
                    Some(call) => ServerAnswer::Held(HeldCall {
                        rpc_id: rpc.unwrap_or_default(),
                        call: call.to_owned(),
                    }),
                    None => failure(rpc, INVALID_PARAMS, "params._meta[\"claudecode/toolUseId\"] is missing"),
                };
            }
            // Notifications get a response too: the program waits for one.
            method if method == "ping" || method.starts_with("notifications/") => json!({}),
            method => {
                return failure(rpc, METHOD_NOT_FOUND, &format!("method not found: {method}"));
            }
        };
        ServerAnswer::Now(json!({ "jsonrpc": "2.0", "id": rpc_id(rpc), "result": result }))
    }
}

/// The response to a held call: the result of the client's tool as MCP content.
pub fn call_answer(call: &HeldCall, content: &Value, outcome: toolgate_model::ToolOutcome) -> Value {
    let is_error = outcome == toolgate_model::ToolOutcome::Error;
    json!({ "jsonrpc": "2.0", "id": call.rpc_id, "result": { "content": content, "isError": is_error } })
}

/// The error response to a held call that will not run.
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
