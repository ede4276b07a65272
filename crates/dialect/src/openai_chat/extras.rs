//! Unknown fields: how they are kept, nested and merged.

use serde_json::Value;
use toolgate_model::{Extras, Fields, Losses, Opaque};

use super::ID;

/// Keeps unknown fields. `null` and `[]` are dropped: they equal a missing field here, and hosts send many of them.
pub(super) fn extras(mut fields: Fields) -> Extras {
    fields.retain(|_, value| !is_empty_value(value));
    Extras::of(ID, fields)
}

/// Keeps unknown fields, with marks.
pub(super) fn marked_extras(mut fields: Fields, marks: Vec<&'static str>) -> Extras {
    fields.retain(|_, value| !is_empty_value(value));
    Extras::marked_by(ID, fields, marks)
}

/// Keeps unknown fields of an object and of its inner object `inner_name`.
pub(super) fn nested_extras(mut fields: Fields, inner_name: &str, mut inner: Fields) -> Extras {
    inner.retain(|_, value| !is_empty_value(value));
    if !inner.is_empty() {
        fields.insert(inner_name.to_owned(), Value::Object(inner));
    }
    extras(fields)
}

/// The inverse of [`nested_extras`]: the fields of the object and those of the inner one.
pub(super) fn write_nested(
    extras: &Extras,
    inner_name: &str,
    place: &str,
    losses: &mut Losses,
) -> (Fields, Fields) {
    let mut fields = extras.write(ID, place, losses);
    let inner = take_object(&mut fields, inner_name);
    (fields, inner)
}

/// Removes an object from the fields; empty if there is none.
pub(super) fn take_object(fields: &mut Fields, name: &str) -> Fields {
    match fields.get_mut(name) {
        Some(Value::Object(inner)) => {
            let inner = std::mem::take(inner);
            fields.shift_remove(name);
            inner
        }
        _ => Fields::new(),
    }
}

/// An object that only this dialect understands, its tag first.
pub(super) fn opaque(tag: &str, fields: Fields) -> Opaque {
    let mut tagged = Fields::new();
    tagged.insert("type".to_owned(), Value::from(tag));
    tagged.extend(fields);
    Opaque { dialect: ID, kind: tag.to_owned(), fields: tagged }
}

/// Merges the fields of a later chunk: objects are merged, arrays and [`STREAMED_FIELDS`] appended, other values
/// replaced.
pub(super) fn merge(into: &mut Fields, more: Fields) {
    for (name, value) in more {
        if is_empty_value(&value) {
            continue;
        }
        match (into.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(Value::Array(old)), Value::Array(new)) => old.extend(new),
            (Some(Value::String(old)), Value::String(new)) if STREAMED_FIELDS.contains(&name.as_str()) => {
                old.push_str(&new);
            }
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// String fields of `audio` that are streamed.
const STREAMED_FIELDS: [&str; 2] = ["data", "transcript"];

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => false,
    }
}
