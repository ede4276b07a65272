//! Citations of web pages, as notes that other dialects can write. Here a citation belongs to a whole text block.

use serde_json::{Value, json};
use toolgate_model::{Citation, Extras, Losses, Notes};

use super::ID;

/// The field with the citations of a text.
pub(super) const CITATIONS: &str = "citations";
const WEB_PAGE: &str = "web_search_result_location";

/// Adds the notes on a text to its extras.
pub(super) fn with_notes(extras: Extras) -> Extras {
    let listed = extras.field(ID, CITATIONS).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let citations: Vec<Citation> = listed.iter().filter_map(read).collect();
    // Citations of other types are not repeated by notes.
    let noted: &[&str] = if citations.len() == listed.len() { &[CITATIONS] } else { &[] };
    extras.with_notes(ID, Notes { citations, logprobs: Vec::new() }, noted)
}

fn read(citation: &Value) -> Option<Citation> {
    let is_page = citation.get("type")? == WEB_PAGE;
    Some(Citation {
        url: citation.get("url")?.as_str().filter(|_| is_page)?.to_owned(),
        title: citation.get("title").and_then(Value::as_str).map(str::to_owned),
        range: None,
    })
}

/// Writes the notes on a text as citations.
pub(super) fn write(notes: &Notes, text: &str, losses: &mut Losses) -> Vec<Value> {
    let Notes { citations, logprobs } = notes;
    if !logprobs.is_empty() {
        losses.unknown_to(ID, "text.logprobs");
    }
    citations.iter().map(|citation| write_one(citation, text)).collect()
}

fn write_one(citation: &Citation, text: &str) -> Value {
    let Citation { url, title, range } = citation;
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let cited = match range {
        Some(range) => text.chars().take(index(range.end)).skip(index(range.start)).collect(),
        None => text.to_owned(),
    };
    json!({ "type": WEB_PAGE, "cited_text": cited, "url": url, "title": title, "encrypted_index": "" })
}
