//! Requests of the Chat Completions API.

use serde_json::Value;

use super::{Image, Message, ModelRequest, Part, content, items, text_of};

impl ModelRequest {
    pub(in super::super) fn from_chat(body: &Value) -> Self {
        Self::new(body, items(&body["messages"]).iter().map(message).collect())
    }
}

fn message(message: &Value) -> Message {
    let role = text_of(&message["role"]);
    let said = content(&message["content"], part);
    if role == "tool" {
        let result = Part::Result { id: text_of(&message["tool_call_id"]), error: None, parts: said };
        return Message { role, parts: vec![result] };
    }
    let reasoning = message["reasoning_content"].as_str();
    let reasoning = reasoning.map(|text| Part::Reasoning { text: text.to_owned(), seal: Value::Null });
    let calls = items(&message["tool_calls"]).iter().map(call);
    Message { role, parts: reasoning.into_iter().chain(said).chain(calls).collect() }
}

fn call(call: &Value) -> Part {
    let function = &call["function"];
    Part::Call {
        id: text_of(&call["id"]),
        name: text_of(&function["name"]),
        arguments: text_of(&function["arguments"]),
    }
}

fn part(part: &Value) -> Part {
    match part["type"].as_str().unwrap_or_default() {
        "text" => Part::Text(text_of(&part["text"])),
        "image_url" => Part::Image(Image::from_url(&text_of(&part["image_url"]["url"]))),
        other => Part::Other(other.to_owned()),
    }
}
