//! A request to the model, in one form for all dialects.
//!
//! `describe` is the reply of the model `echo`:
//! `{"messages":[{"role":"user","parts":[{"kind":"text","text":"hi"}]}],"tools":["get_weather"]}`. Further kinds are
//! `image` (`media_type`, or `url`), `call` (`id`, `name`, `arguments` as text), `result` (`id`, `error`, `parts`),
//! `reasoning` (`text`, `seal`) and, for everything else, the dialect's own type name.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

/// One request.
#[derive(Debug)]
pub(super) struct ModelRequest {
    pub(super) model: String,
    pub(super) delivery: Delivery,
    /// Chat only: whether the usage is requested in a last chunk.
    pub(super) usage_chunk: UsageChunk,
    messages: Vec<Message>,
    tools: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Whole,
    Streamed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageChunk {
    Wanted,
    Unwanted,
}

#[derive(Debug)]
struct Message {
    role: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) enum Part {
    Text(String),
    Image(Image),
    Call { id: String, name: String, arguments: String },
    Result { id: String, error: Option<bool>, parts: Vec<Part> },
    Reasoning { text: String, seal: Value },
    Other(String),
}

#[derive(Debug)]
pub(super) enum Image {
    Inline { media_type: String },
    Linked { url: String },
}

impl ModelRequest {
    fn new(body: &Value, messages: Vec<Message>) -> Self {
        let tool_name = |tool: &Value| {
            let named = [&tool["name"], &tool["function"]["name"], &tool["custom"]["name"], &tool["type"]];
            named.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned()
        };
        let wanted = body["stream_options"]["include_usage"] == true;
        Self {
            model: text_of(&body["model"]),
            delivery: if body["stream"] == true { Delivery::Streamed } else { Delivery::Whole },
            usage_chunk: if wanted { UsageChunk::Wanted } else { UsageChunk::Unwanted },
            messages,
            tools: items(&body["tools"]).iter().map(tool_name).collect(),
        }
    }

    pub(super) fn describe(&self) -> Value {
        let message =
            |message: &Message| json!({"role": message.role, "parts": describe_all(&message.parts)});
        json!({"messages": self.messages.iter().map(message).collect::<Vec<_>>(), "tools": self.tools})
    }

    /// How many messages of the history are the model's own.
    pub(super) fn assistant_messages(&self) -> usize {
        self.messages.iter().filter(|message| message.role == "assistant").count()
    }

    /// The tool results after the last assistant message.
    pub(super) fn latest_results(&self) -> Vec<&Part> {
        let since =
            self.messages.iter().rposition(|message| message.role == "assistant").map_or(0, |last| last + 1);
        let parts = self.messages[since..].iter().flat_map(|message| &message.parts);
        parts.filter(|part| matches!(part, Part::Result { .. })).collect()
    }
}

impl Part {
    /// The text of a result, after `error: ` if it is marked as failed. An image becomes `[image TYPE]`.
    pub(super) fn result_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Image(Image::Inline { media_type: what } | Image::Linked { url: what }) => {
                format!("[image {what}]")
            }
            Self::Result { error, parts, .. } => {
                let texts: String = parts.iter().map(Self::result_text).collect();
                if *error == Some(true) { format!("error: {texts}") } else { texts }
            }
            Self::Call { .. } | Self::Reasoning { .. } | Self::Other(_) => String::new(),
        }
    }

    fn describe(&self) -> Value {
        match self {
            Self::Text(text) => json!({"kind": "text", "text": text}),
            Self::Image(Image::Inline { media_type }) => json!({"kind": "image", "media_type": media_type}),
            Self::Image(Image::Linked { url }) => json!({"kind": "image", "url": url}),
            Self::Call { id, name, arguments } => {
                json!({"kind": "call", "id": id, "name": name, "arguments": arguments})
            }
            Self::Result { id, error, parts } => {
                json!({"kind": "result", "id": id, "error": error, "parts": describe_all(parts)})
            }
            Self::Reasoning { text, seal } => json!({"kind": "reasoning", "text": text, "seal": seal}),
            Self::Other(kind) => json!({"kind": kind}),
        }
    }
}

impl Image {
    /// Reads a URL. A `data:` URL contains the image itself.
    fn from_url(url: &str) -> Self {
        match url.strip_prefix("data:").and_then(|inline| inline.split_once(';')) {
            Some((media_type, _)) => Self::Inline { media_type: media_type.to_owned() },
            None => Self::Linked { url: url.to_owned() },
        }
    }
}

fn describe_all(parts: &[Part]) -> Vec<Value> {
    parts.iter().map(Part::describe).collect()
}

/// Content: a text, a list of parts, or nothing.
fn content(content: &Value, part: impl Fn(&Value) -> Part) -> Vec<Part> {
    match content.as_str() {
        Some(text) => vec![Part::Text(text.to_owned())],
        None => items(content).iter().map(part).collect(),
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
