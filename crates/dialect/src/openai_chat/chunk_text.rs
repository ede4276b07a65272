//! Pieces of JSON that make up a chunk.

use serde::Serialize;
use toolgate_model::Fields;

/// Nothing we write can fail to serialise: keys are strings and numbers finite.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_text(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    if serde_json::to_writer(&mut *out, text).is_err() {
        // A vector takes every byte.
        out.extend_from_slice(b"\"\"");
    }
}

pub(super) fn push_number(number: u32, out: &mut Vec<u8>) {
    if serde_json::to_writer(&mut *out, &number).is_err() {
        out.push(b'0');
    }
}

pub(super) fn push_fields(fields: &Fields, data: &mut Vec<u8>) {
    if !fields.is_empty() {
        data.push(b',');
        data.extend_from_slice(inner(&json(fields)));
    }
}

/// An object's text without its braces.
pub(super) fn inner(object: &[u8]) -> &[u8] {
    object.get(1..object.len().saturating_sub(1)).unwrap_or_default()
}
