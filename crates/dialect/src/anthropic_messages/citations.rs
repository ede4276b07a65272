//! Writes the web pages that a text cites. Here a citation belongs to a whole text block and quotes it.

use serde_json::{Value, json};
use toolgate_model::{Citation, Losses, Notes};

use super::ID;

/// The field with the citations of a text.
pub(super) const CITATIONS: &str = "citations";

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
    let cited: String = match range {
        Some(range) => text.chars().take(index(range.end)).skip(index(range.start)).collect(),
        None => text.to_owned(),
    };
    json!({ "type": "web_search_result_location", "cited_text": cited, "url": url, "title": title,
            "encrypted_index": "" })
}
