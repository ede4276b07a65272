//! Reads usage and completeness off a relayed reply. Nearly every frame is skipped after a search for three markers;
//! a whole reply is parsed once, for the fields that matter.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error;
use super::usage;
use crate::frame::SseFrame;
use crate::{Meter, MeterReading, json};

/// Field names that make a frame worth parsing. Built once: building a searcher costs more than one search.
static MARKERS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["\"usage\"", "\"finish_reason\"", "\"error\""].map(Finder::new));

/// Meters one stream.
#[derive(Default)]
pub(super) struct StreamMeter {
    size: StreamSize,
    reading: MeterReading,
}

/// Estimates how many bytes of content passed, without parsing. All chunks of a stream have the same envelope, so
/// the shortest chunk approximates its size.
#[derive(Default)]
struct StreamSize {
    chunks: usize,
    bytes: usize,
    shortest: usize,
}

impl StreamSize {
    fn add(&mut self, chunk: usize) {
        self.shortest = if self.chunks == 0 { chunk } else { self.shortest.min(chunk) };
        self.chunks += 1;
        self.bytes += chunk;
    }

    fn content(&self) -> usize {
        self.bytes - self.chunks * self.shortest
    }
}

impl Meter for StreamMeter {
    fn frame(&mut self, frame: SseFrame<'_>) {
        let data = frame.data.trim();
        if data == "[DONE]" {
            self.reading.complete = true;
            return;
        }
        self.size.add(data.len());
        if has_marker(data.as_bytes()) {
            self.parse(data.as_bytes());
        }
    }

    fn reading(&self) -> MeterReading {
        MeterReading {
            content_bytes: (self.size.chunks > 0).then(|| self.size.content()),
            ..self.reading.clone()
        }
    }
}

impl StreamMeter {
    /// Parses a chunk or a whole reply.
    fn parse(&mut self, text: &[u8]) {
        let Ok(MeteredReply { usage, error, x_groq, choices }) = json::read(text) else {
            self.reading.error = error::find(&String::from_utf8_lossy(text)).or(self.reading.error.take());
            return;
        };
        let usage = usage.or(x_groq.as_ref().and_then(|extension| extension.usage));
        if let Some(usage) = usage.and_then(|usage| usage::from_text(usage.get())) {
            self.reading.usage = Some(usage);
        }
        let choices = choices.unwrap_or_default();
        let error = error.filter(|error| choices.is_empty() || !error::is_empty(error.get()));
        let inner = choices.iter().find_map(|choice| choice.error);
        if error.is_some() {
            self.reading.error = Some(error::read_in_band(&String::from_utf8_lossy(text)));
        } else if let Some(error) = inner.or(x_groq.and_then(|extension| extension.error)) {
            self.reading.error = Some(error::read_in_band(error.get()));
        }
        // Some hosts send no `[DONE]`.
        self.reading.complete |= choices.iter().any(MeteredChoice::is_finished);
    }
}

/// Meters a whole reply. A body that is not a chat completion gives an incomplete reading.
pub(super) fn measure(body: &[u8]) -> MeterReading {
    let mut meter = StreamMeter::default();
    meter.parse(body);
    meter.reading
}

/// True if one of the marker fields occurs with a value. Most chunks carry `null` for `usage` and `finish_reason`.
fn has_marker(chunk: &[u8]) -> bool {
    MARKERS
        .iter()
        .any(|marker| marker.find(chunk).is_some_and(|at| !is_null(&chunk[at + marker.needle().len()..])))
}

fn is_null(after_name: &[u8]) -> bool {
    let value = after_name.iter().position(|byte| !matches!(byte, b':' | b' '));
    value.is_some_and(|at| after_name[at..].starts_with(b"null"))
}

/// The metered fields of a reply or a chunk.
#[derive(Deserialize)]
struct MeteredReply<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<GroqExtension<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<MeteredChoice<'a>>>,
}

/// Groq reports a stream's usage and errors here.
#[derive(Deserialize)]
struct GroqExtension<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MeteredChoice<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<FinishReason<'a>>,
}

#[derive(Deserialize)]
struct FinishReason<'a>(#[serde(borrow)] Cow<'a, str>);

impl MeteredChoice<'_> {
    fn is_finished(&self) -> bool {
        self.finish_reason.as_ref().is_some_and(|reason| !reason.0.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_reply_is_complete_only_as_valid_json_with_a_finished_choice() {
        let check = |body: &str, usage: Option<u64>, complete: bool, error: bool| {
            let reading = measure(body.as_bytes());
            let seen = (reading.usage.map(|usage| usage.total()), reading.complete, reading.error.is_some());
            assert_eq!(seen, (usage, complete, error), "{body}");
        };
        let choices = r#""choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]"#;
        let usage = r#""usage":{"prompt_tokens":3,"completion_tokens":4}"#;
        check(&format!("{{{choices},{usage}}}"), Some(7), true, false);
        check(&format!(r#"{{{usage},{choices},"error":null}}"#), Some(7), true, false);
        check(&format!("{{{choices}}}"), None, true, false);
        check(&format!("{{{usage}}}"), Some(7), false, false);
        check(&format!("{{{},{usage}}}", choices.replace("\"stop\"", "null")), Some(7), false, false);
        check(r#"{"error":{"code":1,"message":"no"}}"#, None, false, true);
        check(r#"[{"error":{"code":1,"message":"no"}}]"#, None, false, true);
        check(r#"{"choices":[{"error":{"message":"no"}}]}"#, None, false, true);
        check(r#"{"choices":[],"x_groq":{"error":"no"}}"#, None, false, true);
        check(&format!(r#"{{{choices},"error":{{}}}}"#), None, true, false);
        check(&format!("{{{choices},{usage}"), None, false, false);
        check(&format!("{{\"id\":\"cut,{choices},{usage}}}"), None, false, false);
        check("<html>", None, false, false);
    }
}
