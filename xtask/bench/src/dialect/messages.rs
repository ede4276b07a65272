//! Anthropic Messages.

use serde_json::{Value, json};

use super::{
    ARGUMENTS, INPUT_TOKENS, INSTRUCTIONS, LastBlock, QUESTION, Script, TOOL_NAME, TOOL_TEXT, tool_schema,
};

const CALL_ID: &str = "toolu_bench_1";

pub(super) fn request() -> Value {
    json!({
        "max_tokens": 1024,
        "system": INSTRUCTIONS,
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": [{"name": TOOL_NAME, "description": TOOL_TEXT, "input_schema": tool_schema()}],
    })
}

pub(super) fn whole(script: Script) -> Value {
    let mut content = vec![json!({"type": "text", "text": script.text()})];
    if script.last == LastBlock::ToolCall {
        content
            .push(json!({"type": "tool_use", "id": CALL_ID, "name": TOOL_NAME, "input": {"city": "Paris"}}));
    }
    let mut message = message(&content);
    message["stop_reason"] = json!(stop_reason(script));
    message["usage"]["output_tokens"] = json!(script.words);
    message
}

pub(super) fn events(script: Script) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": message(&[])}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    for piece in script.pieces() {
        let delta = json!({"type": "text_delta", "text": piece});
        events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    if script.last == LastBlock::ToolCall {
        let call = json!({"type": "tool_use", "id": CALL_ID, "name": TOOL_NAME, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": ARGUMENTS});
        events.push(json!({"type": "content_block_start", "index": 1, "content_block": call}));
        events.push(json!({"type": "content_block_delta", "index": 1, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": 1}));
    }
    let end = json!({"stop_reason": stop_reason(script), "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": script.words}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn message(content: &[Value]) -> Value {
    json!({
        "id": "msg_bench", "type": "message", "role": "assistant", "model": "bench", "content": content,
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    })
}

fn stop_reason(script: Script) -> &'static str {
    match script.last {
        LastBlock::Text | LastBlock::WrittenCall(_) => "end_turn",
        LastBlock::ToolCall => "tool_use",
    }
}
