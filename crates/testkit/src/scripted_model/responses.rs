//! Replies of the Responses API.

use serde_json::{Value, json};

use super::heard::Heard;
use super::reply::{Ending, Piece, Reply};
use super::{CACHED_INPUT_TOKENS, CREATED, INPUT_TOKENS};
use crate::Script;

pub(super) fn whole(heard: &Heard, reply: &Reply) -> Value {
    let output: Vec<Value> =
        reply.pieces.iter().enumerate().map(|(index, piece)| Item::new(reply, index, piece).done()).collect();
    let mut response = response(heard, final_status(reply));
    response["output"] = json!(output);
    response["usage"] = usage(reply);
    if reply.ending == Ending::Length {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response
}

pub(super) fn stream(heard: &Heard, reply: &Reply) -> Script {
    let mut events = Events { script: Script::sse(), sent: 0 };
    events.send("response.created", json!({"response": response(heard, "in_progress")}));
    events.send("response.in_progress", json!({"response": response(heard, "in_progress")}));
    for (index, piece) in reply.pieces.iter().enumerate() {
        Item::new(reply, index, piece).stream(&mut events);
    }
    let last = if reply.ending == Ending::Length { "response.incomplete" } else { "response.completed" };
    events.send(last, json!({"response": whole(heard, reply)}));
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
    piece: &'a Piece,
    index: usize,
    id: String,
    status: &'static str,
}

impl<'a> Item<'a> {
    fn new(reply: &Reply, index: usize, piece: &'a Piece) -> Self {
        let id = match piece {
            Piece::Reasoning { .. } => format!("rs_scripted_{index}"),
            Piece::Text { .. } => format!("msg_scripted_{index}"),
            Piece::Call { id, .. } => format!("fc_{id}"),
        };
        let last = index + 1 == reply.pieces.len();
        let status = if last { final_status(reply) } else { "completed" };
        Self { piece, index, id, status }
    }

    fn stream(&self, events: &mut Events) {
        events.send("response.output_item.added", json!({"output_index": self.index, "item": self.added()}));
        let whole = self.piece.whole();
        match self.piece {
            Piece::Reasoning { deltas, .. } => {
                let part = |text: &str| json!({"type": "summary_text", "text": text});
                let event = |fields: Value| self.event("summary_index", fields);
                events.send("response.reasoning_summary_part.added", event(json!({"part": part("")})));
                for delta in deltas {
                    events.send("response.reasoning_summary_text.delta", event(json!({"delta": delta})));
                }
                events.send("response.reasoning_summary_text.done", event(json!({"text": whole})));
                events.send("response.reasoning_summary_part.done", event(json!({"part": part(&whole)})));
            }
            Piece::Text { deltas } => {
                let event = |fields: Value| self.event("content_index", fields);
                events.send("response.content_part.added", event(json!({"part": text_part("")})));
                for delta in deltas {
                    events.send("response.output_text.delta", event(json!({"delta": delta, "logprobs": []})));
                }
                events.send("response.output_text.done", event(json!({"text": whole, "logprobs": []})));
                events.send("response.content_part.done", event(json!({"part": text_part(&whole)})));
            }
            Piece::Call { deltas, .. } => {
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
        match self.piece {
            Piece::Reasoning { .. } => {
                item["summary"] = json!([]);
                item["encrypted_content"] = json!("");
            }
            Piece::Text { .. } => {
                item["content"] = json!([]);
                item["status"] = json!("in_progress");
            }
            Piece::Call { .. } => {
                item["arguments"] = json!("");
                item["status"] = json!("in_progress");
            }
        }
        item
    }

    fn done(&self) -> Value {
        let whole = self.piece.whole();
        match self.piece {
            Piece::Reasoning { seal, .. } => json!({
                "id": self.id, "type": "reasoning", "summary": [{"type": "summary_text", "text": whole}],
                "encrypted_content": seal,
            }),
            Piece::Text { .. } => json!({
                "id": self.id, "type": "message", "role": "assistant", "status": self.status,
                "content": [text_part(&whole)],
            }),
            Piece::Call { id, name, .. } => json!({
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
fn response(heard: &Heard, status: &str) -> Value {
    json!({
        "id": "resp_scripted", "object": "response", "created_at": CREATED, "status": status, "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null,
        "max_tool_calls": null, "model": heard.model, "output": [], "parallel_tool_calls": true,
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
    match reply.ending {
        Ending::Stop | Ending::Calls | Ending::Cut => "completed",
        Ending::Length => "incomplete",
    }
}
