//! Conversations of real client programs with hosts of another dialect. The requests have the shape that the program
//! sends; the second turn returns what the program keeps of the first.
#![expect(clippy::expect_used, reason = "a test that cannot go on says where")]
#![expect(clippy::needless_pass_by_value, reason = "cases read better with `json!` as an argument")]

mod ai_sdk;
mod citations;
mod claude_code;
mod codex;
mod gemini;
mod losses;

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder, SseFrame};
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::registry::{Dialect, find};
use toolgate_dialect::{HostRequest, ReplyContext, Translation};
use toolgate_model::reply::fold;
use toolgate_model::{Losses, Translated, TurnError, TurnRequest};

const MESSAGES: &str = "anthropic-messages";
const CHAT: &str = "openai-chat";
const RESPONSES: &str = "openai-responses";

/// A client of one dialect and a host of another.
#[derive(Clone, Copy)]
struct Pair {
    client: &'static Dialect,
    host: &'static Dialect,
    url: &'static str,
}

impl Pair {
    fn new(client: &str, host: &str) -> Self {
        let find = |name| find(name).expect("a dialect");
        Self { client: find(client), host: find(host), url: "http://host" }
    }

    /// The host with this base URL.
    fn at(self, url: &'static str) -> Self {
        Self { url, ..self }
    }

    fn read(self, body: &Value) -> TurnRequest {
        self.client.client.read_request(body.to_string().as_bytes()).expect("a valid request").value
    }

    /// The body that the host receives.
    fn sent(self, body: &Value) -> Value {
        serde_json::from_slice(&self.translate(body).1.body).expect("the body is JSON")
    }

    /// The places of what the request loses.
    fn request_losses(self, body: &Value) -> Vec<String> {
        places(&self.translate(body).1.losses)
    }

    /// Why the request cannot be sent to the host.
    fn refusal(self, body: &Value) -> TurnError {
        self.try_translate(body).map(|_| ()).expect_err("an error")
    }

    fn translate(self, body: &Value) -> (Translation, HostRequest) {
        self.try_translate(body).expect("a request that can be written")
    }

    fn try_translate(self, body: &Value) -> Result<(Translation, HostRequest), TurnError> {
        let request = self.read(body);
        let profile = HostFacts::at(self.host.upstream.id(), self.url).profile(request.model.as_str());
        let mut translation = Translation::new(self.host.upstream);
        let client = self.client.client.id();
        let written = translation.request(client, &request, &request.model, &profile)?;
        Ok((translation, written))
    }

    fn context(self, request: &Value) -> ReplyContext {
        ReplyContext {
            request: Arc::new(self.read(request)),
            now: 1_700_000_000,
            fallback_id: "ours".into(),
            estimated_input: 7,
        }
    }

    /// The client's reply for a whole reply of the host.
    fn reply(self, request: &Value, host_reply: Value) -> Value {
        serde_json::from_slice(&self.written_reply(request, &host_reply).value).expect("the reply is JSON")
    }

    /// The places of what a whole reply loses.
    fn reply_losses(self, request: &Value, host_reply: Value) -> Vec<String> {
        places(&self.written_reply(request, &host_reply).losses)
    }

    fn written_reply(self, request: &Value, host_reply: &Value) -> Translated<Vec<u8>> {
        let (translation, _) = self.translate(request);
        let events = translation.whole_reply(host_reply.to_string().as_bytes()).expect("a valid reply").value;
        let reply = fold(events).expect("a valid sequence of events");
        self.client.client.write_reply(&reply, &self.context(request))
    }

    /// The data of the client's frames for a stream of the host.
    fn stream(self, request: &Value, frames: &[Value]) -> Vec<Value> {
        let mut reader = self.translate(request).0.reply();
        let mut events = Vec::new();
        for frame in frames {
            let data = frame.as_str().map_or_else(|| frame.to_string(), str::to_owned);
            reader.frame(SseFrame { event: "", data: &data }, &mut events).expect("a valid frame");
        }
        reader.end(&mut events).expect("a complete stream");
        let mut writer = self.client.client.reply_writer(self.context(request));
        let mut bytes = Vec::new();
        for event in events {
            writer.event(event, &mut bytes);
        }
        let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
        decoder.push(&bytes);
        let mut written = Vec::new();
        while let Some(frame) = decoder.next_frame().expect("well-formed frames") {
            written.extend(serde_json::from_str::<Value>(frame.data));
        }
        written
    }
}

fn places(losses: &Losses) -> Vec<String> {
    losses.iter().map(|loss| loss.place.clone()).collect()
}

/// A chat host's whole reply.
fn chat_reply(message: Value) -> Value {
    let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    json!({ "id": "c1", "object": "chat.completion", "created": 1, "model": "host-model",
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 } })
}

/// A chat host's stream of these deltas.
fn chat_stream(deltas: &[Value]) -> Vec<Value> {
    let chunk = |delta: Value, reason: Value| {
        json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "host-model",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
    };
    let reason =
        if deltas.iter().any(|delta| delta.get("tool_calls").is_some()) { "tool_calls" } else { "stop" };
    let mut frames = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    frames.extend(deltas.iter().map(|delta| chunk(delta.clone(), Value::Null)));
    frames.extend([chunk(json!({}), json!(reason)), json!("[DONE]")]);
    frames
}

/// The items of a Responses stream, as its `output_item.done` events give them.
fn items_done(frames: &[Value]) -> Vec<Value> {
    let done = frames.iter().filter(|frame| frame["type"] == "response.output_item.done");
    done.map(|frame| frame["item"].clone()).collect()
}

/// The blocks of a Messages stream, put together as SDKs do it.
fn blocks_of(frames: &[Value]) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for frame in frames {
        match frame["type"].as_str() {
            Some("content_block_start") => blocks.push(frame["content_block"].clone()),
            Some("content_block_delta") => {
                let block = blocks.last_mut().expect("an open block");
                let delta = &frame["delta"];
                for (name, field) in [("text", "text"), ("thinking", "thinking"), ("signature", "signature")]
                {
                    if let Some(text) = delta[name].as_str() {
                        let all = format!("{}{text}", block[field].as_str().unwrap_or_default());
                        block[field] = json!(all);
                    }
                }
                if let Some(text) = delta["partial_json"].as_str() {
                    let all = format!("{}{text}", block["json"].as_str().unwrap_or_default());
                    block["json"] = json!(all);
                }
            }
            Some("content_block_stop") => {
                let block = blocks.last_mut().expect("an open block");
                if let Some(text) = block.as_object_mut().and_then(|fields| fields.shift_remove("json")) {
                    block["input"] = serde_json::from_str(text.as_str().unwrap_or_default()).expect("JSON");
                }
            }
            _ => {}
        }
    }
    blocks
}
