//! Replies of the Messages API.

use serde_json::{Value, json};

use super::model_request::ModelRequest;
use super::reply::{Block, Reply, ReplyEnd};
use super::{CACHED_INPUT_TOKENS, INPUT_TOKENS};
use crate::Script;

pub(super) fn whole(request: &ModelRequest, reply: &Reply) -> Value {
    let content: Vec<Value> = reply.blocks.iter().map(whole_block).collect();
    message(request, &json!(content), &json!(stop_reason(reply)), reply.output_tokens())
}

pub(super) fn stream(request: &ModelRequest, reply: &Reply) -> Script {
    let start = message(request, &json!([]), &Value::Null, 1);
    let mut script = send(Script::sse(), json!({"type": "message_start", "message": start}));
    for (index, block) in reply.blocks.iter().enumerate() {
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": empty_block(block)});
        script = send(script, start);
        if index == 0 {
            script = send(script, json!({"type": "ping"}));
        }
        for delta in block.deltas() {
            script = send(
                script,
                json!({"type": "content_block_delta", "index": index, "delta": delta_of(block, delta)}),
            );
        }
        if let Block::Reasoning { seal, .. } = block {
            let delta = json!({"type": "signature_delta", "signature": seal});
            script = send(script, json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        script = send(script, json!({"type": "content_block_stop", "index": index}));
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"container": null, "stop_details": null, "stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": {
            "input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_INPUT_TOKENS, "output_tokens": reply.output_tokens(),
        },
    });
    send(send(script, end), json!({"type": "message_stop"}))
}

#[expect(clippy::needless_pass_by_value, reason = "every caller builds the event in place")]
fn send(script: Script, event: Value) -> Script {
    script.frame(event["type"].as_str().unwrap_or_default(), &event)
}

fn message(request: &ModelRequest, content: &Value, stop_reason: &Value, output_tokens: usize) -> Value {
    // Clients that keep a history merge messages with the same id.
    let id = format!("msg_scripted_{}", request.assistant_messages());
    json!({
        "id": id, "type": "message", "role": "assistant", "model": request.model, "content": content,
        "container": null, "stop_details": null, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {
            "input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_INPUT_TOKENS, "output_tokens": output_tokens, "service_tier": "standard",
        },
    })
}

fn whole_block(block: &Block) -> Value {
    match block {
        Block::Reasoning { seal, .. } => {
            json!({"type": "thinking", "thinking": block.whole(), "signature": seal})
        }
        Block::Text { .. } => json!({"type": "text", "text": block.whole(), "citations": null}),
        Block::Call { id, name, .. } => {
            // The API sends an object even when the arguments were cut short.
            let input: Value = serde_json::from_str(&block.whole()).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input})
        }
    }
}

fn empty_block(block: &Block) -> Value {
    match block {
        Block::Reasoning { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Block::Text { .. } => json!({"type": "text", "text": ""}),
        Block::Call { id, name, .. } => {
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": {}})
        }
    }
}

fn delta_of(block: &Block, delta: &str) -> Value {
    match block {
        Block::Reasoning { .. } => json!({"type": "thinking_delta", "thinking": delta}),
        Block::Text { .. } => json!({"type": "text_delta", "text": delta}),
        Block::Call { .. } => json!({"type": "input_json_delta", "partial_json": delta}),
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.end {
        ReplyEnd::Stop | ReplyEnd::Cut => "end_turn",
        ReplyEnd::Calls => "tool_use",
        ReplyEnd::Length => "max_tokens",
    }
}
