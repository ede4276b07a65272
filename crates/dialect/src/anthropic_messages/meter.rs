//! Watches a reply that is relayed unread. Almost all frames are deltas, and those are passed over by name; whole
//! replies are skimmed.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error;
use super::stream_read::{MessageDeltaFrame, kind_of};
use super::wire::UsageIn;
use crate::frame::SseFrame;
use crate::skim::{self, Ending};
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

    fn reading(&self) -> MeterReading {
        let usage = self.usage.clone().map(UsageIn::into_usage);
        MeterReading { usage, ..self.reading.clone() }
    }
}

/// Looks at a whole reply.
pub(super) fn measure(body: &[u8]) -> MeterReading {
    let read = told_at_the_end(body).or_else(|| skimmed(body)).or_else(|| serde_json::from_slice(body).ok());
    let Some(Whole { usage, content, error }) = read else {
        return MeterReading::default();
    };
    let mut meter = StreamMeter::default();
    meter.count(usage);
    // Some proxies tell errors with status 200.
    let error = match (content, error) {
        (None, Some(_)) => std::str::from_utf8(body).ok().map(error::read_in_stream),
        _ => None,
    };
    let usage = meter.usage.map(UsageIn::into_usage);
    MeterReading { usage, complete: content.is_some(), error, ..MeterReading::default() }
}

/// The fields of a whole reply that matter here.
#[derive(Debug, Deserialize, PartialEq)]
struct Whole {
    usage: Option<UsageIn>,
    content: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// The shortest way to them, for messages that say what they cost after their content, as most do. What comes before
/// that is not read, only searched for words.
fn told_at_the_end(body: &[u8]) -> Option<Whole> {
    static WORDS: LazyLock<[Finder<'static>; 3]> =
        LazyLock::new(|| ["\"usage\"", "\"content\"", "\"error\""].map(Finder::new));
    let [usage, content, error] = &*WORDS;
    if content.find(body).is_none() || error.find(body).is_some() {
        return None;
    }
    let mut told = None;
    Ending::of(body).fields_from(usage, |skim, name| match name {
        "usage" => skim::once(&mut told, skim.value()?),
        _ => skim.value().map(|_| ()),
    })?;
    let usage = serde_json::from_str(told?).ok()?;
    Some(Whole { usage, content: Some(IgnoredAny), error: None })
}

/// The short way to them.
fn skimmed(body: &[u8]) -> Option<Whole> {
    let text = std::str::from_utf8(body).ok()?;
    let [usage, content, error] = skim::fields(text, ["usage", "content", "error"])?;
    let usage = usage.map(serde_json::from_str).transpose().ok()?;
    Some(Whole { usage, content: content.map(|_| IgnoredAny), error: error.map(|_| IgnoredAny) })
}

impl StreamMeter {
    fn count(&mut self, usage: Option<UsageIn>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_see_the_same() {
        skim::tests::on_any_text(|text| {
            if let Some(whole) = skimmed(text) {
                assert_eq!(Some(whole), serde_json::from_slice(text).ok());
            }
        });
    }

    #[test]
    fn the_end_says_what_the_whole_says() {
        skim::tests::on_any_text(|text| {
            let read = serde_json::from_slice::<Whole>(text).ok();
            if let (Some(told), Some(whole)) = (told_at_the_end(text), read) {
                assert_eq!((told.usage, None), (whole.usage, whole.error));
            }
        });
    }

    #[test]
    fn a_long_reply_goes_the_shortest_way_unless_it_tells_an_error() {
        let reply = format!(
            r#"{{"content":[{{"text":"{}"}}],"usage":{{"output_tokens":4}},"container":null}}"#,
            "word ".repeat(1000)
        );
        let told = told_at_the_end(reply.as_bytes()).expect("the shortest way");
        assert_eq!(told.usage.and_then(|usage| usage.output_tokens), Some(4));
        let unusual = [reply.replace("container", "error"), reply.replace("content", "choices"), reply + "}"];
        assert!(unusual.iter().all(|reply| told_at_the_end(reply.as_bytes()).is_none()));
    }

    #[test]
    fn a_usual_reply_goes_the_short_way() {
        let reply = br#"{"id":"msg_1","content":[{"type":"text","text":"hi"}],"stop_sequence":null,
            "usage":{"input_tokens":3,"output_tokens":4,"service_tier":"standard"}}"#;
        let whole = skimmed(reply).expect("the short way");
        assert_eq!((whole.usage.and_then(|usage| usage.output_tokens), whole.error), (Some(4), None));
        assert!(whole.content.is_some());
    }
}
