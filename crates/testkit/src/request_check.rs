//! Checks every request for a model against the types of the vendor whose dialect it is written in.

use serde_json::{Value, json};

use crate::{Received, Schema, Script};

/// The refusal of a request that its vendor's own SDK could not have sent.
///
/// Requests that are no JSON are left to the script: some tests send them on purpose.
pub(crate) fn refusal(request: &Received) -> Option<Script> {
    let schema = schema(request)?;
    let mut body: Value = serde_json::from_slice(&request.body).ok()?;
    remove_extensions(schema, &mut body);
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

/// Removes what real hosts take beyond the newest types: the sampling of older Claude models, the field in which most
/// chat hosts take reasoning back, and what an SDK's own reply objects contain when a client sends them back.
fn remove_extensions(schema: Schema, body: &mut Value) {
    let Some(fields) = body.as_object_mut() else { return };
    if matches!(schema, Schema::MessagesRequest | Schema::MessagesBetaRequest) {
        fields.retain(|name, _| !matches!(name.as_str(), "temperature" | "top_p" | "top_k"));
    }
    let messages = fields.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten().filter_map(Value::as_object_mut) {
        message.remove("reasoning_content");
        // The SDK writes absent members of its objects as `null`, and OpenAI takes them.
        message.retain(|_, value| !value.is_null());
        message.remove("annotations");
        message.remove("parsed");
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
            call.remove("index");
            call.get_mut("function")
                .and_then(Value::as_object_mut)
                .map(|call| call.remove("parsed_arguments"));
        }
    }
    let items = fields.get_mut("input").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        item.remove("parsed_arguments");
        let parts = item.get_mut("content").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
            part.remove("parsed");
        }
    }
}
