//! Replies of the Responses dialect.

use serde_json::{Value, json};

use super::memory::HostReply;
use crate::Script;

pub(super) fn script(request: &Value, reply: &HostReply) -> Script {
    let items = items(request, reply);
    let whole = response(request, "completed", &items);
    if request["stream"] != true {
        return Script::json(200, whole);
    }
    let mut events = Events { script: Script::sse(), sent: 0 };
    events.send("response.created", json!({"response": response(request, "in_progress", &[])}));
    events.send("response.in_progress", json!({"response": response(request, "in_progress", &[])}));
    for (index, item) in items.iter().enumerate() {
        stream_item(&mut events, index, item);
    }
    events.send("response.completed", json!({"response": whole}));
    events.script
}

struct Events {
    script: Script,
    sent: u64,
}

impl Events {
    fn send(&mut self, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.sent);
        self.sent += 1;
        self.script = std::mem::replace(&mut self.script, Script::sse()).frame(kind, event);
    }
}

fn stream_item(events: &mut Events, index: usize, item: &Value) {
    let (mut added, id) = (item.clone(), item["id"].clone());
    match item["type"].as_str().unwrap_or_default() {
        "reasoning" => {
            added["summary"] = json!([]);
            events.send("response.output_item.added", json!({"output_index": index, "item": added}));
            for (part_index, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
                let event = |name: &str, value: &Value| {
                    let mut event =
                        json!({"item_id": id, "output_index": index, "summary_index": part_index});
                    event[name] = value.clone();
                    event
                };
                let empty = json!({"type": "summary_text", "text": ""});
                events.send("response.reasoning_summary_part.added", event("part", &empty));
                events.send("response.reasoning_summary_text.delta", event("delta", &part["text"]));
                events.send("response.reasoning_summary_text.done", event("text", &part["text"]));
                events.send("response.reasoning_summary_part.done", event("part", part));
            }
        }
        "message" => {
            added["content"] = json!([]);
            added["status"] = json!("in_progress");
            events.send("response.output_item.added", json!({"output_index": index, "item": added}));
            let part = &item["content"][0];
            let event = |name: &str, value: &Value| {
                let mut event = json!({"item_id": id, "output_index": index, "content_index": 0});
                event[name] = value.clone();
                event
            };
            let logged = |name: &str| {
                let mut event = event(name, &part["text"]);
                event["logprobs"] = json!([]);
                event
            };
            events.send("response.content_part.added", event("part", &text_part("")));
            events.send("response.output_text.delta", logged("delta"));
            events.send("response.output_text.done", logged("text"));
            events.send("response.content_part.done", event("part", part));
        }
        _ => {
            added["arguments"] = json!("");
            added["status"] = json!("in_progress");
            events.send("response.output_item.added", json!({"output_index": index, "item": added}));
            let delta = json!({"item_id": id, "output_index": index, "delta": item["arguments"]});
            events.send("response.function_call_arguments.delta", delta);
            let done = json!({
                "item_id": id, "output_index": index, "name": item["name"], "arguments": item["arguments"],
            });
            events.send("response.function_call_arguments.done", done);
        }
    }
    events.send("response.output_item.done", json!({"output_index": index, "item": item}));
}

fn items(request: &Value, reply: &HostReply) -> Vec<Value> {
    let include = request["include"].as_array().into_iter().flatten();
    let is_sealed = include.into_iter().any(|value| value == "reasoning.encrypted_content");
    let has_summary = !request["reasoning"]["summary"].is_null();
    let thought = reply.thought.iter().map(|thought| {
        let summary = has_summary.then(|| json!({"type": "summary_text", "text": thought.text}));
        let mut item =
            json!({"id": format!("rs_{}", thought.seal.len()), "type": "reasoning", "summary": []});
        item["summary"] = json!(summary.into_iter().collect::<Vec<_>>());
        if is_sealed {
            item["encrypted_content"] = json!(thought.seal);
        }
        item
    });
    let text = reply.text.iter().map(|text| {
        json!({
            "id": "msg_strict", "type": "message", "role": "assistant", "status": "completed",
            "content": [text_part(text)],
        })
    });
    let calls = reply.calls.iter().map(|call| {
        json!({
            "id": format!("fc_{}", call.id.trim_start_matches("call_")), "type": "function_call", "call_id": call.id,
            "name": call.name, "arguments": call.arguments.to_string(), "status": "completed",
        })
    });
    thought.chain(text).chain(calls).collect()
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn response(request: &Value, status: &str, output: &[Value]) -> Value {
    let usage = json!({
        "input_tokens": 20, "output_tokens": 12, "total_tokens": 32,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 5},
    });
    json!({
        "id": "resp_strict", "object": "response", "created_at": 1_700_000_000, "status": status, "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null,
        "max_tool_calls": null, "model": request["model"], "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "reasoning": {"effort": null, "summary": null}, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "user": null, "metadata": {},
        "usage": if status == "completed" { usage } else { Value::Null },
    })
}
