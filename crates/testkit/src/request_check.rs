//! Checks every request for a model against the types of the vendor whose dialect it is written in.

use serde_json::{Value, json};

use crate::{Received, Schema, Script};

/// The refusal of a request that its vendor's own SDK could not have sent.
///
/// Requests that are no JSON are left to the script: some tests send them on purpose.
pub(crate) fn refusal(request: &Received) -> Option<Script> {
    let schema = schema(request)?;
    let mut body: Value = serde_json::from_slice(&request.body).ok()?;
    if schema == Schema::ChatRequest {
        remove_reasoning(&mut body);
    }
    let complaint = schema.check(&body).err()?;
    let error = json!({"type": "invalid_request_error", "message": format!("strict: {complaint}")});
    Some(Script::json(400, json!({"type": "error", "error": error})))
}

fn schema(request: &Received) -> Option<Schema> {
    let path = request.path.split('?').next().unwrap_or_default();
    let is_beta = request.header("anthropic-beta").is_some();
    let ends = [
        ("/messages", if is_beta { Schema::MessagesBetaRequest } else { Schema::MessagesRequest }),
        ("/chat/completions", Schema::ChatRequest),
        ("/responses", Schema::ResponsesRequest),
    ];
    ends.into_iter().find_map(|(end, schema)| path.ends_with(end).then_some(schema))
}

/// Removes the field in which most hosts other than `OpenAI` take reasoning back.
fn remove_reasoning(body: &mut Value) {
    let messages = body["messages"].as_array_mut().into_iter().flatten();
    for message in messages.filter_map(Value::as_object_mut) {
        message.remove("reasoning_content");
    }
}
