//! Reads replies as the clients do, and checks each against the vendor's types.

use serde_json::{Value, json};
use toolgate_testkit::Schema;

use super::clients::Client;
use crate::clients::Frame;

/// What a client got.
#[derive(Debug, Default)]
pub(super) struct ClientReply {
    pub(super) text: String,
    pub(super) thought: String,
    pub(super) calls: Vec<ClientCall>,
    /// What the client sends back in the next turn.
    pub(super) echo: Vec<Value>,
}

#[derive(Debug)]
pub(super) struct ClientCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Whether the reply was written by the gateway. Relayed replies are the host's own bytes, with its quirks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    Gateway,
    Host,
}

pub(super) fn read_whole(client: Client, body: &Value, writer: Writer) -> Result<ClientReply, String> {
    let schema = match client {
        Client::Messages => Schema::MessagesReply,
        Client::Chat => Schema::ChatReply,
        Client::Responses => Schema::ResponsesReply,
    };
    check(schema, body, writer)?;
    Ok(match client {
        Client::Messages => from_blocks(&body["content"]),
        Client::Chat => from_message(&body["choices"][0]["message"]),
        Client::Responses => from_items(&body["output"]),
    })
}

pub(super) fn read_stream(client: Client, stream: &str, writer: Writer) -> Result<ClientReply, String> {
    let frames = Frame::read(stream);
    let schema = match client {
        Client::Messages => Schema::MessagesEvent,
        Client::Chat => Schema::ChatEvent,
        Client::Responses => Schema::ResponsesEvent,
    };
    let mut events = Vec::new();
    for frame in frames.iter().filter(|frame| frame.data != "[DONE]") {
        let event: Value =
            serde_json::from_str(&frame.data).map_err(|error| format!("{error}: {frame:?}"))?;
        check(schema, &event, writer).map_err(|complaint| format!("{complaint} in {event}"))?;
        events.push(event);
    }
    match client {
        Client::Messages => messages_stream(&events),
        Client::Chat => chat_stream(&events),
        Client::Responses => responses_stream(&events),
    }
}

fn check(schema: Schema, value: &Value, writer: Writer) -> Result<(), String> {
    if writer == Writer::Host {
        return Ok(());
    }
    let mut value = value.clone();
    // The API has it, and the SDK's type does not.
    for response in ["/store", "/response/store"] {
        remove(&mut value, response);
    }
    for choice in value.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        for message in ["message", "delta"] {
            if let Some(message) = choice.get_mut(message).and_then(Value::as_object_mut) {
                // The fields that chat clients know for reasoning; the vendor's type has none.
                message.remove("reasoning_content");
                message.remove("reasoning_details");
            }
        }
    }
    schema.check(&value).map_err(|complaint| format!("the reply is not the vendor's type: {complaint}"))
}

/// Removes the field at a pointer.
fn remove(value: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    if let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(name);
    }
}

fn from_blocks(content: &Value) -> ClientReply {
    let mut reply = ClientReply::default();
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => reply.text += text(&block["text"]),
            "thinking" => reply.thought += text(&block["thinking"]),
            "tool_use" => reply.calls.push(ClientCall {
                id: text(&block["id"]).to_owned(),
                name: text(&block["name"]).to_owned(),
                arguments: block["input"].clone(),
            }),
            _ => {}
        }
    }
    reply.echo = vec![json!({"role": "assistant", "content": content})];
    reply
}

fn from_message(message: &Value) -> ClientReply {
    let mut reply = ClientReply::default();
    let parts = message["content"].as_array().into_iter().flatten();
    reply.text = parts.map(|part| text(&part["text"])).collect();
    reply.text += text(&message["content"]);
    for field in ["reasoning_content", "reasoning"] {
        if reply.thought.is_empty() {
            text(&message[field]).clone_into(&mut reply.thought);
        }
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        reply.calls.push(ClientCall {
            id: text(&call["id"]).to_owned(),
            name: text(&call["function"]["name"]).to_owned(),
            arguments: arguments(&call["function"]["arguments"]),
        });
    }
    // The SDK leaves out what is null.
    let mut echo = message.clone();
    if let Some(fields) = echo.as_object_mut() {
        fields.retain(|name, value| name == "content" || !value.is_null());
        fields.remove("annotations");
    }
    for call in echo.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        call["type"] = json!("function");
        let arguments = arguments(&call["function"]["arguments"]);
        call["function"]["arguments"] = json!(arguments.to_string());
        if let Some(call) = call.as_object_mut() {
            call.remove("index");
        }
    }
    reply.echo = vec![echo];
    reply
}

fn from_items(output: &Value) -> ClientReply {
    let mut reply = ClientReply::default();
    for item in output.as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let parts = item["content"].as_array().into_iter().flatten();
                reply.text.extend(parts.map(|part| text(&part["text"]).to_owned()));
            }
            "reasoning" => {
                for list in ["summary", "content"] {
                    let parts = item[list].as_array().into_iter().flatten();
                    let thought: String = parts.map(|part| text(&part["text"])).collect();
                    if reply.thought.is_empty() {
                        reply.thought = thought;
                    }
                }
            }
            "function_call" => reply.calls.push(ClientCall {
                id: text(&item["call_id"]).to_owned(),
                name: text(&item["name"]).to_owned(),
                arguments: arguments(&item["arguments"]),
            }),
            _ => {}
        }
    }
    reply.echo = output.as_array().cloned().unwrap_or_default();
    reply
}

fn messages_stream(events: &[Value]) -> Result<ClientReply, String> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut partial = String::new();
    for event in events {
        let delta = &event["delta"];
        match event["type"].as_str().unwrap_or_default() {
            "content_block_start" => {
                blocks.push(event["content_block"].clone());
                partial.clear();
            }
            "content_block_delta" => {
                let block = blocks.last_mut().ok_or("a delta without a block")?;
                match delta["type"].as_str().unwrap_or_default() {
                    "text_delta" => append(&mut block["text"], &delta["text"]),
                    "thinking_delta" => append(&mut block["thinking"], &delta["thinking"]),
                    "signature_delta" => append(&mut block["signature"], &delta["signature"]),
                    "input_json_delta" => {
                        partial += text(&delta["partial_json"]);
                        block["input"] = serde_json::from_str(&partial).unwrap_or_else(|_| json!({}));
                    }
                    other => return Err(format!("unknown delta {other}")),
                }
            }
            _ => {}
        }
    }
    let ended = events.last().is_some_and(|event| event["type"] == "message_stop");
    if !ended {
        return Err(format!("the stream has no end: {events:?}"));
    }
    Ok(from_blocks(&json!(blocks)))
}

fn chat_stream(events: &[Value]) -> Result<ClientReply, String> {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls: Vec<Value> = Vec::new();
    let mut finish = Value::Null;
    for choice in events.iter().map(|event| &event["choices"][0]) {
        for (name, value) in choice["delta"].as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("role", _) | (_, Value::Null) => {}
                ("tool_calls", _) => {
                    value.as_array().into_iter().flatten().for_each(|piece| add_piece(&mut calls, piece));
                }
                (_, Value::Array(more)) => {
                    let list = message[name.as_str()].as_array().cloned().unwrap_or_default();
                    message[name.as_str()] = list.into_iter().chain(more.iter().cloned()).collect();
                }
                (_, value) => {
                    let slot = &mut message[name.as_str()];
                    match slot.as_array_mut() {
                        None => append(slot, value),
                        // Text after thinking parts is a part too.
                        Some(parts) if !text(value).is_empty() => {
                            parts.push(json!({"type": "text", "text": value}));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        if !choice["finish_reason"].is_null() {
            finish = choice["finish_reason"].clone();
        }
    }
    if finish.is_null() {
        return Err(format!("the stream has no finish reason: {events:?}"));
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    Ok(from_message(&message))
}

/// Adds a piece of a call to the calls so far.
fn add_piece(calls: &mut Vec<Value>, piece: &Value) {
    let known = calls.iter().position(|call| !piece["index"].is_null() && call["index"] == piece["index"]);
    let Some(known) = known else {
        calls.push(piece.clone());
        return;
    };
    let call = &mut calls[known];
    append(&mut call["function"]["arguments"], &piece["function"]["arguments"]);
    if let Some(extra) = piece.get("extra_content") {
        call["extra_content"] = extra.clone();
    }
}

fn responses_stream(events: &[Value]) -> Result<ClientReply, String> {
    let last = events.last().filter(|event| event["type"] == "response.completed");
    let last = last.ok_or_else(|| format!("the stream has no end: {events:?}"))?;
    let reply = from_items(&last["response"]["output"]);
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    let streamed: String = deltas.map(|event| text(&event["delta"])).collect();
    if streamed != reply.text {
        return Err(format!("the deltas say {streamed:?} and the end says {:?}", reply.text));
    }
    Ok(reply)
}

fn append(slot: &mut Value, more: &Value) {
    *slot = json!(format!("{}{}", text(slot), text(more)));
}

fn arguments(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        None => value.clone(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
