//! `reasoning_details`: a list of texts, summaries and encrypted data that some hosts send beside or instead of a
//! reasoning text, and expect back unchanged. The whole list is the seal of the reasoning. Clients return it as well, so it
//! also carries the seals of other dialects, one per detail.

use serde_json::{Value, json};
use toolgate_model::{Seal, SealToken};

use super::ID;

/// The name of the field, and the kind of the seal.
pub(super) const REASONING_DETAILS: &str = "reasoning_details";

/// Fields that a stream sends in pieces.
const STREAMED_FIELDS: [&str; 2] = ["text", "summary"];

/// The text of the list; empty if everything is encrypted.
pub(super) fn text(details: &[Value]) -> String {
    let text = |detail: &Value| {
        let text = detail.get("text").or_else(|| detail.get("summary"))?.as_str()?;
        Some(text.to_owned())
    };
    details.iter().filter_map(text).collect()
}

/// The list as a seal, or the other dialect's seal in it.
pub(super) fn seal(details: Vec<Value>) -> Option<Seal> {
    if let Some([token]) = foreign_seals(&details).as_deref() {
        return Some(token.seal.clone());
    }
    (!details.is_empty()).then(|| Seal::new(ID, REASONING_DETAILS, Value::Array(details).to_string()))
}

/// The detail that carries another dialect's seal to a client, with the text that it seals.
pub(super) fn foreign(seal: &Seal, text: &str, index: usize) -> Option<Value> {
    if seal.came_from(ID) || seal.data.is_empty() {
        return None;
    }
    let token = SealToken { seal: seal.clone(), text: Some(text.to_owned()) };
    Some(
        json!({"type": "reasoning.encrypted", "data": token.to_string(), "format": "toolgate", "index": index}),
    )
}

/// The seals of other dialects that a client returns, each of a block of its own. `None` if the list is a host's.
pub(super) fn foreign_seals(details: &[Value]) -> Option<Vec<SealToken>> {
    let token = |detail: &Value| SealToken::parse(detail.get("data")?.as_str()?);
    details.iter().map(token).collect::<Option<Vec<_>>>().filter(|tokens| !tokens.is_empty())
}

/// The list that a seal holds.
pub(super) fn of_seal(seal: &Seal) -> Option<Value> {
    let is_own = seal.belongs_to(ID) && seal.kind == REASONING_DETAILS;
    is_own.then(|| serde_json::from_str(&seal.data).ok()).flatten()
}

/// Appends the details of a later chunk. Pieces of one detail have the same type and index; encrypted data is never in
/// pieces.
pub(super) fn append(details: &mut Vec<Value>, more: Vec<Value>) {
    for detail in more {
        let is_same = |last: &Value| {
            let has_index = detail.get("index").is_some_and(|index| !index.is_null());
            has_index
                && detail.get("data").is_none()
                && ["type", "index"].iter().all(|name| last.get(*name) == detail.get(*name))
        };
        match (details.last_mut().filter(|last| is_same(last)), detail) {
            (Some(Value::Object(last)), Value::Object(piece)) => {
                for (name, value) in piece {
                    match (last.get_mut(&name), value) {
                        (Some(Value::String(old)), Value::String(new))
                            if STREAMED_FIELDS.contains(&name.as_str()) =>
                        {
                            old.push_str(&new);
                        }
                        (Some(_), Value::Null) => {}
                        (_, value) => {
                            last.insert(name, value);
                        }
                    }
                }
            }
            (_, detail) => details.push(detail),
        }
    }
}
