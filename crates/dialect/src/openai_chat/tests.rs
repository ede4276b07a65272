//! Tests with small examples; recorded exchanges are checked by the conformance crate.

mod foreign_requests;
mod host_errors;
mod host_replies;
mod host_streams;
mod lenient_requests;
mod replies;
mod requests;
mod stream_reading;
mod stream_writing;

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::{Extras, Grammar, Reply, TurnError, TurnEvent, TurnRequest, reply};

use super::{DIALECT, ID};
use crate::frame::{MAX_FRAME_BYTES, SseDecoder};
use crate::{ClientDialect as _, ReplyContext, UpstreamDialect as _};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn read_request(body: &Value) -> TurnRequest {
    DIALECT.read_request(body.to_string().as_bytes()).unwrap().value
}

fn context(request: TurnRequest) -> ReplyContext {
    ReplyContext { request: Arc::new(request), now: 7, fallback_id: "fallback".into(), estimated_input: 0 }
}

fn plain_context() -> ReplyContext {
    context(TurnRequest::new("m", Vec::new()))
}

/// Reads frames, given as the data of each event, and checks the events with the grammar.
fn read_stream(frames: &[&str]) -> Result<Vec<TurnEvent>, TurnError> {
    let mut reader = DIALECT.reply_reader();
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    let mut events = Vec::new();
    let mut grammar = Grammar::new();
    for frame in frames {
        decoder.push(format!("data: {frame}\n\n").as_bytes());
        while let Some(frame) = decoder.next_frame().unwrap() {
            reader.frame(frame, &mut events)?;
        }
    }
    reader.end(&mut events)?;
    for event in &events {
        grammar.accept(event).unwrap();
    }
    Ok(events)
}

fn fold_stream(frames: &[&str]) -> Reply {
    reply::fold(read_stream(frames).unwrap()).unwrap()
}

/// A chunk with one choice.
fn chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"r1","model":"m","created":5,"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

fn last(finish_reason: &str) -> String {
    format!(
        r#"{{"id":"r1","model":"m","choices":[{{"index":0,"delta":{{}},"finish_reason":"{finish_reason}"}}]}}"#
    )
}

/// Writes events; returns the data of every frame and the comments.
fn write_stream(context: ReplyContext, events: Vec<TurnEvent>) -> Vec<String> {
    let mut writer = DIALECT.reply_writer(context);
    let mut bytes = Vec::new();
    for event in events {
        writer.event(event, &mut bytes);
    }
    frames(&bytes)
}

fn frames(bytes: &[u8]) -> Vec<String> {
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    decoder.push(bytes);
    let mut out = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap() {
        out.push(frame.data.to_owned());
    }
    out
}

fn no_extras() -> Extras {
    Extras::NONE
}
