//! Replies of a host of Anthropic's dialect.

use serde_json::{Value, json};
use toolgate_testkit::Script;

pub(crate) fn whole() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-host",
        "content": [{ "type": "text", "text": "hi there" }],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": { "input_tokens": 7, "output_tokens": 3 },
        "a_field_of_tomorrow": 1.50
    })
}

pub(crate) fn head(script: Script) -> Script {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-host", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 7, "output_tokens": 1 }
    });
    script
        .frame("message_start", json!({ "type": "message_start", "message": message }))
        .frame(
            "content_block_start",
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        )
        .frame(
            "content_block_delta",
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "hi there" } }),
        )
}

pub(crate) fn tail(script: Script) -> Script {
    script
        .frame("content_block_stop", json!({ "type": "content_block_stop", "index": 0 }))
        .frame(
            "message_delta",
            json!({
                "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                "usage": { "output_tokens": 3 }
            }),
        )
        .frame("message_stop", json!({ "type": "message_stop" }))
}

pub(crate) fn stream() -> Script {
    tail(head(Script::sse()))
}

/// The bytes of a stream, as the host sends them.
pub(crate) fn bytes_of(script: &Script) -> String {
    let sent = script.steps().filter_map(|step| match step {
        toolgate_testkit::Step::Send(bytes) => Some(bytes.to_vec()),
        toolgate_testkit::Step::Gate(_) | toolgate_testkit::Step::Stall | toolgate_testkit::Step::Cut => None,
    });
    String::from_utf8(sent.flatten().collect()).expect("text")
}
