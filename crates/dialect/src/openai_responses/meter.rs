//! Reads usage and completeness off a relayed reply. Only the stream's last events are parsed; they carry the whole
//! response. A whole reply is parsed once, for the fields that matter.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error;
use super::usage;
use super::wire::UsageBody;
use super::wire_stream::Named;
use crate::frame::SseFrame;
use crate::{Meter, MeterReading, json};

/// The events that are parsed. In frames without an event name their names are searched for in the data.
const MARKERS: [(&str, LastEvent); 4] = [
    ("response.completed", LastEvent::End),
    ("response.incomplete", LastEvent::End),
    ("response.failed", LastEvent::Failure),
    ("error", LastEvent::Failure),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum LastEvent {
    End,
    Failure,
}

/// Meters one stream.
#[derive(Default)]
pub(super) struct StreamMeter {
    reading: MeterReading,
}

#[derive(Deserialize)]
struct LastFrame<'a> {
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    error: Option<Value>,
}

impl Meter for StreamMeter {
    fn frame(&mut self, frame: SseFrame<'_>) {
        let Some(event) = last_event(frame) else { return };
        let Ok(LastFrame { response, error }) = serde_json::from_str(frame.data) else { return };
        match (response, event) {
            (Some(response), event) => {
                self.response(response.get().as_bytes());
                self.reading.repeated = (event == LastEvent::End).then(|| Arc::from(response.get()));
            }
            (None, LastEvent::Failure) => {
                let error = error.or_else(|| serde_json::from_str(frame.data).ok());
                self.reading.error = error.map(|error| error::from_value(&error));
            }
            (None, LastEvent::End) => {}
        }
    }

    fn reading(&self) -> MeterReading {
        self.reading.clone()
    }
}

impl StreamMeter {
    fn response(&mut self, response: &[u8]) {
        let Ok(MeteredResponse { status, usage, error }) = json::read(response) else { return };
        self.reading.usage = usage.map(usage::read).or(self.reading.usage.take());
        let failed = status.as_deref() == Some("failed");
        if let Some(error) = error.filter(|_| failed || status.is_none()) {
            self.reading.error = Some(error::from_value(&error));
        }
        self.reading.complete = !failed && status.is_some();
    }
}

/// Meters a whole response. A body that is not a response gives an incomplete reading.
pub(super) fn measure(body: &[u8]) -> MeterReading {
    let mut meter = StreamMeter::default();
    meter.response(body);
    meter.reading
}

/// The metered fields of a response.
#[derive(Deserialize)]
struct MeteredResponse<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    usage: Option<UsageBody>,
    error: Option<Value>,
}

fn last_event(frame: SseFrame<'_>) -> Option<LastEvent> {
    let by_name = |name: &str| MARKERS.iter().find(|(known, _)| *known == name).map(|(_, event)| *event);
    if !frame.event.is_empty() && frame.event != "message" {
        return by_name(frame.event);
    }
    // Most frames are deltas: a substring search is cheaper than parsing each of them.
    let data = frame.data.as_bytes();
    if !MARKERS.iter().any(|(name, _)| memchr::memmem::find(data, name.as_bytes()).is_some()) {
        return None;
    }
    by_name(&serde_json::from_str::<Named<'_>>(frame.data).ok()?.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_response_is_complete_only_as_valid_json_with_a_status() {
        let check = |body: &str, usage: Option<u64>, complete: bool, error: bool| {
            let reading = measure(body.as_bytes());
            let seen = (reading.usage.map(|usage| usage.output), reading.complete, reading.error.is_some());
            assert_eq!(seen, (usage, complete, error), "{body}");
        };
        let usage = r#""usage":{"input_tokens":3,"output_tokens":4}"#;
        check(&format!(r#"{{"status":"completed","error":null,{usage}}}"#), Some(4), true, false);
        check(&format!(r#"{{{usage},"status":"incomplete"}}"#), Some(4), true, false);
        check(r#"{"status":"failed","error":{"message":"no"}}"#, None, false, true);
        check(r#"{"error":{"message":"no"}}"#, None, false, true);
        check(&format!(r#"{{"output":[}},"status":"completed",{usage}}}"#), None, false, false);
        check("<html>", None, false, false);
    }
}
