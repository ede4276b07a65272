//! Replies of the Messages API.

use serde_json::{Value, json};

use super::heard::Heard;
use super::reply::{Ending, Piece, Reply};
use super::{CACHED_INPUT_TOKENS, INPUT_TOKENS};
use crate::Script;

pub(super) fn whole(heard: &Heard, reply: &Reply) -> Value {
    let content: Vec<Value> = reply.pieces.iter().map(block).collect();
    message(heard, &json!(content), &json!(stop_reason(reply)), reply.output_tokens())
}

pub(super) fn stream(heard: &Heard, reply: &Reply) -> Script {
    let start = message(heard, &json!([]), &Value::Null, 1);
    let mut script = send(Script::sse(), json!({"type": "message_start", "message": start}));
    for (index, piece) in reply.pieces.iter().enumerate() {
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": empty_block(piece)});
        script = send(script, start);
        if index == 0 {
            script = send(script, json!({"type": "ping"}));
        }
        for delta in piece.deltas() {
            script = send(
                script,
                json!({"type": "content_block_delta", "index": index, "delta": delta_of(piece, delta)}),
            );
        }
        if let Piece::Reasoning { seal, .. } = piece {
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

#[expect(clippy::needless_pass_by_value, reason = "every caller makes the event on the spot")]
fn send(script: Script, event: Value) -> Script {
    script.frame(event["type"].as_str().unwrap_or_default(), &event)
}

fn message(heard: &Heard, content: &Value, stop_reason: &Value, output_tokens: usize) -> Value {
    // Programs that keep a history take two messages of one id for parts of the same.
    let id = format!("msg_scripted_{}", heard.times_spoken());
    json!({
        "id": id, "type": "message", "role": "assistant", "model": heard.model, "content": content,
        "container": null, "stop_details": null, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {
            "input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED_INPUT_TOKENS, "output_tokens": output_tokens, "service_tier": "standard",
        },
    })
}

fn block(piece: &Piece) -> Value {
    match piece {
        Piece::Reasoning { seal, .. } => {
            json!({"type": "thinking", "thinking": piece.whole(), "signature": seal})
        }
        Piece::Text { .. } => json!({"type": "text", "text": piece.whole(), "citations": null}),
        Piece::Call { id, name, .. } => {
            // The API gives an object also when the arguments were cut short.
            let input: Value = serde_json::from_str(&piece.whole()).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input})
        }
    }
}

fn empty_block(piece: &Piece) -> Value {
    match piece {
        Piece::Reasoning { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Piece::Text { .. } => json!({"type": "text", "text": ""}),
        Piece::Call { id, name, .. } => {
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": {}})
        }
    }
}

fn delta_of(piece: &Piece, delta: &str) -> Value {
    match piece {
        Piece::Reasoning { .. } => json!({"type": "thinking_delta", "thinking": delta}),
        Piece::Text { .. } => json!({"type": "text_delta", "text": delta}),
        Piece::Call { .. } => json!({"type": "input_json_delta", "partial_json": delta}),
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.ending {
        Ending::Stop | Ending::Cut => "end_turn",
        Ending::Calls => "tool_use",
        Ending::Length => "max_tokens",
    }
}
