//! Watches a relayed reply. Nearly every frame is passed over after a look for three words.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error;
use super::stream_read::read_usage;
use crate::frame::SseFrame;
use crate::{Meter, MeterReading};

/// The words. They are made ready once, for that costs more than a look.
static TELLING: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["\"usage\"", "\"finish_reason\"", "\"error\""].map(Finder::new));

/// The meter of one reply.
#[derive(Default)]
pub(super) struct ChatMeter {
    size: StreamSize,
    reading: MeterReading,
}

/// How much has passed. All chunks of a stream wrap what they say alike, so the shortest one shows how much of each
/// is wrapping; nothing has to be read for it.
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

    fn said(&self) -> usize {
        self.bytes - self.chunks * self.shortest
    }
}

impl ChatMeter {
    fn look(&mut self, text: &str) {
        let Ok(seen) = serde_json::from_str::<Seen<'_>>(text) else { return };
        if let Some(usage) = seen.usage.or(seen.x_groq.and_then(|beside| beside.usage)).and_then(read_usage) {
            self.reading.usage = Some(usage);
        }
        if seen.error.is_some() {
            self.reading.error = Some(error::read_in_band(text));
        }
        let finished =
            |choice: &SeenChoice<'_>| choice.finish_reason.as_ref().is_some_and(|word| !word.0.is_empty());
        // Some hosts send no `[DONE]`.
        self.reading.complete |= seen.choices.iter().flatten().any(finished);
    }
}

impl Meter for ChatMeter {
    fn frame(&mut self, frame: SseFrame<'_>) {
        let data = frame.data.trim();
        if data == "[DONE]" {
            self.reading.complete = true;
            return;
        }
        self.size.add(data.len());
        let bytes = data.as_bytes();
        let tells = |finder: &Finder<'_>| {
            finder.find(bytes).is_some_and(|at| !is_null(bytes, at + finder.needle().len()))
        };
        if TELLING.iter().any(tells) {
            self.look(data);
        }
    }

    fn whole(&mut self, body: &[u8]) {
        if let Ok(text) = std::str::from_utf8(body) {
            self.look(text);
        }
    }

    fn reading(&self) -> MeterReading {
        MeterReading { said_bytes: (self.size.chunks > 0).then(|| self.size.said()), ..self.reading.clone() }
    }
}

/// Whether the field whose name ends here is `null`: most frames say so of `usage` and `finish_reason`.
fn is_null(bytes: &[u8], name_end: usize) -> bool {
    let value = bytes[name_end..].iter().position(|byte| !matches!(byte, b':' | b' '));
    value.is_some_and(|at| bytes[name_end + at..].starts_with(b"null"))
}

#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<SeenBeside<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<SeenChoice<'a>>>,
}

#[derive(Deserialize)]
struct SeenBeside<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SeenChoice<'a> {
    #[serde(borrow)]
    finish_reason: Option<Word<'a>>,
}

#[derive(Deserialize)]
struct Word<'a>(#[serde(borrow)] Cow<'a, str>);
