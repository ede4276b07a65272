//! Writes lines for the program: one JSON object each, without a line end. An invalid line would end the program, so all
//! lines are written here.

use serde_json::{Value, json};

use super::line::RequestId;
use super::{PREFIX, SERVER};

/// The settings of a process, sent before its first turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// The system prompt.
    pub system: SystemPrompt,
    /// Names without prefix that a model may use for the client's tools.
    pub aliases: Vec<String>,
    /// The schema that answers must follow.
    pub schema: Option<Value>,
}

/// The system prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SystemPrompt {
    /// The program's default.
    #[default]
    Own,
    /// The default, with this text appended.
    Append(String),
    /// These texts instead of the default; may be empty.
    Replace(Vec<String>),
}

/// The first line of a process.
pub fn initialize(id: &RequestId, opening: &Opening) -> String {
    let mut request = json!({
        "subtype": "initialize",
        "sdkMcpServers": [SERVER],
        // A call waits for the client without a deadline, in the foreground.
        "sdkMcpServerConfigs": { SERVER: { "timeout": MAX_CALL_WAIT_MS, "disableAutoBackground": true } },
    });
    match &opening.system {
        SystemPrompt::Own => {}
        SystemPrompt::Append(text) => request["appendSystemPrompt"] = json!(text),
        SystemPrompt::Replace(parts) if parts.is_empty() => request["systemPrompt"] = json!([""]),
        SystemPrompt::Replace(parts) => request["systemPrompt"] = json!(parts),
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

/// How long the program lets a call wait: the maximum of its timers, 24 days.
pub const MAX_CALL_WAIT_MS: u64 = 2_147_483_647;

/// A user message that the model answers.
pub fn user(uuid: &str, content: &Value) -> String {
    user_line(uuid, content).to_string()
}

/// A user message for the history only. The program confirms it by a result without turns. Wait for it before the next
/// line: the program queues user lines, but not assistant lines.
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
        // Newer versions then use the text unchanged; for older ones see `conversation`.
        "client_composed": true,
        "message": { "role": "user", "content": content },
    })
}

/// An assistant message for the history. Every line needs its own id, or the program merges two messages.
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

/// Responds to a message for a tool server.
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

/// Allows a tool call. Always contains the input: without it, some versions run the tool with empty input.
pub fn allow(id: &RequestId, input: &Value, updates: &[Value], call: Option<&str>) -> String {
    let mut response = json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": updates });
    if let Some(call) = call {
        response["toolUseID"] = json!(call);
    }
    answer(id, &response)
}

/// Denies a tool call.
pub fn deny(id: &RequestId, message: &str, then: AfterDenial) -> String {
    answer(id, &json!({ "behavior": "deny", "message": message, "interrupt": then == AfterDenial::EndTurn }))
}

/// What happens to the turn after a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDenial {
    /// The model gets the denial as a result and continues.
    GoOn,
    /// The turn ends.
    EndTurn,
}

/// Limits a permission update to this session: other destinations are files on the host.
pub fn for_this_session(mut update: Value) -> Value {
    if let Some(update) = update.as_object_mut() {
        update.insert("destination".to_owned(), json!("session"));
    }
    update
}

fn control(id: &RequestId, request: &Value) -> String {
    json!({ "type": "control_request", "request_id": id.as_str(), "request": request }).to_string()
}
