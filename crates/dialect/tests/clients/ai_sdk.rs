//! The AI SDK returns thinking only with a signature, and of a reasoning item only its summary and encrypted content.

use serde_json::{Value, json};

use super::{CHAT, MESSAGES, Pair, RESPONSES, blocks_of, chat_reply, chat_stream, items_done};

fn call_message() -> Value {
    json!({ "role": "assistant", "content": null, "reasoning_content": "Oslo, then.", "tool_calls": [
        { "id": "call_1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Oslo\"}" } }] })
}

fn call_deltas() -> Vec<Value> {
    vec![
        json!({ "reasoning_content": "Oslo, " }),
        json!({ "reasoning_content": "then." }),
        json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function",
                "function": { "name": "weather", "arguments": "{\"city\":\"Oslo\"}" } }] }),
    ]
}

fn messages_request(messages: Value) -> Value {
    json!({ "model": "m", "max_tokens": 6000, "thinking": { "type": "enabled", "budget_tokens": 2000 },
            "tools": [{ "name": "weather", "input_schema": { "type": "object" } }],
            "tool_choice": { "type": "auto" }, "messages": messages })
}

fn responses_request(input: Value) -> Value {
    json!({ "model": "m", "max_output_tokens": 4000, "store": false, "include": ["reasoning.encrypted_content"],
            "reasoning": { "effort": "low", "summary": "auto" }, "tool_choice": "auto",
            "tools": [{ "type": "function", "name": "weather", "parameters": { "type": "object" } }], "input": input })
}

/// The second Messages request: everything that the SDK keeps of these blocks, then the result.
fn messages_continued(blocks: &[Value]) -> Value {
    let kept: Vec<Value> = blocks
        .iter()
        .filter(|block| block["type"] != "thinking" || block["signature"].as_str().is_some_and(|s| !s.is_empty()))
        .map(|block| match block["type"].as_str() {
            Some("thinking") => json!({ "type": "thinking", "thinking": block["thinking"], "signature": block["signature"] }),
            Some("tool_use") => json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"] }),
            _ => block.clone(),
        })
        .collect();
    let call = blocks.iter().find(|block| block["type"] == "tool_use").expect("a call");
    messages_request(json!([
        { "role": "user", "content": [{ "type": "text", "text": "weather?" }] },
        { "role": "assistant", "content": kept },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": call["id"], "content": "sunny" }] },
    ]))
}

/// The second Responses request: everything that the SDK keeps of these items, then the result.
fn responses_continued(items: &[Value]) -> Value {
    let mut input =
        vec![json!({ "role": "user", "content": [{ "type": "input_text", "text": "weather?" }] })];
    for item in items {
        match item["type"].as_str() {
            Some("reasoning") if item["encrypted_content"].is_string() => input.push(json!({ "type": "reasoning",
                "id": item["id"], "encrypted_content": item["encrypted_content"], "summary": item["summary"] })),
            Some("function_call") => input.push(json!({ "type": "function_call", "call_id": item["call_id"],
                "name": item["name"], "arguments": item["arguments"] })),
            _ => {}
        }
    }
    input.push(json!({ "type": "function_call_output", "call_id": "call_1", "output": "sunny" }));
    responses_request(json!(input))
}

/// The thought and the call in the body that the host gets in the second turn.
fn check_history(body: &Value) {
    let assistant =
        body["messages"].as_array().expect("messages").iter().find(|message| message["role"] == "assistant");
    let assistant = assistant.expect("an assistant message");
    assert_eq!(assistant["reasoning_content"], "Oslo, then.");
    assert_eq!(assistant["tool_calls"][0]["id"], "call_1");
}

#[test]
fn a_chat_hosts_thought_returns_through_messages() {
    let pair = Pair::new(MESSAGES, CHAT).at("api.deepseek.com");
    let request = messages_request(json!([{ "role": "user", "content": "weather?" }]));
    let whole = pair.reply(&request, chat_reply(call_message()));
    check_history(&pair.sent(&messages_continued(whole["content"].as_array().expect("content"))));
    let blocks = blocks_of(&pair.stream(&request, &chat_stream(&call_deltas())));
    check_history(&pair.sent(&messages_continued(&blocks)));
    assert!(
        !pair
            .request_losses(&messages_continued(&blocks))
            .iter()
            .any(|place| place.starts_with("messages[]"))
    );
}

#[test]
fn a_chat_hosts_thought_returns_through_responses() {
    let pair = Pair::new(RESPONSES, CHAT).at("api.deepseek.com");
    let request = responses_request(json!([{ "role": "user", "content": "weather?" }]));
    let whole = pair.reply(&request, chat_reply(call_message()));
    check_history(&pair.sent(&responses_continued(whole["output"].as_array().expect("output"))));
    let items = items_done(&pair.stream(&request, &chat_stream(&call_deltas())));
    check_history(&pair.sent(&responses_continued(&items)));
    assert!(
        !pair
            .request_losses(&responses_continued(&items))
            .iter()
            .any(|place| place.starts_with("messages[]"))
    );
}

#[test]
fn a_requested_summary_holds_the_thought() {
    let pair = Pair::new(RESPONSES, CHAT).at("api.deepseek.com");
    let request = responses_request(json!("weather?"));
    let expect = json!([{ "type": "summary_text", "text": "Oslo, then." }]);
    let whole = pair.reply(&request, chat_reply(call_message()));
    assert_eq!(whole["output"][0]["summary"], expect);
    let frames = pair.stream(&request, &chat_stream(&call_deltas()));
    assert_eq!(items_done(&frames)[0]["summary"], expect);
    let deltas = frames.iter().filter(|frame| frame["type"] == "response.reasoning_summary_text.delta");
    assert_eq!(deltas.count(), 2);
}

#[test]
fn signed_thinking_returns_with_its_text() {
    let pair = Pair::new(RESPONSES, MESSAGES);
    let request = responses_request(json!("weather?"));
    let thinking = json!({ "type": "thinking", "thinking": "Oslo, then.", "signature": "c2ln" });
    let call = json!({ "type": "tool_use", "id": "call_1", "name": "weather", "input": { "city": "Oslo" } });
    let reply = pair.reply(
        &request,
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [thinking, call], "stop_reason": "tool_use", "stop_sequence": null,
                "usage": { "input_tokens": 1, "output_tokens": 1 } }),
    );
    let body = pair.sent(&responses_continued(reply["output"].as_array().expect("output")));
    assert_eq!(body["messages"][1]["content"][0], thinking);
}
