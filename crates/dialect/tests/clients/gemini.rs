//! Gemini signs its calls and refuses a history without the signatures. Clients return a call as id, name and input only.

use serde_json::{Value, json};

use super::{CHAT, MESSAGES, Pair, RESPONSES, blocks_of, chat_reply, chat_stream, items_done};

/// Two calls of one turn, each signed, and a third without a signature.
fn calls() -> Value {
    json!([
        { "id": "functions.weather:0", "type": "function", "function": { "name": "weather", "arguments": "{}" },
          "extra_content": { "google": { "thought_signature": "sig:one+/=" } } },
        { "id": "call_2", "type": "function", "function": { "name": "weather", "arguments": "{}" },
          "extra_content": { "google": { "thought_signature": "two" } } },
        { "id": "call_3", "type": "function", "function": { "name": "weather", "arguments": "{}" } },
    ])
}

fn whole() -> Value {
    chat_reply(json!({ "role": "assistant", "content": "Looking.", "tool_calls": calls() }))
}

fn streamed() -> Vec<Value> {
    let calls = calls();
    let mut deltas = vec![json!({ "content": "Looking." })];
    for (index, call) in calls.as_array().expect("calls").iter().enumerate() {
        let mut call = call.clone();
        call["index"] = json!(index);
        deltas.push(json!({ "tool_calls": [call] }));
    }
    chat_stream(&deltas)
}

/// The host gets the calls as it sent them.
fn check_signatures(pair: Pair, request: &Value) {
    let body = pair.sent(request);
    let messages = body["messages"].as_array().expect("messages");
    let assistant =
        messages.iter().find(|message| message["role"] == "assistant").expect("an assistant message");
    let sent: Vec<&Value> = assistant["tool_calls"]
        .as_array()
        .expect("calls")
        .iter()
        .map(|call| &call["extra_content"])
        .collect();
    assert_eq!(
        json!(sent),
        json!(
            calls().as_array().expect("calls").iter().map(|call| &call["extra_content"]).collect::<Vec<_>>()
        )
    );
    assert_eq!(assistant["content"], "Looking.");
    assert!(!pair.request_losses(request).iter().any(|place| place.starts_with("messages")));
}

#[test]
fn a_signed_call_returns_through_messages() {
    let pair = Pair::new(MESSAGES, CHAT);
    let request =
        |messages: Value| json!({ "model": "gemini-3-pro", "max_tokens": 999, "messages": messages });
    let first = request(json!([{ "role": "user", "content": "weather?" }]));
    let continued = |blocks: &[Value]| {
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        let results: Vec<Value> = calls
            .map(|call| json!({ "type": "tool_result", "tool_use_id": call["id"], "content": "sunny" }))
            .collect();
        request(json!([{ "role": "user", "content": "weather?" }, { "role": "assistant", "content": blocks },
                       { "role": "user", "content": results }]))
    };
    let reply = pair.reply(&first, whole());
    check_signatures(pair, &continued(reply["content"].as_array().expect("content")));
    assert_eq!(pair.reply_losses(&first, whole()), Vec::<String>::new());
    check_signatures(pair, &continued(&blocks_of(&pair.stream(&first, &streamed()))));
}

#[test]
fn a_signed_call_returns_through_responses() {
    let pair = Pair::new(RESPONSES, CHAT);
    let request = |input: Value| json!({ "model": "gemini-3-pro", "store": false, "input": input });
    let first = request(json!("weather?"));
    let continued = |items: &[Value]| {
        let mut input = vec![json!({ "role": "user", "content": "weather?" })];
        input.extend(items.iter().map(|item| match item["type"].as_str() {
            Some("function_call") => json!({ "type": "function_call", "call_id": item["call_id"],
                "name": item["name"], "arguments": item["arguments"] }),
            Some("reasoning") => json!({ "type": "reasoning", "id": item["id"], "summary": item["summary"],
                "encrypted_content": item["encrypted_content"] }),
            _ => item.clone(),
        }));
        let calls = items.iter().filter(|item| item["type"] == "function_call");
        input.extend(calls.map(
            |call| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "sunny" }),
        ));
        request(json!(input))
    };
    let reply = pair.reply(&first, whole());
    check_signatures(pair, &continued(reply["output"].as_array().expect("output")));
    check_signatures(pair, &continued(&items_done(&pair.stream(&first, &streamed()))));
}

#[test]
fn a_signed_call_returns_through_chat() {
    let pair = Pair::new(CHAT, CHAT);
    let request = |messages: Value| json!({ "model": "gemini-3-pro", "messages": messages });
    let first = request(json!([{ "role": "user", "content": "weather?" }]));
    let reply = pair.reply(&first, whole());
    assert_eq!(reply["choices"][0]["message"]["tool_calls"], calls());
    let message = reply["choices"][0]["message"].clone();
    check_signatures(pair, &request(json!([{ "role": "user", "content": "weather?" }, message])));

    let frames = pair.stream(&first, &streamed());
    let mut signatures = vec![Value::Null; 3];
    for call in frames.iter().filter_map(|frame| frame["choices"][0]["delta"]["tool_calls"].get(0)) {
        if let Some(extra) = call.get("extra_content") {
            signatures[usize::try_from(call["index"].as_u64().expect("an index")).expect("small")] =
                extra.clone();
        }
    }
    assert_eq!(
        signatures,
        calls()
            .as_array()
            .expect("calls")
            .iter()
            .map(|call| call["extra_content"].clone())
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_signature_that_follows_its_call_is_kept() {
    let pair = Pair::new(MESSAGES, CHAT);
    let request =
        json!({ "model": "m", "max_tokens": 999, "messages": [{ "role": "user", "content": "hi" }] });
    let frames = chat_stream(&[
        json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function",
                "function": { "name": "weather", "arguments": "{\"a\":" } }] }),
        json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "1}" } }] }),
        json!({ "tool_calls": [{ "index": 0, "extra_content": { "google": { "thought_signature": "late" } } }] }),
    ]);
    let blocks = blocks_of(&pair.stream(&request, &frames));
    assert_eq!(blocks[0]["input"], json!({ "a": 1 }));
    assert_eq!(blocks[1]["signature"], "toolgate:1:openai-chat:thought_signature:call_1:late");
}

#[test]
fn unsigned_calls_of_another_model_get_the_documented_value() {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "weather", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "sunny" });
    let request = |model: &str| {
        json!({ "model": model, "max_tokens": 999, "messages": [
        { "role": "user", "content": "weather?" },
        { "role": "assistant", "content": [call("a"), call("b")] },
        { "role": "user", "content": [result("a"), result("b")] }] })
    };
    let sent = |url, model| {
        Pair::new(MESSAGES, CHAT).at(url).sent(&request(model))["messages"][1]["tool_calls"].clone()
    };
    let calls = sent("generativelanguage.googleapis.com", "gemini-3-pro");
    assert_eq!(calls[0]["extra_content"]["google"]["thought_signature"], "skip_thought_signature_validator");
    assert_eq!(calls[1].get("extra_content"), None);
    assert_eq!(sent("api.groq.com", "llama-4")[0].get("extra_content"), None);
}
