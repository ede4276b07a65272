//! Requests of the Messages API.

use serde_json::Value;

use super::{Image, Message, ModelRequest, Part, content, items, text_of};

impl ModelRequest {
    pub(in super::super) fn from_messages(body: &Value) -> Self {
        let system = content(&body["system"], part);
        let system = (!system.is_empty()).then(|| Message { role: "system".to_owned(), parts: system });
        let said = items(&body["messages"]).iter().map(|message| Message {
            role: text_of(&message["role"]),
            parts: content(&message["content"], part),
        });
        Self::new(body, system.into_iter().chain(said).collect())
    }
}

fn part(block: &Value) -> Part {
    match block["type"].as_str().unwrap_or_default() {
        "text" => Part::Text(text_of(&block["text"])),
        "image" => Part::Image(image(&block["source"])),
        "tool_use" => Part::Call {
            id: text_of(&block["id"]),
            name: text_of(&block["name"]),
            arguments: block["input"].to_string(),
        },
        "tool_result" => Part::Result {
            id: text_of(&block["tool_use_id"]),
            error: block["is_error"].as_bool(),
            parts: content(&block["content"], part),
        },
        "thinking" => Part::Reasoning { text: text_of(&block["thinking"]), seal: block["signature"].clone() },
        other => Part::Other(other.to_owned()),
    }
}

fn image(source: &Value) -> Image {
    match source["url"].as_str() {
        Some(url) => Image::from_url(url),
        None => Image::Inline { media_type: text_of(&source["media_type"]) },
    }
}
