//! Writes the JSON of single chunks. The fields that every chunk repeats are serialized once and copied.

use serde::Serialize;
use toolgate_model::Fields;

use super::usage::UsageOut;
use crate::frame::write_data;

/// Writes the chunks of one choice.
pub(super) struct ChunkWriter {
    choice: u32,
    /// The fields before `choices`, without the closing brace: `{"id":…,"object":…,"created":…,"model":…`.
    prefix: Vec<u8>,
}

/// The fields that every chunk repeats.
#[derive(Serialize)]
pub(super) struct ChunkHead<'a> {
    pub(super) id: String,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
}

/// The fields of a choice beside its delta.
#[derive(Default, Serialize)]
pub(super) struct ChoiceFields<'a> {
    pub(super) finish_reason: Option<&'a str>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

impl ChunkWriter {
    pub(super) fn new(choice: u32) -> Self {
        Self { choice, prefix: Vec::new() }
    }

    /// Sets the repeated fields; must be called before the first chunk.
    pub(super) fn start(&mut self, head: &ChunkHead<'_>) {
        self.prefix = json(head);
        self.prefix.pop();
    }

    pub(super) fn is_started(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// A chunk with this delta and nothing else.
    pub(super) fn delta(&self, delta: &str, out: &mut Vec<u8>) {
        self.chunk(delta, &ChoiceFields::default(), &Fields::new(), out);
    }

    /// A chunk with further fields in its choice and at its top level.
    pub(super) fn chunk(&self, delta: &str, choice: &ChoiceFields<'_>, extra: &Fields, out: &mut Vec<u8>) {
        let mut data = self.prefix.clone();
        data.extend_from_slice(b",\"choices\":[{\"index\":");
        push_number(self.choice, &mut data);
        data.extend_from_slice(b",\"delta\":");
        data.extend_from_slice(delta.as_bytes());
        data.push(b',');
        data.extend_from_slice(without_braces(&json(choice)));
        data.extend_from_slice(b"}]");
        if !extra.is_empty() {
            data.push(b',');
            data.extend_from_slice(without_braces(&json(extra)));
        }
        data.push(b'}');
        write_data(&data, out);
    }

    /// A chunk whose delta is `before`, the quoted `text`, then `after`. The hot path: escapes the text straight into
    /// the output.
    pub(super) fn text(&self, before: &str, text: &str, after: &str, out: &mut Vec<u8>) {
        out.reserve(self.prefix.len() + text.len() + 128);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(b",\"choices\":[{\"index\":");
        push_number(self.choice, out);
        out.extend_from_slice(b",\"delta\":");
        out.extend_from_slice(before.as_bytes());
        push_text(text, out);
        out.extend_from_slice(after.as_bytes());
        out.extend_from_slice(b",\"finish_reason\":null}]}\n\n");
    }

    /// The chunk with token counts and no choices (T13).
    pub(super) fn usage(&self, usage: &UsageOut, out: &mut Vec<u8>) {
        let mut data = self.prefix.clone();
        data.extend_from_slice(b",\"choices\":[],\"usage\":");
        data.extend_from_slice(&json(usage));
        data.push(b'}');
        write_data(&data, out);
    }
}

/// The value as JSON text.
pub(super) fn json_text(value: &impl Serialize) -> String {
    String::from_utf8(json(value)).unwrap_or_default()
}

/// The text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_text(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Serializing cannot fail: keys are strings and numbers are finite.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    if serde_json::to_writer(&mut *out, text).is_err() {
        // Cannot happen: writing to a vector does not fail.
        out.extend_from_slice(b"\"\"");
    }
}

fn push_number(number: u32, out: &mut Vec<u8>) {
    if serde_json::to_writer(&mut *out, &number).is_err() {
        out.push(b'0');
    }
}

fn without_braces(object: &[u8]) -> &[u8] {
    object.get(1..object.len().saturating_sub(1)).unwrap_or_default()
}
