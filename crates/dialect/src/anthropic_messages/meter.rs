//! Watches a reply that is relayed unread. Almost all frames are deltas, and those are passed over by name.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error;
use super::stream_read::{MessageDeltaFrame, kind_of};
use super::wire::UsageIn;
use crate::frame::SseFrame;
use crate::{Meter, MeterReading};

/// Reads usage and the end off a stream that passes by.
#[derive(Default)]
pub(super) struct StreamMeter {
    usage: Option<UsageIn>,
    reading: MeterReading,
}

#[derive(Deserialize)]
struct StartFrame {
    message: Counted,
}

#[derive(Deserialize)]
struct Counted {
    usage: Option<UsageIn>,
}

#[derive(Deserialize)]
struct Whole {
    usage: Option<UsageIn>,
    content: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl Meter for StreamMeter {
    fn frame(&mut self, frame: SseFrame<'_>) {
        if self.reading.complete {
            return;
        }
        match &*kind_of(frame) {
            "message_start" => {
                if let Ok(StartFrame { message }) = serde_json::from_str(frame.data) {
                    self.count(message.usage);
                }
            }
            "message_delta" => {
                if let Ok(MessageDeltaFrame { usage, .. }) = serde_json::from_str(frame.data) {
                    self.count(usage);
                }
            }
            "message_stop" => self.reading.complete = true,
            "error" => self.reading.error = Some(error::read_in_stream(frame.data)),
            _ => {}
        }
    }

    fn whole(&mut self, body: &[u8]) {
        let Ok(Whole { usage, content, error }) = serde_json::from_slice(body) else { return };
        self.count(usage);
        self.reading.complete = content.is_some();
        // Some proxies tell errors with status 200.
        if let (None, Some(_), Ok(text)) = (content, error, std::str::from_utf8(body)) {
            self.reading.error = Some(error::read_in_stream(text));
        }
    }

    fn reading(&self) -> MeterReading {
        let usage = self.usage.clone().map(UsageIn::into_usage);
        MeterReading { usage, ..self.reading.clone() }
    }
}

impl StreamMeter {
    fn count(&mut self, usage: Option<UsageIn>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }
}
