//! Tests with small examples: requests, whole replies, streams.
#![expect(clippy::needless_pass_by_value, reason = "cases read better with `json!` as an argument")]

mod host_streams;
mod reply;
mod request;
mod stream;
mod translation;

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::{TurnError, TurnEvent, TurnRequest};

use super::DIALECT;
use crate::frame::{MAX_FRAME_BYTES, SseDecoder, SseFrame};
use crate::{ClientDialect, ReplyContext, UpstreamDialect};

/// Reads a client's request.
fn read_request(body: &Value) -> TurnRequest {
    DIALECT.read_request(body.to_string().as_bytes()).expect("the request is valid").value
}

/// The body that the host receives.
fn sent(request: &TurnRequest) -> Value {
    let written = crate::translation::written(&DIALECT, request);
    serde_json::from_slice(&written.body).expect("the body is JSON")
}

/// The context of a plain request.
fn context() -> ReplyContext {
    context_of(TurnRequest::new("the-model", Vec::new()))
}

fn context_of(request: TurnRequest) -> ReplyContext {
    ReplyContext {
        request: Arc::new(request),
        now: 1_700_000_000,
        fallback_id: "resp_ours".into(),
        estimated_input: 7,
    }
}

/// Reads a stream of events without event names.
fn read_stream(events: &[Value]) -> (Vec<TurnEvent>, Result<(), TurnError>) {
    let mut reader = DIALECT.reply_reader();
    let mut out = Vec::new();
    let mut feed = || -> Result<(), TurnError> {
        for event in events {
            reader.frame(SseFrame { event: "", data: &event.to_string() }, &mut out)?;
        }
        reader.end(&mut out)
    };
    let end = feed();
    (out, end)
}

/// Writes these events as a stream.
fn write_stream(events: Vec<TurnEvent>, context: ReplyContext) -> Vec<Value> {
    let mut writer = DIALECT.reply_writer(context);
    let mut bytes = Vec::new();
    for event in events {
        writer.event(event, &mut bytes);
    }
    frames(&bytes)
}

/// The data of the frames; each frame's event name must equal its type.
fn frames(bytes: &[u8]) -> Vec<Value> {
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    decoder.push(bytes);
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next_frame().expect("the frames are well formed") {
        let data: Value = serde_json::from_str(frame.data).expect("the data is JSON");
        assert_eq!(data["type"], frame.event);
        assert_eq!(data["sequence_number"], frames.len());
        frames.push(data);
    }
    frames
}
