//! What is done with the fields this dialect does not type.

use serde_json::Value;
use toolgate_model::{Extras, Fields, Losses, Opaque};

use super::ID;

/// Carries unknown fields along. `null` and `[]` mean the same as nothing here, and hosts send many.
pub(super) fn extras(mut fields: Fields) -> Extras {
    fields.retain(|_, value| !is_empty_value(value));
    Extras::of(ID, fields)
}

/// The same with marks.
pub(super) fn marked_extras(mut fields: Fields, marks: Vec<&'static str>) -> Extras {
    fields.retain(|_, value| !is_empty_value(value));
    Extras::marked_by(ID, fields, marks)
}

/// Carries unknown fields of an object and of the object inside it, which is named `inner_name`.
pub(super) fn nested_extras(mut fields: Fields, inner_name: &str, mut inner: Fields) -> Extras {
    inner.retain(|_, value| !is_empty_value(value));
    if !inner.is_empty() {
        fields.insert(inner_name.to_owned(), Value::Object(inner));
    }
    extras(fields)
}

/// Undoes [`nested_extras`]: the fields of the object, then those of the inner one.
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

/// Takes an object out of the fields.
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

/// A whole object that nobody else knows, its tag first.
pub(super) fn opaque(tag: &str, fields: Fields) -> Opaque {
    let mut tagged = Fields::new();
    tagged.insert("type".to_owned(), Value::from(tag));
    tagged.extend(fields);
    Opaque { dialect: ID, kind: tag.to_owned(), fields: tagged }
}

/// Adds what a later chunk says to what earlier ones said: objects merge, lists grow, sound and its transcript are
/// continued, everything else is said anew.
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

/// Fields of `audio` that come in pieces.
const STREAMED_FIELDS: [&str; 2] = ["data", "transcript"];

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => false,
    }
}
