//! Changes one field of a JSON body and leaves every other byte as it is.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The body with another `model`; `None` where the body has no such field.
pub(super) fn replace_model(body: &Bytes, model: &str) -> Option<Bytes> {
    let (start, end) = model_value(body)?;
    let value = serde_json::to_string(model).ok()?;
    let mut changed = Vec::with_capacity(body.len() + value.len());
    changed.extend_from_slice(&body[..start]);
    changed.extend_from_slice(value.as_bytes());
    changed.extend_from_slice(&body[end..]);
    Some(changed.into())
}

/// Where the value of the top-level `model` stands.
fn model_value(body: &[u8]) -> Option<(usize, usize)> {
    const FIRST_FIELD: &[u8] = b"{\"model\":\"";
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        model: &'a RawValue,
    }
    if let Some(rest) = body.strip_prefix(FIRST_FIELD) {
        // Most clients write the model first, and no known model's name needs an escape.
        let length = memchr::memchr2(b'"', b'\\', rest)?;
        if rest[length] == b'"' {
            return Some((FIRST_FIELD.len() - 1, FIRST_FIELD.len() + length + 1));
        }
    }
    let found: Body<'_> = serde_json::from_slice(body).ok()?;
    // The raw value is a part of the body's own text, so its address tells where it stands.
    let start = found.model.get().as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    Some((start, start + found.model.get().len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &'static str, expected: Option<&str>) {
        let changed = replace_model(&Bytes::from_static(body.as_bytes()), "ne\"w");
        let changed = changed.map(|bytes| String::from_utf8(bytes.to_vec()).expect("still text"));
        assert_eq!(changed.as_deref(), expected);
    }

    #[test]
    fn only_the_models_value_changes() {
        check(r#"{"model":"old","n":1.0}"#, Some(r#"{"model":"ne\"w","n":1.0}"#));
        check(r#"{"model":"o\"d","n":1}"#, Some(r#"{"model":"ne\"w","n":1}"#));
        check(
            r#"{ "a": {"model":"inner"}, "model" : "old" , "z":[ ] }"#,
            Some(r#"{ "a": {"model":"inner"}, "model" : "ne\"w" , "z":[ ] }"#),
        );
    }

    #[test]
    fn a_body_without_a_model_is_not_changed() {
        check(r#"{"a":{"model":"inner"}}"#, None);
        check(r#"{"model":"unfinished"#, None);
    }
}
