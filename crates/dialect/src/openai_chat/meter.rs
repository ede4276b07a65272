//! Watches a relayed reply. Nearly every frame is passed over after a look for three words; whole replies are skimmed.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_model::Usage;

use super::error;
use super::stream_read::read_usage;
use super::usage::{COUNTS, of_counts};
use crate::frame::SseFrame;
use crate::skim::{self, Ending, Skim};
use crate::{Meter, MeterReading};

/// The words. They are made ready once, for that costs more than a look.
static TELLING: LazyLock<Telling> = LazyLock::new(|| Telling {
    usage: Finder::new("\"usage\""),
    finish_reason: Finder::new("\"finish_reason\""),
    error: Finder::new("\"error\""),
});

struct Telling {
    usage: Finder<'static>,
    finish_reason: Finder<'static>,
    error: Finder<'static>,
}

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
        let Some(Glance { usage, tells_error, is_finished }) = skimmed(text).or_else(|| parsed(text)) else {
            return;
        };
        if usage.is_some() {
            self.reading.usage = usage;
        }
        if tells_error {
            self.reading.error = Some(error::read_in_band(text));
        }
        // Some hosts send no `[DONE]`.
        self.reading.complete |= is_finished;
    }
}

/// Looks at a whole reply.
pub(super) fn measure(body: &[u8]) -> MeterReading {
    if let Some(usage) = told_at_the_end(body) {
        return MeterReading { usage: Some(usage), complete: true, ..MeterReading::default() };
    }
    let mut meter = ChatMeter::default();
    if let Ok(text) = std::str::from_utf8(body) {
        meter.look(text);
    }
    meter.reading
}

/// What a whole reply says it cost, if it does so as most do: after a choice that is finished, and without a word of an
/// error. What comes before that is not read at all.
fn told_at_the_end(body: &[u8]) -> Option<Usage> {
    let ending = Ending::of(body);
    if is_null(ending.after(&TELLING.finish_reason)?) || TELLING.error.find(body).is_some() {
        return None;
    }
    let mut seen = None;
    ending.fields_from(&TELLING.usage, |skim, name| match name {
        "usage" => skim::once(&mut seen, skim_usage(skim)?),
        _ => skim.value().map(|_| ()),
    })?;
    seen?.read()
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
            finder.find(bytes).is_some_and(|at| !is_null(&bytes[at + finder.needle().len()..]))
        };
        let Telling { usage, finish_reason, error } = &*TELLING;
        if [usage, finish_reason, error].into_iter().any(tells) {
            self.look(data);
        }
    }

    fn reading(&self) -> MeterReading {
        MeterReading { said_bytes: (self.size.chunks > 0).then(|| self.size.said()), ..self.reading.clone() }
    }
}

/// Whether the field is `null` after whose name this comes: most frames say so of `usage` and `finish_reason`.
fn is_null(after_name: &[u8]) -> bool {
    let value = after_name.iter().position(|byte| !matches!(byte, b':' | b' '));
    value.is_some_and(|at| after_name[at..].starts_with(b"null"))
}

/// What a reply or a chunk of one says, as far as it matters here.
#[derive(Debug, PartialEq)]
struct Glance {
    usage: Option<Usage>,
    tells_error: bool,
    is_finished: bool,
}

/// The short way, for everything but errors and what few hosts send.
fn skimmed(text: &str) -> Option<Glance> {
    let (mut usage, mut choices, mut others) = (None, None, [None, None]);
    skim::object(text, |skim, name| match name {
        "usage" => skim::once(&mut usage, skim_usage(skim)?),
        "choices" => skim::once(&mut choices, skim_choices(skim)?),
        "error" => skim::once(&mut others[0], skim.value()?),
        "x_groq" => skim::once(&mut others[1], skim.value()?),
        _ => skim.value().map(|_| ()),
    })?;
    if others.into_iter().flatten().any(|value| value != "null") {
        return None;
    }
    let usage = usage.and_then(UsageSeen::read);
    Some(Glance { usage, tells_error: false, is_finished: choices.unwrap_or(false) })
}

/// Token counts, or a text with more in it.
enum UsageSeen<'a> {
    Counts([Option<u64>; 3]),
    Text(&'a str),
}

impl UsageSeen<'_> {
    fn read(self) -> Option<Usage> {
        match self {
            Self::Counts(counts) => Some(of_counts(counts)),
            Self::Text("null") => None,
            Self::Text(text) => read_usage(text),
        }
    }
}

fn skim_usage<'a>(skim: &mut Skim<'a>) -> Option<UsageSeen<'a>> {
    match skim.counts(COUNTS) {
        Some(counts) => Some(UsageSeen::Counts(counts)),
        None => skim.value().map(UsageSeen::Text),
    }
}

/// Whether any of the choices is finished.
fn skim_choices(skim: &mut Skim<'_>) -> Option<bool> {
    let mut is_any_finished = false;
    skim.array(|skim| {
        let mut reason = None;
        skim.object(|skim, name| match name {
            "finish_reason" => skim::once(&mut reason, skim.value()?),
            _ => skim.value().map(|_| ()),
        })?;
        if let Some(word) = reason.filter(|reason| *reason != "null") {
            is_any_finished |= !skim::plain_string(word)?.is_empty();
        }
        Some(())
    })?;
    Some(is_any_finished)
}

/// The long way.
fn parsed(text: &str) -> Option<Glance> {
    let seen: Seen<'_> = serde_json::from_str(text).ok()?;
    let usage = seen.usage.or(seen.x_groq.and_then(|beside| beside.usage));
    let finished =
        |choice: &SeenChoice<'_>| choice.finish_reason.as_ref().is_some_and(|word| !word.0.is_empty());
    Some(Glance {
        usage: usage.and_then(|usage| read_usage(usage.get())),
        tells_error: seen.error.is_some(),
        is_finished: seen.choices.iter().flatten().any(finished),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_see_the_same() {
        skim::tests::on_any_text(|text| {
            let text = String::from_utf8_lossy(text);
            if let Some(glance) = skimmed(&text) {
                assert_eq!(Some(glance), parsed(&text));
            }
        });
    }

    #[test]
    fn the_end_says_what_the_whole_says() {
        skim::tests::on_any_text(|text| {
            let text = String::from_utf8_lossy(text);
            if let (Some(usage), Some(whole)) = (told_at_the_end(text.as_bytes()), parsed(&text)) {
                assert_eq!((Some(usage), false), (whole.usage, whole.tells_error));
            }
        });
    }

    #[test]
    fn only_a_finished_reply_without_errors_is_told_by_its_end() {
        let check = |before: &str, after: &str, is_told: bool| {
            let text = format!(r#"{{{before}"usage":{{"prompt_tokens":3,"completion_tokens":4}}{after}}}"#);
            assert_eq!(
                told_at_the_end(text.as_bytes()).map(|usage| usage.total()),
                is_told.then_some(7),
                "{text}"
            );
        };
        let choices = r#""choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"#;
        check(choices, "", true);
        check(choices, r#","system_fingerprint":null"#, true);
        check(&format!(r#""id":"{}",{choices}"#, "r".repeat(5000)), "", true);
        check("", "", false);
        check(&choices.replace("\"stop\"", " null"), "", false);
        check(&format!(r#""error":{{"code":1}},{choices}"#), "", false);
        check(choices, r#","error":{"code":1}"#, false);
    }

    #[test]
    fn counts_are_read_as_usage_is() {
        let counts = [None, Some(0), Some(4), Some(7)];
        for (prompt, completion, total) in
            counts.into_iter().flat_map(|a| counts.into_iter().flat_map(move |b| counts.map(|c| (a, b, c))))
        {
            let long = serde_json::json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total});
            assert_eq!(Some(of_counts([prompt, completion, total])), read_usage(&long.to_string()));
        }
    }

    #[test]
    fn a_usual_reply_goes_the_short_way() {
        let reply = r#"{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},
            "logprobs":null,"finish_reason":"stop"}],"error":null,
            "usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"cost_usd":0.5}}"#;
        let glance = skimmed(reply);
        assert_eq!(glance.as_ref().and_then(|glance| Some(glance.usage.as_ref()?.total())), Some(7));
        assert!(glance.is_some_and(|glance| glance.is_finished));
    }
}
