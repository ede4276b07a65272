//! Hosts of the three dialects in these tests: each sends the same short reply and the same errors.

use crate::replies;
use serde_json::{Value, json};
use toolgate_testkit::Script;

/// A host of one dialect.
pub(crate) struct Host {
    /// The model that is routed to it.
    pub(crate) model: &'static str,
    /// A whole reply that says `hi there`.
    pub(crate) whole: fn() -> Value,
    /// The first frames of a stream, with `hi there`.
    pub(crate) head: fn(Script) -> Script,
    /// The rest of it.
    pub(crate) tail: fn(Script) -> Script,
    /// The beginning of a frame that never ends.
    pub(crate) half_frame: &'static str,
    /// The body of an error with this status.
    pub(crate) error: fn(u16, &str) -> Value,
    /// The same as an event in a stream that has started.
    pub(crate) error_frame: fn(Script, &str) -> Script,
}

impl Host {
    pub(crate) fn begun(&self) -> Script {
        (self.head)(Script::sse())
    }
}

pub(crate) const HOSTS: [Host; 3] = [
    Host {
        model: "claude",
        whole: replies::whole,
        head: replies::head,
        tail: replies::tail,
        half_frame: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"HALF",
        error: |status, message| {
            let kind = kind(status, "api_error");
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        },
        error_frame: |script, message| {
            let error = json!({ "type": "overloaded_error", "message": message });
            script.frame("error", json!({ "type": "error", "error": error }))
        },
    },
    Host {
        model: "gpt",
        whole: || {
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-host",
                "choices": [{ "index": 0, "finish_reason": "stop",
                              "message": { "role": "assistant", "content": "hi there" } }],
                "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 }
            })
        },
        head: |script| {
            script
                .frame("", chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null))
                .frame("", chunk(&json!({ "content": "hi there" }), &Value::Null))
        },
        tail: |script| script.frame("", chunk(&json!({}), &json!("stop"))).frame("", "[DONE]"),
        half_frame: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"HALF",
        error: openai_error,
        error_frame: |script, message| script.frame("", openai_error(500, message)).frame("", "[DONE]"),
    },
    Host {
        model: "resp",
        whole: || response("completed", &json!([item("completed")]), &Value::Null),
        head: |script| {
            let created = response("in_progress", &json!([]), &Value::Null);
            let added = json!({ "type": "message", "id": "msg_1", "status": "in_progress", "role": "assistant", "content": [] });
            let part = json!({ "type": "output_text", "text": "", "annotations": [] });
            let frames = [
                json!({ "type": "response.created", "sequence_number": 0, "response": created }),
                json!({ "type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": added }),
                json!({ "type": "response.content_part.added", "sequence_number": 2, "item_id": "msg_1",
                        "output_index": 0, "content_index": 0, "part": part }),
                json!({ "type": "response.output_text.delta", "sequence_number": 3, "item_id": "msg_1",
                        "output_index": 0, "content_index": 0, "delta": "hi there" }),
            ];
            frames.into_iter().fold(script, typed)
        },
        tail: |script| {
            let done = response("completed", &json!([item("completed")]), &Value::Null);
            let frames = [
                json!({ "type": "response.output_text.done", "sequence_number": 4, "item_id": "msg_1",
                        "output_index": 0, "content_index": 0, "text": "hi there" }),
                json!({ "type": "response.output_item.done", "sequence_number": 5, "output_index": 0,
                        "item": item("completed") }),
                json!({ "type": "response.completed", "sequence_number": 6, "response": done }),
            ];
            frames.into_iter().fold(script, typed)
        },
        half_frame: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"HALF",
        error: openai_error,
        error_frame: |script, message| {
            let error = json!({ "code": "server_error", "message": message });
            let failed = response("failed", &json!([]), &error);
            typed(script, json!({ "type": "response.failed", "sequence_number": 4, "response": failed }))
        },
    },
];

fn openai_error(status: u16, message: &str) -> Value {
    let kind = kind(status, "server_error");
    json!({ "error": { "message": message, "type": kind, "param": null, "code": null } })
}

fn kind(status: u16, otherwise: &'static str) -> &'static str {
    match status {
        400 | 422 => "invalid_request_error",
        429 => "rate_limit_error",
        _ => otherwise,
    }
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-host",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }]
    })
}

fn response(status: &str, output: &Value, error: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": error,
        "incomplete_details": null, "model": "resp-host", "output": output, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "metadata": {},
        "usage": { "input_tokens": 7, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 3,
                   "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 10 }
    })
}

fn item(status: &str) -> Value {
    let part = json!({ "type": "output_text", "text": "hi there", "annotations": [] });
    json!({ "type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": [part] })
}

fn typed(script: Script, event: Value) -> Script {
    let name = event["type"].as_str().unwrap_or_default().to_owned();
    script.frame(&name, event)
}
