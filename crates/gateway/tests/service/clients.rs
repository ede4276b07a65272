//! Clients of the three APIs: how each sends a request and reads an error.

use serde_json::{Value, json};

/// A client of one API.
pub(crate) struct Client {
    pub(crate) path: &'static str,
    /// A request for this model; `true` for a stream.
    pub(crate) ask: fn(&str, bool) -> Value,
    /// The message of an error body. `None` if it is not in this API's format.
    pub(crate) error: fn(&Value) -> Option<String>,
    /// The message of the error that ends a stream. `None` if there is none, or if anything follows it.
    pub(crate) stream_error: fn(&[Frame]) -> Option<String>,
    /// Whether a stream is complete.
    pub(crate) is_complete: fn(&[Frame]) -> bool,
    /// The API's keep-alive frame.
    pub(crate) ping: &'static str,
}

/// One frame of a stream.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Frame {
    /// The frames of a stream, without comments and pings. Bytes after the last frame count as one more.
    pub(crate) fn read(stream: &str) -> Vec<Self> {
        let field = |frame: &str, name: &str| {
            frame.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
        };
        let frames = stream
            .split("\n\n")
            .map(|frame| Self { name: field(frame, "event:"), data: field(frame, "data:") });
        frames.filter(|frame| !frame.data.is_empty() && frame.name != "ping").collect()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

pub(crate) const CLIENTS: [Client; 3] = [
    Client {
        path: "/v1/messages",
        ask: |model, stream| json!({ "model": model, "max_tokens": 100, "stream": stream, "messages": [{ "role": "user", "content": "hello" }] }),
        error: |body| {
            let named = body["type"] == "error" && body["error"]["type"].is_string();
            text(&body["error"]["message"]).filter(|_| named)
        },
        stream_error: |frames| {
            let last = frames.last().filter(|last| last.name == "error")?.json();
            text(&last["error"]["message"]).filter(|_| last["type"] == "error")
        },
        is_complete: |frames| frames.last().is_some_and(|last| last.name == "message_stop"),
        ping: "event: ping\n",
    },
    Client {
        path: "/v1/chat/completions",
        ask: |model, stream| json!({ "model": model, "stream": stream, "messages": [{ "role": "user", "content": "hello" }] }),
        error: openai_error,
        stream_error: |frames| {
            let [.., error, done] = frames else { return None };
            openai_error(&error.json()).filter(|_| done.data == "[DONE]")
        },
        is_complete: |frames| {
            let [.., finish, done] = frames else { return false };
            done.data == "[DONE]" && finish.json()["choices"][0]["finish_reason"] == "stop"
        },
        ping: ": ping\n",
    },
    Client {
        path: "/v1/responses",
        ask: |model, stream| json!({ "model": model, "stream": stream, "input": "hello" }),
        error: openai_error,
        stream_error: |frames| {
            let last = frames.last()?;
            match last.name.as_str() {
                "response.failed" => {
                    let response = &last.json()["response"];
                    text(&response["error"]["message"]).filter(|_| response["status"] == "failed")
                }
                "error" => text(&last.json()["message"]),
                _ => None,
            }
        },
        is_complete: |frames| frames.last().is_some_and(|last| last.name == "response.completed"),
        ping: ": ping\n",
    },
];

fn openai_error(body: &Value) -> Option<String> {
    text(&body["error"]["message"]).filter(|_| body["type"].is_null() && body["error"]["type"].is_string())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
