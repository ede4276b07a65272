//! Replies of the Messages dialect.

use serde_json::{Value, json};

use super::memory::HostReply;
use crate::Script;

pub(super) fn script(request: &Value, reply: &HostReply) -> Script {
    let blocks = blocks(reply);
    let stop = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    if request["stream"] != true {
        return Script::json(200, message(request, &json!(blocks), &json!(stop)));
    }
    let start = json!({"type": "message_start", "message": message(request, &json!([]), &Value::Null)});
    let mut script = send(Script::sse(), &start);
    for (index, block) in blocks.iter().enumerate() {
        let (empty, deltas) = deltas(block);
        script =
            send(script, &json!({"type": "content_block_start", "index": index, "content_block": empty}));
        for delta in deltas {
            script = send(script, &json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        script = send(script, &json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null, "container": null, "stop_details": null});
    let usage = json!({"output_tokens": 12, "input_tokens": 20});
    let end = send(script, &json!({"type": "message_delta", "delta": delta, "usage": usage}));
    send(end, &json!({"type": "message_stop"}))
}

fn send(script: Script, event: &Value) -> Script {
    script.frame(event["type"].as_str().unwrap_or_default(), event)
}

fn message(request: &Value, content: &Value, stop: &Value) -> Value {
    json!({
        "id": "msg_01strict", "type": "message", "role": "assistant", "model": request["model"], "content": content,
        "container": null, "stop_details": null, "stop_reason": stop, "stop_sequence": null,
        "usage": {
            "input_tokens": 20, "output_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "service_tier": "standard",
        },
    })
}

fn blocks(reply: &HostReply) -> Vec<Value> {
    let thought = reply
        .thought
        .iter()
        .map(|thought| json!({"type": "thinking", "thinking": thought.text, "signature": thought.seal}));
    let text = reply.text.iter().map(|text| json!({"type": "text", "text": text}));
    let calls = reply
        .calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
    thought.chain(text).chain(calls).collect()
}

/// The block as it starts, and what a stream adds to it.
fn deltas(block: &Value) -> (Value, Vec<Value>) {
    match block["type"].as_str().unwrap_or_default() {
        "thinking" => (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": block["thinking"]}),
                json!({"type": "signature_delta", "signature": block["signature"]}),
            ],
        ),
        "text" => {
            (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": block["text"]})])
        }
        _ => {
            let arguments = block["input"].to_string();
            let (first, rest) = arguments.split_at(arguments.len() / 2);
            let pieces =
                [first, rest].map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            let mut empty = block.clone();
            empty["input"] = json!({});
            (empty, pieces.to_vec())
        }
    }
}
