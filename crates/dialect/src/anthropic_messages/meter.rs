//! Reads usage and completeness off a relayed reply. A stream's frames are selected by event name, so the many
//! deltas are never parsed; a whole reply is parsed once, for the fields that matter.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error;
use super::wire::UsageIn;
use super::wire_stream::{MessageDeltaFrame, kind_of};
use crate::frame::SseFrame;
use crate::{Meter, MeterReading, json};

/// Meters one stream.
#[derive(Default)]
pub(super) struct StreamMeter {
    usage: Option<UsageIn>,
    reading: MeterReading,
}

#[derive(Deserialize)]
struct StartFrame {
    message: StartMessage,
}

#[derive(Deserialize)]
struct StartMessage {
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

    fn reading(&self) -> MeterReading {
        let usage = self.usage.clone().map(UsageIn::into_usage);
        MeterReading { usage, ..self.reading.clone() }
    }
}

impl StreamMeter {
    /// Later counts replace only the fields they name.
    fn count(&mut self, usage: Option<UsageIn>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }
}

/// Meters a whole reply. A body that is not a message gives an incomplete reading.
pub(super) fn measure(body: &[u8]) -> MeterReading {
    let Ok(MeteredMessage { usage, content, error }) = json::read(body) else {
        return MeterReading::default();
    };
    // Some proxies send errors with status 200.
    let error = error.filter(|_| content.is_none());
    MeterReading {
        usage: usage.map(UsageIn::into_usage),
        complete: content.is_some(),
        error: error.map(|_| error::read_in_stream(&String::from_utf8_lossy(body))),
        ..MeterReading::default()
    }
}

/// The metered fields of a whole reply.
#[derive(Deserialize)]
struct MeteredMessage {
    usage: Option<UsageIn>,
    content: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_reply_is_complete_only_as_valid_json_with_content() {
        let check = |body: &str, usage: Option<u64>, complete: bool, error: bool| {
            let reading = measure(body.as_bytes());
            let seen = (reading.usage.map(|usage| usage.output), reading.complete, reading.error.is_some());
            assert_eq!(seen, (usage, complete, error), "{body}");
        };
        check(r#"{"content":[{"text":"hi"}],"usage":{"output_tokens":4}}"#, Some(4), true, false);
        check(r#"{"usage":{"output_tokens":4},"content":[],"error":null}"#, Some(4), true, false);
        check(r#"{"content":[]}"#, None, true, false);
        check(r#"{"error":{"type":"api_error","message":"no"}}"#, None, false, true);
        check(r#"{"content":[{"text":"cut],"usage":{"output_tokens":4}}"#, None, false, false);
        check(r#"{"content":[],"usage":{"output_tokens":4}}}"#, None, false, false);
        check("<html>", None, false, false);
        assert!(!measure(b"{\"content\":[\"\xff\"]}").complete);
    }
}
