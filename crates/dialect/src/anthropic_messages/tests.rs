//! What the Messages dialect must do, as data: JSON in, JSON, events or an error out.

mod errors;
mod foreign;
mod replies;
mod requests;
mod streams;

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::reply::fold;
use toolgate_model::{Losses, Message, Reply, TurnError, TurnEvent, TurnRequest};

use super::DIALECT;
use crate::frame::{MAX_FRAME_BYTES, SseDecoder, write_event};
use crate::{ClientDialect, ReplyContext, RequestForm, UpstreamDialect};

fn read(request: &Value) -> TurnRequest {
    DIALECT.read_request(request.to_string().as_bytes()).unwrap().value
}

fn refusal(request: &Value) -> TurnError {
    DIALECT.read_request(request.to_string().as_bytes()).unwrap_err()
}

/// The body for a request of this dialect, and where something was lost.
fn write_back(request: &TurnRequest) -> (Value, Vec<String>) {
    let written = DIALECT.write_request(request, RequestForm::AsRead).unwrap();
    (serde_json::from_slice(&written.body).unwrap(), places(&written.losses))
}

/// The body a host gets, and where something was lost.
fn write(request: &TurnRequest) -> (Value, Vec<String>) {
    let written = crate::translation::written(&DIALECT, request);
    (serde_json::from_slice(&written.body).unwrap(), places(&written.losses))
}

fn places(losses: &Losses) -> Vec<String> {
    losses.iter().map(|loss| loss.place.clone()).collect()
}

fn request_of(messages: Vec<Message>) -> TurnRequest {
    TurnRequest::new("claude-opus-5", messages)
}

fn context() -> ReplyContext {
    ReplyContext {
        request: Arc::new(request_of(Vec::new())),
        now: 0,
        fallback_id: "1".into(),
        estimated_input: 77,
    }
}

/// A host's stream from the data of its frames; the event's name is the data's type.
fn frames(data: &[Value]) -> String {
    let mut out = Vec::new();
    for data in data {
        write_event(data["type"].as_str().unwrap(), data.to_string().as_bytes(), &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn events(stream: &str) -> Result<Vec<TurnEvent>, TurnError> {
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    let mut reader = DIALECT.reply_reader();
    let mut out = Vec::new();
    decoder.push(stream.as_bytes());
    while let Some(frame) = decoder.next_frame().unwrap() {
        reader.frame(frame, &mut out)?;
    }
    reader.end(&mut out)?;
    Ok(out)
}

fn folded(stream: &str) -> Reply {
    fold(events(stream).unwrap()).unwrap()
}

fn write_stream(events: Vec<TurnEvent>) -> String {
    let mut writer = DIALECT.reply_writer(context());
    let mut out = Vec::new();
    for event in events {
        writer.event(event, &mut out);
    }
    String::from_utf8(out).unwrap()
}

/// The data of every frame.
fn data_of(stream: &str) -> Vec<Value> {
    stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}
