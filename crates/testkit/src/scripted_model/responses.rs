//! Replies of the Responses API.

use serde_json::{Value, json};

use super::model_request::ModelRequest;
use super::reply::{Block, Reply, ReplyEnd};
use super::{CACHED_INPUT_TOKENS, CREATED, INPUT_TOKENS};
use crate::Script;

pub(super) fn whole(request: &ModelRequest, reply: &Reply) -> Value {
    let output: Vec<Value> =
        reply.blocks.iter().enumerate().map(|(index, block)| Item::new(reply, index, block).done()).collect();
    let mut response = response(request, final_status(reply));
    response["output"] = json!(output);
    response["usage"] = usage(reply);
    if reply.end == ReplyEnd::Length {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response
}

pub(super) fn stream(request: &ModelRequest, reply: &Reply) -> Script {
    let mut events = Events { script: Script::sse(), sent: 0 };
    events.send("response.created", json!({"response": response(request, "in_progress")}));
    events.send("response.in_progress", json!({"response": response(request, "in_progress")}));
    for (index, block) in reply.blocks.iter().enumerate() {
        Item::new(reply, index, block).stream(&mut events);
    }
    let last = if reply.end == ReplyEnd::Length { "response.incomplete" } else { "response.completed" };
    events.send(last, json!({"response": whole(request, reply)}));
    events.script
}

/// A stream being written: each event carries its number.
struct Events {
    script: Script,
    sent: u64,
}

impl Events {
    fn send(&mut self, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.sent);
        self.sent += 1;
        let script = std::mem::replace(&mut self.script, Script::sse());
        self.script = script.frame(kind, event);
    }
}

/// One output item: a message, a function call or reasoning.
struct Item<'a> {
    block: &'a Block,
    index: usize,
    id: String,
    status: &'static str,
}

impl<'a> Item<'a> {
    fn new(reply: &Reply, index: usize, block: &'a Block) -> Self {
        let id = match block {
            Block::Reasoning { .. } => format!("rs_scripted_{index}"),
            Block::Text { .. } => format!("msg_scripted_{index}"),
            Block::Call { id, .. } => format!("fc_{id}"),
        };
        let last = index + 1 == reply.blocks.len();
        let status = if last { final_status(reply) } else { "completed" };
        Self { block, index, id, status }
    }

    fn stream(&self, events: &mut Events) {
        events.send("response.output_item.added", json!({"output_index": self.index, "item": self.added()}));
        let whole = self.block.whole();
        match self.block {
            Block::Reasoning { deltas, .. } => {
                let part = |text: &str| json!({"type": "summary_text", "text": text});
                let event = |fields: Value| self.event("summary_index", fields);
                events.send("response.reasoning_summary_part.added", event(json!({"part": part("")})));
                for delta in deltas {
                    events.send("response.reasoning_summary_text.delta", event(json!({"delta": delta})));
                }
                events.send("response.reasoning_summary_text.done", event(json!({"text": whole})));
                events.send("response.reasoning_summary_part.done", event(json!({"part": part(&whole)})));
            }
            Block::Text { deltas } => {
                let event = |fields: Value| self.event("content_index", fields);
                events.send("response.content_part.added", event(json!({"part": text_part("")})));
                for delta in deltas {
                    events.send("response.output_text.delta", event(json!({"delta": delta, "logprobs": []})));
                }
                events.send("response.output_text.done", event(json!({"text": whole, "logprobs": []})));
                events.send("response.content_part.done", event(json!({"part": text_part(&whole)})));
            }
            Block::Call { deltas, .. } => {
                let event = |name: &str, text: &str| {
                    let mut event = json!({"item_id": self.id, "output_index": self.index});
                    event[name] = json!(text);
                    event
                };
                for delta in deltas {
                    events.send("response.function_call_arguments.delta", event("delta", delta));
                }
                events.send("response.function_call_arguments.done", event("arguments", &whole));
            }
        }
        events.send("response.output_item.done", json!({"output_index": self.index, "item": self.done()}));
    }

    /// An event about the item's only part.
    fn event(&self, part_index: &str, mut fields: Value) -> Value {
        fields["item_id"] = json!(self.id);
        fields["output_index"] = json!(self.index);
        fields[part_index] = json!(0);
        fields
    }

    fn added(&self) -> Value {
        let mut item = self.done();
        match self.block {
            Block::Reasoning { .. } => {
                item["summary"] = json!([]);
                item["encrypted_content"] = json!("");
            }
            Block::Text { .. } => {
                item["content"] = json!([]);
                item["status"] = json!("in_progress");
            }
            Block::Call { .. } => {
                item["arguments"] = json!("");
                item["status"] = json!("in_progress");
            }
        }
        item
    }

    fn done(&self) -> Value {
        let whole = self.block.whole();
        match self.block {
            Block::Reasoning { seal, .. } => json!({
                "id": self.id, "type": "reasoning", "summary": [{"type": "summary_text", "text": whole}],
                "encrypted_content": seal,
            }),
            Block::Text { .. } => json!({
                "id": self.id, "type": "message", "role": "assistant", "status": self.status,
                "content": [text_part(&whole)],
            }),
            Block::Call { id, name, .. } => json!({
                "id": self.id, "type": "function_call", "call_id": format!("call_{id}"), "name": name,
                "arguments": whole, "status": self.status,
            }),
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// The response without its output.
fn response(request: &ModelRequest, status: &str) -> Value {
    json!({
        "id": "resp_scripted", "object": "response", "created_at": CREATED, "status": status, "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null,
        "max_tool_calls": null, "model": request.model, "output": [], "parallel_tool_calls": true,
        "previous_response_id": null, "reasoning": {"effort": null, "summary": null}, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "usage": null, "user": null, "metadata": {},
    })
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = (INPUT_TOKENS + CACHED_INPUT_TOKENS, reply.output_tokens() as u64);
    json!({
        "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": {"cached_tokens": CACHED_INPUT_TOKENS, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens()},
    })
}

fn final_status(reply: &Reply) -> &'static str {
    match reply.end {
        ReplyEnd::Stop | ReplyEnd::Calls | ReplyEnd::Cut => "completed",
        ReplyEnd::Length => "incomplete",
    }
}
