//! Checks every request for a model against the types of the vendor whose dialect it is written in.

use serde_json::{Value, json};

use crate::{Received, Schema, Script};

/// The refusal of a request that its vendor's own SDK could not have sent.
///
/// Requests that are no JSON are left to the script: some tests send them on purpose.
pub(crate) fn refusal(request: &Received) -> Option<Script> {
    let schema = schema(request)?;
    let mut body: Value = serde_json::from_slice(&request.body).ok()?;
    remove_exceptions(schema, &mut body);
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

/// Members that the vendor's newest request types do not have and that its hosts take. Everything else is refused.
const EXCEPTIONS: &[Exception] = &[
    // Older Claude models take sampling settings; the newest types have none.
    Exception { place: Place::MessagesBody, name: "temperature", accepts: Value::is_number },
    Exception { place: Place::MessagesBody, name: "top_p", accepts: Value::is_number },
    Exception { place: Place::MessagesBody, name: "top_k", accepts: Value::is_number },
    // Most Chat hosts take reasoning back in this field.
    Exception { place: Place::ChatReply, name: "reasoning_content", accepts: Value::is_string },
    // A client sends the SDK's reply object back: OpenAI returns citations with every message, and ignores them here.
    Exception { place: Place::ChatReply, name: "annotations", accepts: Value::is_array },
    // The SDK's `parse` helper adds the parsed output to the message and to the arguments of a call.
    Exception { place: Place::ChatReply, name: "parsed", accepts: is_anything },
    Exception { place: Place::ChatFunction, name: "parsed_arguments", accepts: is_anything },
    Exception { place: Place::ResponsesText, name: "parsed", accepts: is_anything },
    Exception { place: Place::ResponsesCall, name: "parsed_arguments", accepts: is_anything },
    // The SDK's stream helper leaves the position in the stream on a call.
    Exception { place: Place::ChatCall, name: "index", accepts: Value::is_u64 },
    // The SDK writes the absent members of its reply object as `null`.
    Exception { place: Place::ChatReply, name: "refusal", accepts: Value::is_null },
    Exception { place: Place::ChatReply, name: "annotations", accepts: Value::is_null },
    Exception { place: Place::ChatReply, name: "audio", accepts: Value::is_null },
    Exception { place: Place::ChatReply, name: "function_call", accepts: Value::is_null },
    Exception { place: Place::ChatReply, name: "tool_calls", accepts: Value::is_null },
];

/// One member that is not checked.
struct Exception {
    place: Place,
    name: &'static str,
    /// Which values pass.
    accepts: fn(&Value) -> bool,
}

/// An object of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The body of a Messages request.
    MessagesBody,
    /// An assistant message of a Chat request.
    ChatReply,
    /// A call in such a message.
    ChatCall,
    /// The function in such a call.
    ChatFunction,
    /// A function call of a Responses request.
    ResponsesCall,
    /// A text that the model wrote, in a Responses request.
    ResponsesText,
}

fn is_anything(_: &Value) -> bool {
    true
}

/// Removes the members that are not checked.
fn remove_exceptions(schema: Schema, body: &mut Value) {
    if matches!(schema, Schema::MessagesRequest | Schema::MessagesBetaRequest) {
        return remove_at(Place::MessagesBody, body);
    }
    for message in list(body, "messages").filter(|message| message["role"] == "assistant") {
        remove_at(Place::ChatReply, message);
        for call in list(message, "tool_calls") {
            remove_at(Place::ChatCall, call);
            if let Some(function) = call.get_mut("function") {
                remove_at(Place::ChatFunction, function);
            }
        }
    }
    for item in list(body, "input") {
        if item["type"] == "function_call" {
            remove_at(Place::ResponsesCall, item);
        }
        for part in list(item, "content").filter(|part| part["type"] == "output_text") {
            remove_at(Place::ResponsesText, part);
        }
    }
}

fn remove_at(place: Place, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    members.retain(|name, value| {
        let is_excepted = |exception: &Exception| {
            exception.place == place && exception.name == name && (exception.accepts)(value)
        };
        !EXCEPTIONS.iter().any(is_excepted)
    });
}

/// The objects in a list; none if there is no list.
fn list<'v>(object: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Schema, mut body: Value, passes: bool) {
        remove_exceptions(schema, &mut body);
        let outcome = schema.check(&body);
        assert_eq!(outcome.is_ok(), passes, "{body}: {outcome:?}");
    }

    fn chat(message: &Value) -> Value {
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}, message]})
    }

    #[test]
    fn an_sdks_own_reply_may_come_back() {
        let call = json!({
            "id": "c", "type": "function", "index": 0,
            "function": {"name": "f", "arguments": "{}", "parsed_arguments": null},
        });
        let message = json!({
            "role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null,
            "function_call": null, "parsed": {"a": 1}, "reasoning_content": "hm", "tool_calls": [call],
        });
        check(Schema::ChatRequest, chat(&message), true);
        let without_calls =
            json!({"role": "assistant", "content": "a", "tool_calls": null, "annotations": null});
        check(Schema::ChatRequest, chat(&without_calls), true);
        let call = json!({
            "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "parsed_arguments": {},
        });
        let text = json!({"type": "output_text", "text": "a", "annotations": [], "parsed": null});
        let message = json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text],
        });
        check(Schema::ResponsesRequest, json!({"model": "m", "input": [message, call]}), true);
        let sampled = json!({
            "model": "m", "max_tokens": 9, "temperature": 0.5, "messages": [{"role": "user", "content": "hi"}],
        });
        check(Schema::MessagesRequest, sampled, true);
    }

    #[test]
    fn nothing_else_passes() {
        for message in [
            json!({"role": "assistant", "content": "a", "unknown": 1}),
            json!({"role": "assistant", "content": "a", "unknown": null}),
            json!({"role": "assistant", "content": "a", "reasoning_content": null}),
            json!({"role": "assistant", "content": "a", "annotations": "b"}),
            json!({"role": "user", "content": "a", "annotations": []}),
            json!({"role": "user", "content": "a", "refusal": null}),
            json!({"role": "tool", "tool_call_id": "c", "content": "a", "reasoning_content": "hm"}),
            json!({"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "index": "0", "function": {"name": "f", "arguments": "{}"}},
            ]}),
            json!({"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "parsed_arguments": {}, "function": {"name": "f", "arguments": "{}"}},
            ]}),
        ] {
            check(Schema::ChatRequest, chat(&message), false);
        }
        let asked = json!({"type": "input_text", "text": "a", "parsed": null});
        let user = json!({"type": "message", "role": "user", "content": [asked]});
        check(Schema::ResponsesRequest, json!({"model": "m", "input": [user]}), false);
        let sampled = json!({
            "model": "m", "max_tokens": 9, "temperature": "0.5", "messages": [{"role": "user", "content": "hi"}],
        });
        check(Schema::MessagesRequest, sampled, false);
        check(Schema::ChatRequest, json!({"model": "m", "messages": [], "top_k": 1}), false);
    }
}
