//! An ordinary reply of an ordinary host loses nothing.

use serde_json::{Value, json};

use super::{CHAT, MESSAGES, Pair, RESPONSES};

fn requests() -> [(&'static str, Value); 3] {
    let messages = json!([{ "role": "user", "content": "hi" }]);
    [
        (MESSAGES, json!({ "model": "m", "max_tokens": 999, "messages": messages })),
        (CHAT, json!({ "model": "m", "messages": messages })),
        (RESPONSES, json!({ "model": "m", "input": "hi", "include": [] })),
    ]
}

/// Neither the request nor this reply of a host loses anything, for a client of any dialect.
fn check(host: &str, reply: Value) {
    for (client, request) in requests() {
        let pair = Pair::new(client, host);
        assert_eq!(pair.reply_losses(&request, reply.clone()), Vec::<Value>::new(), "{client} of {host}");
        assert_eq!(pair.request_losses(&request), Vec::<Value>::new(), "{client} to {host}");
    }
}

#[test]
fn an_ordinary_chat_reply_loses_nothing() {
    check(
        CHAT,
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
            "service_tier": "default", "system_fingerprint": "fp_1",
            "choices": [{ "index": 0, "logprobs": null, "finish_reason": "stop",
                "message": { "role": "assistant", "content": "hi", "refusal": null, "annotations": [] } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2,
                "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
                "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0,
                    "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0 } },
        }),
    );
}

#[test]
fn an_ordinary_message_loses_nothing() {
    check(
        MESSAGES,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "container": null,
            "content": [{ "type": "text", "text": "hi", "citations": null }], "context_management": null,
            "stop_reason": "end_turn", "stop_sequence": null, "stop_details": null,
            "usage": { "input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "service_tier": "standard", "inference_geo": "global",
                "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0 },
                "server_tool_use": null },
        }),
    );
}

#[test]
fn an_ordinary_response_loses_nothing() {
    check(
        RESPONSES,
        json!({
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5.1",
            "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "tools": [],
            "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "top_p": 1.0, "store": false,
            "reasoning": { "effort": "none", "summary": null }, "text": { "format": { "type": "text" } },
            "output": [{ "id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "text": "hi", "annotations": [], "logprobs": [] }] }],
            "usage": { "input_tokens": 1, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 1,
                "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 2 },
        }),
    );
}
