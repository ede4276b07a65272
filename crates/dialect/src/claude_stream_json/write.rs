//! Lines for the program. Each is one JSON object without a line end; one broken line would end the program, so all
//! of them are made here.

use serde_json::{Value, json};

use super::line::RequestId;
use super::{PREFIX, SERVER};

/// What a process is told once, before its first turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opening {
    /// The system prompt.
    pub system: SystemPrompt,
    /// Bare names that a model may use for tools of ours.
    pub aliases: Vec<String>,
    /// The schema an answer must follow.
    pub schema: Option<Value>,
}

/// What the model is told above the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SystemPrompt {
    /// The program's own.
    #[default]
    Default,
    /// The program's own and this after it.
    Append(String),
    /// This instead of the program's own; may be nothing.
    Replace(Vec<String>),
}

/// The first line of a process.
pub fn initialize(id: &RequestId, opening: &Opening) -> String {
    let mut request = json!({
        "subtype": "initialize",
        "sdkMcpServers": [SERVER],
        // A call may wait as long as the client likes, in the foreground.
        "sdkMcpServerConfigs": { SERVER: { "timeout": MAX_CALL_WAIT_MS, "disableAutoBackground": true } },
    });
    match &opening.system {
        SystemPrompt::Default => {}
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

/// The longest a call may wait at the program: the largest time its timers take, 24 days.
pub const MAX_CALL_WAIT_MS: u64 = 2_147_483_647;

/// A user line that the model answers.
pub fn user(uuid: &str, content: &Value) -> String {
    user_line(uuid, content).to_string()
}

/// A user line that only becomes history. The program confirms it by a result without turns, and until then the next
/// line must wait: user lines are queued and assistant lines are not.
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
        // Newer programs then take the text as it is; older ones do so for other reasons, see `conversation`.
        "client_composed": true,
        "message": { "role": "user", "content": content },
    })
}

/// What the assistant said earlier. Every such line has an id of its own, or the program takes two messages for one.
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

/// Answers a request of the program.
pub fn answer(id: &RequestId, response: &Value) -> String {
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": id.as_str(), "response": response },
    })
    .to_string()
}

/// Answers a message to a tool server.
pub fn answer_tool_server(id: &RequestId, message: &Value) -> String {
    answer(id, &json!({ "mcp_response": message }))
}

/// Refuses a request of the program.
pub fn refuse(id: &RequestId, why: &str) -> String {
    json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": id.as_str(), "error": why },
    })
    .to_string()
}

/// Lets a tool run. The input always stands in it: without one, some versions run the tool with nothing.
pub fn allow(id: &RequestId, input: &Value, updates: &[Value], call: Option<&str>) -> String {
    let mut response = json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": updates });
    if let Some(call) = call {
        response["toolUseID"] = json!(call);
    }
    answer(id, &response)
}

/// Keeps a tool from running.
pub fn deny(id: &RequestId, message: &str, then: AfterDenial) -> String {
    answer(id, &json!({ "behavior": "deny", "message": message, "interrupt": then == AfterDenial::EndTurn }))
}

/// What a denial does to the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDenial {
    /// The model hears of it and goes on.
    Continue,
    /// The turn is over.
    EndTurn,
}

/// A permission update for this session only: the program would write the others into files of the host.
pub fn session_scoped(mut update: Value) -> Value {
    if let Some(update) = update.as_object_mut() {
        update.insert("destination".to_owned(), json!("session"));
    }
    update
}

fn control(id: &RequestId, request: &Value) -> String {
    json!({ "type": "control_request", "request_id": id.as_str(), "request": request }).to_string()
}
