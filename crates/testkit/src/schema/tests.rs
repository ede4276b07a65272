//! The schemas accept what the vendors document and name what they do not know.

use serde_json::{Value, json};

use super::Schema;

fn check(schema: Schema, value: &Value, expected: Result<(), &str>) {
    match (schema.check(value), expected) {
        (Ok(()), Ok(())) => {}
        (Err(complaint), Err(part)) => assert!(complaint.contains(part), "{complaint}"),
        (outcome, _) => panic!("{schema:?} of {value}: {outcome:?}"),
    }
}

#[test]
fn every_schema_is_found() {
    let all = [
        Schema::MessagesRequest,
        Schema::MessagesBetaRequest,
        Schema::MessagesReply,
        Schema::MessagesEvent,
        Schema::ChatRequest,
        Schema::ChatReply,
        Schema::ChatEvent,
        Schema::ResponsesRequest,
        Schema::ResponsesReply,
        Schema::ResponsesEvent,
        Schema::GroqRequest,
        Schema::CerebrasRequest,
        Schema::MistralRequest,
        Schema::TogetherRequest,
    ];
    for schema in all {
        assert!(schema.check(&json!({"nothing": "like this"})).is_err(), "{schema:?}");
    }
}

#[test]
fn a_messages_request_is_checked_down_to_its_blocks() {
    let request = |block: Value| {
        json!({
            "model": "claude-sonnet-4-5", "max_tokens": 10, "stream": true,
            "messages": [{"role": "user", "content": [block]}],
            "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {"title": {"type": "string"}}}}],
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        })
    };
    let checks = [
        (json!({"type": "text", "text": "hi"}), Ok(())),
        (
            json!({"type": "text", "text": "hi", "mood": 1}),
            Err("body.messages[0].content[0].mood: unknown field"),
        ),
        (json!({"type": "text"}), Err("body.messages[0].content[0]: `text` is missing")),
        (json!({"type": "tool_result", "tool_use_id": "a", "content": "x"}), Ok(())),
        (json!({"type": "tool_result", "tool_use_id": 1}), Err("content[0].tool_use_id: 1 is not string")),
    ];
    for (block, expected) in checks {
        check(Schema::MessagesRequest, &request(block), expected);
    }
    let without_limit = json!({"model": "claude-sonnet-4-5", "messages": []});
    check(Schema::MessagesRequest, &without_limit, Err("`max_tokens` is missing"));
}

#[test]
fn a_chat_request_is_checked_down_to_its_parts() {
    let request = |message: Value| json!({"model": "gpt-5", "messages": [message]});
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let checks = [
        (json!({"role": "user", "content": [image]}), Ok(())),
        (
            json!({"role": "assistant", "content": "x", "reasoning_content": "y"}),
            Err("messages[0].reasoning_content"),
        ),
        (json!({"role": "tool", "content": "x"}), Err("messages[0]: `tool_call_id` is missing")),
        (json!({"role": "user", "content": null}), Err("messages[0].content")),
    ];
    for (message, expected) in checks {
        check(Schema::ChatRequest, &request(message), expected);
    }
    let request = json!({"model": "gpt-5", "messages": [], "top_k": 3});
    check(Schema::ChatRequest, &request, Err("body.top_k: unknown field"));
    check(
        Schema::MistralRequest,
        &json!({"model": "m", "messages": [], "user": "u"}),
        Err("body.user: unknown field"),
    );
}

#[test]
fn a_responses_request_is_checked_down_to_its_items() {
    let request = |item: Value| json!({"model": "gpt-5", "input": [item], "store": false});
    let checks = [
        (json!({"role": "user", "content": "hi"}), Ok(())),
        (json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}), Ok(())),
        (json!({"type": "function_call", "call_id": "a", "name": "f"}), Err("`arguments` is missing")),
        (
            json!({"type": "function_call_output", "call_id": "a", "output": "x", "is_error": true}),
            Err("input[0].is_error: unknown field"),
        ),
        (json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}), Ok(())),
    ];
    for (item, expected) in checks {
        check(Schema::ResponsesRequest, &request(item), expected);
    }
}
