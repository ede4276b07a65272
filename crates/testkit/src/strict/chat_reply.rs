//! Replies of the Chat dialect, with each host's peculiarities.

use serde_json::{Value, json};

use super::memory::{HostCall, HostReply, ReasoningField};
use super::profile::{Quirk, StrictProfile};
use crate::Script;

pub(super) fn script(profile: &StrictProfile, request: &Value, reply: &HostReply) -> Script {
    let writer = Writer { profile, request, reply };
    if request["stream"] == true { writer.stream() } else { Script::json(200, writer.whole()) }
}

struct Writer<'a> {
    profile: &'a StrictProfile,
    request: &'a Value,
    reply: &'a HostReply,
}

impl Writer<'_> {
    fn has(&self, quirk: Quirk) -> bool {
        self.profile.style.contains(&quirk)
    }

    fn whole(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.reply.text});
        if let Some(Value::Object(thought)) = self.thought(self.reply.text.as_deref()) {
            message.as_object_mut().into_iter().for_each(|message| message.extend(thought.clone()));
        }
        if !self.reply.calls.is_empty() {
            let calls = self.reply.calls.iter().enumerate();
            message["tool_calls"] = calls.map(|(index, call)| self.call(index, call)).collect();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish()});
        let mut body = self.envelope("chat.completion", &json!([choice]));
        body["usage"] = usage();
        body
    }

    fn stream(&self) -> Script {
        let mut script = Script::sse();
        if self.has(Quirk::FilterResultsFirst) {
            let mut first = self.envelope("", &json!([]));
            first["prompt_filter_results"] = json!([{"prompt_index": 0, "content_filter_results": {}}]);
            first["model"] = json!("");
            script = script.frame("", first);
        }
        if self.has(Quirk::Comments) {
            script = script.bytes(": OPENROUTER PROCESSING\n\n");
        }
        script = script.frame("", self.chunk(&json!({"role": "assistant", "content": ""}), 0));
        let pieces = self.pieces();
        for (number, delta) in pieces.iter().enumerate() {
            script = script.frame("", self.chunk(delta, number + 1));
        }
        let mut last = self.chunk(&json!({}), pieces.len() + 1);
        last["choices"][0]["finish_reason"] = json!(self.finish());
        let wants_usage = self.request["stream_options"]["include_usage"] == true;
        if self.has(Quirk::UsageInLastChunk) {
            last["usage"] = usage();
        }
        if self.has(Quirk::XGroq) {
            last["x_groq"] = json!({"id": "req_1", "usage": usage()});
        }
        script = script.frame("", last);
        if wants_usage && !self.has(Quirk::UsageInLastChunk) {
            let mut chunk = self.envelope("chat.completion.chunk", &json!([]));
            chunk["usage"] = usage();
            script = script.frame("", chunk);
        }
        script.frame("", "[DONE]")
    }

    /// The deltas of a stream.
    fn pieces(&self) -> Vec<Value> {
        let mut pieces = Vec::new();
        if let Some(thought) = self.thought(None) {
            pieces.push(thought);
        }
        if let Some(text) = &self.reply.text {
            let (first, rest) = text.split_at(text.len() / 2);
            pieces.extend([first, rest].map(|text| json!({"content": text})));
        }
        for (index, call) in self.reply.calls.iter().enumerate() {
            let whole = self.call(index, call);
            if self.has(Quirk::WholeCalls) {
                pieces.push(json!({"tool_calls": [whole]}));
                continue;
            }
            let arguments = call.arguments.to_string();
            let mut opened = whole;
            opened["function"]["arguments"] = json!("");
            pieces.push(json!({"tool_calls": [opened]}));
            let (first, rest) = arguments.split_at(arguments.len() / 2);
            for piece in [first, rest] {
                let mut delta = json!({"index": index, "function": {"arguments": piece}});
                if self.has(Quirk::EmptyLaterNames) {
                    delta["function"]["name"] = json!("");
                }
                pieces.push(json!({"tool_calls": [delta]}));
            }
        }
        if self.has(Quirk::RoleEverywhere) {
            for piece in &mut pieces {
                piece["role"] = json!("assistant");
            }
        }
        pieces
    }

    /// The fields of the thought, with the text where both share a field.
    fn thought(&self, text: Option<&str>) -> Option<Value> {
        let thought = &self.reply.thought.as_ref()?.text;
        let text = text.unwrap_or_default();
        Some(match self.profile.reasoning {
            ReasoningField::Hidden | ReasoningField::Sealed => return None,
            ReasoningField::ReasoningContent => json!({"reasoning_content": thought}),
            ReasoningField::Reasoning => json!({"reasoning": thought}),
            ReasoningField::ReasoningDetails => {
                let detail =
                    json!({"type": "reasoning.text", "text": thought, "format": "unknown", "index": 0});
                json!({"reasoning": thought, "reasoning_details": [detail]})
            }
            ReasoningField::ThinkingPart => {
                let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": thought}]});
                let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
                json!({"content": std::iter::once(thinking).chain(text).collect::<Vec<_>>()})
            }
            ReasoningField::ThinkTags => {
                json!({"content": format!("<think>\n{thought}\n</think>\n\n{text}")})
            }
        })
    }

    fn call(&self, index: usize, call: &HostCall) -> Value {
        let arguments = if self.has(Quirk::ObjectArguments) {
            call.arguments.clone()
        } else {
            json!(call.arguments.to_string())
        };
        let mut written = json!({"id": call.id, "function": {"name": call.name, "arguments": arguments}});
        if !self.has(Quirk::NoCallType) {
            written["type"] = json!("function");
        }
        if !self.has(Quirk::NoCallIndex) && self.request["stream"] == true {
            written["index"] = json!(index);
        }
        if let Some(signature) = &call.signature {
            written["extra_content"] = json!({"google": {"thought_signature": signature}});
        }
        written
    }

    fn finish(&self) -> &'static str {
        match (self.reply.calls.is_empty(), self.has(Quirk::EmptyFinishWithCalls), self.has(Quirk::Eos)) {
            (false, true, _) => "",
            (false, false, _) => "tool_calls",
            (true, _, true) => "eos",
            (true, _, false) => "stop",
        }
    }

    fn chunk(&self, delta: &Value, number: usize) -> Value {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        let mut chunk = self.envelope("chat.completion.chunk", &json!([choice]));
        if number > 0 && self.has(Quirk::EmptyLaterIds) {
            chunk["id"] = json!("");
        }
        chunk
    }

    fn envelope(&self, object: &str, choices: &Value) -> Value {
        json!({
            "id": "chatcmpl-strict", "object": object, "created": 1_700_000_000, "model": self.request["model"],
            "choices": choices,
        })
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32})
}
