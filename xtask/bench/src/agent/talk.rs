//! A client of the Messages API that sends the whole conversation each time and has no session id.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::AnyError;

/// How much of a bad reply is shown.
const SHOWN_BYTES: usize = 600;

/// A conversation in the client's memory.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    instructions: String,
    messages: Vec<Value>,
}

/// The time from a request to the start of its reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    pub(super) first: Duration,
}

impl Conversation {
    /// A conversation with the usual opening.
    pub(super) fn new() -> Self {
        Self::under("You are a friendly assistant.")
    }

    /// A conversation with these instructions.
    pub(super) fn under(instructions: &str) -> Self {
        Self { instructions: instructions.to_owned(), messages: Vec::new() }
    }

    /// A conversation with this many messages that took place elsewhere.
    pub(super) fn with_history(subject: &str, messages: usize) -> Self {
        let message = |number: usize| {
            let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
            json!({ "role": role, "content": format!("Part {number} of {subject}, told by the {role}.") })
        };
        Self { messages: (0..messages).map(message).collect(), ..Self::new() }
    }

    pub(super) fn say(&mut self, text: &str) {
        self.messages.push(json!({ "role": "user", "content": text }));
    }

    /// The ids of the calls of the last reply. An error if there are none.
    pub(super) fn expect_calls(&self) -> Result<Vec<Value>, AnyError> {
        let blocks = self.messages.last().and_then(|last| last["content"].as_array());
        let calls = blocks.into_iter().flatten().filter(|block| block["type"] == "tool_use");
        let ids: Vec<Value> = calls.map(|call| call["id"].clone()).collect();
        if ids.is_empty() {
            return Err(format!("the agent called no tool: {:?}", self.messages.last()).into());
        }
        Ok(ids)
    }

    /// Adds a result for every call of the last reply. An error if there are none.
    pub(super) fn answer_calls(&mut self, result: &str) -> Result<(), AnyError> {
        let result = |id| json!({ "type": "tool_result", "tool_use_id": id, "content": result });
        let results: Vec<Value> = self.expect_calls()?.into_iter().map(result).collect();
        self.messages.push(json!({ "role": "user", "content": results }));
        Ok(())
    }

    /// Sends all messages and adds the reply. An error unless the reply is complete.
    pub(super) async fn send(&mut self, address: &str) -> Result<Timed, AnyError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        spawn_local(async move {
            if let Err(cause) = connection.await {
                eprintln!("a connection of the load ended early: {cause}");
            }
        });
        let request = Request::post("/v1/messages")
            .header(HOST, address)
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", "2023-06-01")
            .body(Full::new(Bytes::from(self.request().to_string())))?;
        let begun = Instant::now();
        let mut response = sender.send_request(request).await?;
        let (mut first, mut reply) = (None, Vec::new());
        while let Some(frame) = response.frame().await {
            if let Some(data) = frame?.data_ref() {
                reply.extend_from_slice(data);
                // Pings come before the agent's first words.
                if first.is_none() && memmem::find(&reply, b"\"message_start\"").is_some() {
                    first = Some(begun.elapsed());
                }
            }
        }
        let is_complete = memmem::find(&reply, b"\"message_stop\"").is_some();
        let (true, true, Some(first)) = (response.status().is_success(), is_complete, first) else {
            let shown = String::from_utf8_lossy(&reply[..reply.len().min(SHOWN_BYTES)]).into_owned();
            return Err(
                format!("{address} answered {} with no complete reply:\n{shown}", response.status()).into()
            );
        };
        self.messages.push(json!({ "role": "assistant", "content": blocks(&reply)? }));
        Ok(Timed { first })
    }

    fn request(&self) -> Value {
        json!({
            "model": "claude-code",
            "max_tokens": 1024,
            "stream": true,
            "system": self.instructions,
            "tools": [{
                "name": "get_weather",
                "description": "Tells the weather of a city.",
                "input_schema": {
                    "type": "object",
                    "properties": { "city": { "type": "string" } },
                    "required": ["city"],
                },
            }],
            "messages": self.messages,
        })
    }
}

/// The blocks of a streamed reply, joined from their deltas.
fn blocks(reply: &[u8]) -> Result<Vec<Value>, AnyError> {
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for line in std::str::from_utf8(reply)?.lines() {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        let pieces = blocks.last_mut().map(|(_, pieces)| pieces);
        match (event["type"].as_str(), pieces) {
            (Some("content_block_start"), _) => blocks.push((event["content_block"].clone(), String::new())),
            (Some("content_block_delta"), Some(pieces)) => {
                let delta = &event["delta"];
                let piece = delta["text"].as_str().or_else(|| delta["partial_json"].as_str());
                pieces.push_str(piece.unwrap_or_default());
            }
            _ => {}
        }
    }
    blocks.into_iter().filter(|(block, _)| block["type"] != "thinking").map(complete).collect()
}

fn complete((mut block, pieces): (Value, String)) -> Result<Value, AnyError> {
    if block["type"] == "tool_use" {
        block["input"] = if pieces.is_empty() { json!({}) } else { serde_json::from_str(&pieces)? };
    } else {
        block["text"] = json!(pieces);
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_put_together_and_its_calls_are_answered() {
        let reply = [
            json!({"type": "message_start"}),
            json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "I "}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "will."}}),
            json!({"type": "content_block_start",
                "content_block": {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}}}),
            json!({"type": "content_block_delta", "delta": {"partial_json": "{\"city\":"}}),
            json!({"type": "content_block_delta", "delta": {"partial_json": "\"Paris\"}"}}),
            json!({"type": "message_stop"}),
        ]
        .map(|event| format!("event: x\ndata: {event}\n\n"))
        .concat();
        let blocks = blocks(reply.as_bytes()).unwrap();
        assert_eq!(
            blocks,
            [
                json!({"type": "text", "text": "I will."}),
                json!({"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Paris"}}),
            ]
        );
        let mut conversation = Conversation {
            messages: vec![json!({ "role": "assistant", "content": blocks })],
            ..Conversation::new()
        };
        conversation.answer_calls("sun").unwrap();
        let result = json!([{ "type": "tool_result", "tool_use_id": "c1", "content": "sun" }]);
        assert_eq!(conversation.messages[1]["content"], result);
        assert!(conversation.answer_calls("sun").is_err());
    }
}
