//! Parses a whole value as one of the types its schema allows (P13 to P19). A value that matches none is
//! rejected, never guessed.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{escape, repair};
use crate::recovery::Recovery;
use crate::schema::{Notation, Parameter, Types};

/// A value as JSON, and the heuristic that was needed.
#[derive(Debug, PartialEq)]
pub(crate) struct CoercedValue {
    pub(crate) json: String,
    pub(crate) recovery: Option<Recovery>,
}

impl CoercedValue {
    fn exact(json: impl Into<String>) -> Self {
        Self { json: json.into(), recovery: None }
    }

    fn recovered(recovery: Recovery, json: impl Into<String>) -> Self {
        Self { json: json.into(), recovery: Some(recovery) }
    }
}

/// The JSON value that `text` stands for; `None` if it matches no allowed type.
pub(crate) fn read(text: &str, parameter: &Parameter) -> Option<CoercedValue> {
    let types = parameter.types;
    let trimmed = text.trim();
    let enum_value = enum_value(text, &parameter.enum_values);
    match parameter.notation {
        Notation::Raw if enum_value.is_some() => return enum_value,
        Notation::Raw => {}
        Notation::Json => {
            let json = valid_json(trimmed).filter(|json| types.has(type_of(json)));
            // A string without its quotes, if it can be no other value.
            let unquoted = || enum_value.map(|value| CoercedValue::recovered(Recovery::Coerced, value.json));
            if let Some(reading) = json.map(CoercedValue::exact).or_else(unquoted) {
                return Some(reading);
            }
        }
    }
    if types.has(Types::STRING) {
        return Some(text_or_json(text, types));
    }
    if let Some(json) = valid_json(trimmed).filter(|_| types.has(type_of(trimmed))) {
        return Some(CoercedValue::exact(json));
    }
    scalar(trimmed, types).or_else(|| structure(trimmed, types))
}

/// The text, if it is exactly one JSON value.
pub(crate) fn valid_json(text: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

/// The types of the JSON value that starts like this.
pub(crate) fn type_of(json: &str) -> Types {
    match json.as_bytes().first() {
        Some(b'{') => Types::OBJECT,
        Some(b'[') => Types::ARRAY,
        Some(b'"') => Types::STRING,
        Some(b't' | b'f') => Types::BOOLEAN,
        Some(b'n') => Types::NULL,
        Some(b'-' | b'0'..=b'9') if json.contains(['.', 'e', 'E']) => Types::NUMBER,
        Some(b'-' | b'0'..=b'9') => Types::NUMBER.or(Types::INTEGER),
        Some(_) | None => Types::NONE,
    }
}

/// P16, P17: a string, unless it is JSON of another allowed type. A JSON string stands for its content, because
/// there is no other way to write a string that looks like another type.
fn text_or_json(text: &str, types: Types) -> CoercedValue {
    let only_text =
        !types.has(Types::NUMBER.or(Types::INTEGER).or(Types::BOOLEAN).or(Types::OBJECT).or(Types::ARRAY));
    let trimmed = text.trim();
    let other = if only_text { Types::NULL } else { Types::ANY };
    match valid_json(trimmed) {
        Some(json) if types.and(other).has(type_of(json)) => CoercedValue::exact(json),
        Some(_) | None => {
            let mut json = String::new();
            escape::quoted(text, &mut json);
            CoercedValue::exact(json)
        }
    }
}

/// P18: an allowed value, matched exactly, or else ignoring case, quotes and whitespace if the match is unique.
fn enum_value(text: &str, enum_values: &[Value]) -> Option<CoercedValue> {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    if let Some(exact) = enum_values.iter().find(|value| written(value) == text) {
        return Some(CoercedValue::exact(exact.to_string()));
    }
    let folded = |text: &str| text.trim().trim_matches(['"', '\'', '`']).to_lowercase();
    let folded_text = folded(text);
    let mut matching = enum_values.iter().filter(|value| folded(&written(value)) == folded_text);
    let only = matching.next()?;
    matching.next().is_none().then(|| CoercedValue::recovered(Recovery::Coerced, only.to_string()))
}

fn scalar(text: &str, types: Types) -> Option<CoercedValue> {
    let bare = text.trim_matches(['"', '\'']).trim();
    if types.has(Types::NUMBER.or(Types::INTEGER))
        && let Some(number) = number(bare, types)
    {
        return Some(CoercedValue::recovered(Recovery::Coerced, number));
    }
    let word = bare.to_ascii_lowercase();
    let json = match word.as_str() {
        "true" | "yes" | "1" if types.has(Types::BOOLEAN) => "true",
        "false" | "no" | "0" if types.has(Types::BOOLEAN) => "false",
        "none" | "null" if types.has(Types::NULL) => "null",
        _ => return None,
    };
    Some(CoercedValue::recovered(Recovery::Coerced, json))
}

/// P19: also accepts `5.0` for an integer. Digits are kept as written, so large numbers keep their precision.
fn number(bare: &str, types: Types) -> Option<String> {
    let bare = bare.strip_prefix('+').unwrap_or(bare);
    let json = valid_json(bare).filter(|json| type_of(json).has(Types::NUMBER))?;
    if types.has(type_of(json)) {
        return Some(json.to_owned());
    }
    let (whole, fraction) = json.split_once('.')?;
    fraction.bytes().all(|digit| digit == b'0').then(|| whole.to_owned())
}

fn structure(text: &str, types: Types) -> Option<CoercedValue> {
    if !types.has(Types::OBJECT.or(Types::ARRAY)) {
        return None;
    }
    let fits = |json: &str| types.has(type_of(json));
    // P15
    if let Ok(inner) = serde_json::from_str::<String>(text) {
        let json = valid_json(inner.trim()).filter(|json| fits(json))?;
        return Some(CoercedValue::recovered(Recovery::DoubleEncoded, json));
    }
    // P13
    let decoded = escape::decoded(text);
    if decoded != text
        && let Some(json) = valid_json(&decoded).filter(|json| fits(json))
    {
        return Some(CoercedValue::recovered(Recovery::EntitiesDecoded, json));
    }
    // P14
    let repaired = repair::json(text).or_else(|| repair::json(&decoded))?;
    fits(&repaired).then(|| CoercedValue::recovered(Recovery::JsonRepaired, repaired))
}
