//! Watches a reply that is relayed unread. Almost all frames are deltas, and those are passed over by name.

use serde::Deserialize;

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
        if let Ok(Counted { usage }) = serde_json::from_slice(body) {
            self.count(usage);
            self.reading.complete = true;
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
