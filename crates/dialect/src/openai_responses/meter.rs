//! Watches a relayed reply: only the stream's last events are looked into, and those are skimmed.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error;
use super::stream_frames::Named;
use super::usage;
use super::wire::UsageBody;
use crate::frame::SseFrame;
use crate::skim;
use crate::{Meter, MeterReading};

/// What was seen of a reply.
#[derive(Default)]
pub(super) struct ResponseMeter {
    reading: MeterReading,
}

/// The few fields of a response that matter here.
#[derive(Debug, Deserialize, PartialEq)]
struct Seen<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    usage: Option<UsageBody>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct LastEvent<'a> {
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    error: Option<Value>,
}

/// What the data of the events that matter contains near its start, for hosts that leave the event's name out.
const TELLING: [(&str, Moment); 4] = [
    ("response.completed", Moment::End),
    ("response.incomplete", Moment::End),
    ("response.failed", Moment::Failure),
    ("error", Moment::Failure),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    End,
    Failure,
}

impl Meter for ResponseMeter {
    fn frame(&mut self, frame: SseFrame<'_>) {
        let Some(moment) = moment(frame) else { return };
        let Ok(event) = serde_json::from_str::<LastEvent<'_>>(frame.data) else { return };
        match (event.response, moment) {
            (Some(response), moment) => {
                self.see(response.get().as_bytes());
                self.reading.repeated = (moment == Moment::End).then(|| Arc::from(response.get()));
            }
            (None, Moment::Failure) => {
                let told = event.error.or_else(|| serde_json::from_str(frame.data).ok());
                self.reading.error = told.map(|told| error::from_value(&told, None));
            }
            (None, Moment::End) => {}
        }
    }

    fn reading(&self) -> MeterReading {
        self.reading.clone()
    }
}

impl ResponseMeter {
    fn see(&mut self, response: &[u8]) {
        let Some(response) = skimmed(response).or_else(|| serde_json::from_slice(response).ok()) else {
            return;
        };
        self.reading.usage = response.usage.map(usage::read).or(self.reading.usage.take());
        let failed = response.status.as_deref() == Some("failed");
        if let Some(told) = response.error.filter(|_| failed || response.status.is_none()) {
            self.reading.error = Some(error::from_value(&told, None));
        }
        self.reading.complete = !failed && response.status.is_some();
    }
}

/// Looks at a whole response.
pub(super) fn measure(body: &[u8]) -> MeterReading {
    let mut meter = ResponseMeter::default();
    meter.see(body);
    meter.reading
}

/// The short way to the fields of a response, unless it tells an error.
fn skimmed(response: &[u8]) -> Option<Seen<'_>> {
    let text = std::str::from_utf8(response).ok()?;
    let [status, usage, error] = skim::fields(text, ["status", "usage", "error"])?;
    if error.is_some() {
        return None;
    }
    let status = match status {
        Some(status) => Some(Cow::Borrowed(skim::plain_string(status)?)),
        None => None,
    };
    let usage = usage.map(serde_json::from_str).transpose().ok()?;
    Some(Seen { status, usage, error: None })
}

fn moment(frame: SseFrame<'_>) -> Option<Moment> {
    let named = |name: &str| TELLING.iter().find(|(known, _)| *known == name).map(|(_, moment)| *moment);
    if !frame.event.is_empty() && frame.event != "message" {
        return named(frame.event);
    }
    // Deltas are many and these are few: a cheap look first.
    let may_matter = TELLING
        .iter()
        .any(|(name, _)| memchr::memmem::find(frame.data.as_bytes(), name.as_bytes()).is_some());
    if !may_matter {
        return None;
    }
    named(&serde_json::from_str::<Named<'_>>(frame.data).ok()?.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_see_the_same() {
        skim::tests::on_any_text(|text| {
            if let Some(seen) = skimmed(text) {
                assert_eq!(Some(seen), serde_json::from_slice(text).ok());
            }
        });
    }

    #[test]
    fn a_usual_response_goes_the_short_way() {
        let response = br#"{"id":"resp_1","status":"completed","error":null,"output":[{"type":"message"}],
            "usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":1}}}"#;
        let seen = skimmed(response).expect("the short way");
        assert_eq!(
            (seen.status.as_deref(), seen.usage.map(|usage| usage.output_tokens)),
            (Some("completed"), Some(4))
        );
    }
}
