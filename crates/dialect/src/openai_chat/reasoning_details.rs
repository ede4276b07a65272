//! `reasoning_details`: a list of texts, summaries and encrypted data that some hosts send beside or instead of a
//! reasoning text, and expect back unchanged. The whole list is the seal of the reasoning.

use serde_json::Value;
use toolgate_model::Seal;

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

/// The list as a seal.
pub(super) fn seal(details: Vec<Value>) -> Option<Seal> {
    (!details.is_empty()).then(|| Seal::new(ID, REASONING_DETAILS, Value::Array(details).to_string()))
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
