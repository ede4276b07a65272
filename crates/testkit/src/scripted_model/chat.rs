//! Replies of the Chat Completions API.

use serde_json::{Value, json};

use super::model_request::{ModelRequest, UsageChunk};
use super::reply::{Block, Reply, ReplyEnd};
use super::{CACHED_INPUT_TOKENS, CREATED, INPUT_TOKENS};
use crate::Script;

pub(super) fn whole(request: &ModelRequest, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
    let mut calls = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Reasoning { .. } => message["reasoning_content"] = json!(block.whole()),
            Block::Text { .. } => message["content"] = json!(block.whole()),
            Block::Call { id, name, .. } => calls.push(json!({
                "id": format!("call_{id}"), "type": "function",
                "function": {"name": name, "arguments": block.whole()},
            })),
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": CREATED, "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)}],
        "usage": usage(reply), "service_tier": "default", "system_fingerprint": "fp_scripted",
    })
}

pub(super) fn stream(request: &ModelRequest, reply: &Reply) -> Script {
    let chunks = Chunks { request };
    let mut script =
        chunks.delta(Script::sse(), &json!({"role": "assistant", "content": "", "refusal": null}));
    let mut call_index = 0;
    for block in &reply.blocks {
        match block {
            Block::Reasoning { deltas, .. } => {
                for delta in deltas {
                    script = chunks.delta(script, &json!({"reasoning_content": delta}));
                }
            }
            Block::Text { deltas } => {
                for delta in deltas {
                    script = chunks.delta(script, &json!({"content": delta}));
                }
            }
            Block::Call { id, name, deltas } => {
                let opened = json!({
                    "index": call_index, "id": format!("call_{id}"), "type": "function",
                    "function": {"name": name, "arguments": ""},
                });
                script = chunks.delta(script, &json!({"tool_calls": [opened]}));
                for delta in deltas {
                    let call = json!({"index": call_index, "function": {"arguments": delta}});
                    script = chunks.delta(script, &json!({"tool_calls": [call]}));
                }
                call_index += 1;
            }
        }
    }
    let finish = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason(reply)}]);
    script = script.frame("", chunks.chunk(&finish, &Value::Null));
    if request.usage_chunk == UsageChunk::Wanted {
        script = script.frame("", chunks.chunk(&json!([]), &usage(reply)));
    }
    script.frame("", "[DONE]")
}

struct Chunks<'a> {
    request: &'a ModelRequest,
}

impl Chunks<'_> {
    fn delta(&self, script: Script, delta: &Value) -> Script {
        let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
        script.frame("", self.chunk(&choices, &Value::Null))
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> Value {
        let mut chunk = json!({
            "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": CREATED, "model": self.request.model,
            "service_tier": "default", "system_fingerprint": "fp_scripted", "choices": choices,
        });
        // Every chunk has the field when usage is requested, and none has it otherwise.
        if self.request.usage_chunk == UsageChunk::Wanted {
            chunk["usage"] = usage.clone();
        }
        chunk
    }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = (INPUT_TOKENS + CACHED_INPUT_TOKENS, reply.output_tokens() as u64);
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": CACHED_INPUT_TOKENS, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens(), "audio_tokens": 0},
    })
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.end {
        ReplyEnd::Stop | ReplyEnd::Cut => "stop",
        ReplyEnd::Calls => "tool_calls",
        ReplyEnd::Length => "length",
    }
}
