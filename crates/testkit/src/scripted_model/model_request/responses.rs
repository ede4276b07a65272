//! Requests of the Responses API.

use serde_json::Value;

use super::{Image, Message, ModelRequest, Part, content, items, text_of};

impl ModelRequest {
    pub(in super::super) fn from_responses(body: &Value) -> Self {
        let instructions = body["instructions"].as_str();
        let system = instructions.map(|text| one("system", Part::Text(text.to_owned())));
        let input = match body["input"].as_str() {
            Some(text) => vec![one("user", Part::Text(text.to_owned()))],
            None => items(&body["input"]).iter().map(item).collect(),
        };
        Self::new(body, system.into_iter().chain(input).collect())
    }
}

fn item(item: &Value) -> Message {
    match item["type"].as_str().unwrap_or("message") {
        "message" => Message { role: text_of(&item["role"]), parts: content(&item["content"], part) },
        "function_call" => one(
            "assistant",
            Part::Call {
                id: text_of(&item["call_id"]),
                name: text_of(&item["name"]),
                arguments: text_of(&item["arguments"]),
            },
        ),
        "function_call_output" => one(
            "tool",
            Part::Result {
                id: text_of(&item["call_id"]),
                error: None,
                parts: content(&item["output"], part),
            },
        ),
        "reasoning" => {
            let text = items(&item["summary"]).iter().map(|part| text_of(&part["text"])).collect();
            one("assistant", Part::Reasoning { text, seal: item["encrypted_content"].clone() })
        }
        other => one("assistant", Part::Other(other.to_owned())),
    }
}

fn part(part: &Value) -> Part {
    match part["type"].as_str().unwrap_or_default() {
        "input_text" | "output_text" => Part::Text(text_of(&part["text"])),
        "input_image" => Part::Image(Image::from_url(&text_of(&part["image_url"]))),
        other => Part::Other(other.to_owned()),
    }
}

fn one(role: &str, part: Part) -> Message {
    Message { role: role.to_owned(), parts: vec![part] }
}
