//! Writes the lines for the program, each one JSON object without a newline. An invalid line would make the program
//! exit, so all lines are built here.

use serde_json::{Value, json};
use toolgate_model::approval::PermissionUpdate;

use super::line::RequestId;
use super::{INSTRUCTIONS_MARK, PREFIX, SERVER};

/// What a process receives once, before its first turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOpening {
    /// The system prompt.
    pub system: SystemPrompt,
    /// Tool names that the model may use without the prefix.
    pub aliases: Vec<String>,
    /// The JSON schema of the answer.
    pub schema: Option<Value>,
}

/// The system prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SystemPrompt {
    /// The program's default prompt.
    #[default]
    Default,
    /// The default prompt with this text appended.
    Append(String),
    /// This text instead of the default prompt; may be empty. The program adds its name, the folder and the date.
    Replace(Vec<String>),
    /// This text alone; may be empty. [`without_program_prompt`](super::without_program_prompt) must remove what the
    /// program adds from each of its model requests.
    Only(Vec<String>),
}

/// The `initialize` request, the first line of a process.
pub fn initialize(id: &RequestId, opening: &AgentOpening) -> String {
    let mut request = json!({
        "subtype": "initialize",
        "sdkMcpServers": [SERVER],
        // A call may wait as long as the client needs, in the foreground.
        "sdkMcpServerConfigs": { SERVER: { "timeout": MAX_CALL_WAIT_MS, "disableAutoBackground": true } },
    });
    match &opening.system {
        SystemPrompt::Default => {}
        SystemPrompt::Append(text) => request["appendSystemPrompt"] = json!(text),
        SystemPrompt::Replace(parts) if parts.is_empty() => request["systemPrompt"] = json!([""]),
        SystemPrompt::Replace(parts) => request["systemPrompt"] = json!(parts),
        SystemPrompt::Only(parts) => {
            request["systemPrompt"] = json!([format!("{INSTRUCTIONS_MARK}{}", parts.join("\n\n"))]);
        }
    }
    if !opening.aliases.is_empty() {
        let routes = opening.aliases.iter().map(|name| (name.clone(), json!(format!("{PREFIX}{name}"))));
        request["toolAliases"] = Value::Object(routes.collect());
    }
    if let Some(schema) = &opening.schema {
        request["jsonSchema"] = schema.clone();
    }
    control(id, &request)
}

/// The longest time a call may wait: the maximum of the program's timers, about 24 days.
pub const MAX_CALL_WAIT_MS: u64 = 2_147_483_647;

/// A user line that the model answers.
pub fn user(uuid: &str, content: &Value) -> String {
    user_line(uuid, content).to_string()
}

/// A user line that only adds to the history. The program confirms it with a result of 0 turns. The next line must wait
/// for that, because user lines are queued and assistant lines are not.
pub fn quiet_user(uuid: &str, content: &Value) -> String {
    let mut line = user_line(uuid, content);
    line["shouldQuery"] = json!(false);
    line.to_string()
}

fn user_line(uuid: &str, content: &Value) -> Value {
    json!({
        "type": "user",
        "session_id": "",
        "parent_tool_use_id": null,
        "uuid": uuid,
        // Newer versions then take the text literally; for older ones see `script`.
        "client_composed": true,
        "message": { "role": "user", "content": content },
    })
}

/// An assistant message of the history. Each needs its own id, or the program merges two messages into one.
pub fn assistant(uuid: &str, model: &str, content: &Value) -> String {
    let id = uuid.replace('-', "");
    json!({
        "type": "assistant",
        "session_id": "",
        "parent_tool_use_id": null,
        "uuid": uuid,
        "message": {
            "id": format!("msg_{id}"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        },
    })
    .to_string()
}

/// Responds to a control request.
pub fn answer(id: &RequestId, response: &Value) -> String {
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": id.as_str(), "response": response },
    })
    .to_string()
}

/// Responds to a message for an MCP server.
pub fn answer_tool_server(id: &RequestId, message: &Value) -> String {
    answer(id, &json!({ "mcp_response": message }))
}

/// Rejects a control request.
pub fn refuse(id: &RequestId, why: &str) -> String {
    json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": id.as_str(), "error": why },
    })
    .to_string()
}

/// Allows a tool to run. The input is always included: without it, some versions run the tool with empty input.
pub fn allow(id: &RequestId, input: &Value, updates: &[PermissionUpdate], call: Option<&str>) -> String {
    let mut response = json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": updates });
    if let Some(call) = call {
        response["toolUseID"] = json!(call);
    }
    answer(id, &response)
}

/// Denies a tool.
pub fn deny(id: &RequestId, message: &str, then: AfterDenial) -> String {
    answer(id, &json!({ "behavior": "deny", "message": message, "interrupt": then == AfterDenial::EndTurn }))
}

/// What happens to the turn after a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDenial {
    /// The model sees the denial and continues.
    Continue,
    /// The turn ends.
    EndTurn,
}

fn control(id: &RequestId, request: &Value) -> String {
    json!({ "type": "control_request", "request_id": id.as_str(), "request": request }).to_string()
}
