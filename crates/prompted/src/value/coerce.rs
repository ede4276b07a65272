//! Reads a whole value as the types its schema allows (P13 to P19). What cannot be read is refused, never guessed.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{escape, repair};
use crate::recovery::Recovery;
use crate::schema::{Notation, Parameter, Types};

/// A value as JSON, and the heuristic it took.
#[derive(Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) json: String,
    pub(crate) recovery: Option<Recovery>,
}

impl Reading {
    fn exact(json: impl Into<String>) -> Self {
        Self { json: json.into(), recovery: None }
    }

    fn by(recovery: Recovery, json: impl Into<String>) -> Self {
        Self { json: json.into(), recovery: Some(recovery) }
    }
}

/// The value `text` stands for; `None` where it fits no allowed type.
pub(crate) fn read(text: &str, parameter: &Parameter) -> Option<Reading> {
    let types = parameter.types;
    let trimmed = text.trim();
    let member = member(text, &parameter.members);
    match parameter.notation {
        Notation::Raw if member.is_some() => return member,
        Notation::Raw => {}
        Notation::Json => {
            let json = valid_json(trimmed).filter(|json| types.has(type_of(json)));
            // A string without its quotes, if it can be no other value.
            let unquoted = || member.map(|member| Reading::by(Recovery::Coerced, member.json));
            if let Some(reading) = json.map(Reading::exact).or_else(unquoted) {
                return Some(reading);
            }
        }
    }
    if types.has(Types::STRING) {
        return Some(text_or_json(text, types));
    }
    if let Some(json) = valid_json(trimmed).filter(|_| types.has(type_of(trimmed))) {
        return Some(Reading::exact(json));
    }
    scalar(trimmed, types).or_else(|| structure(trimmed, types))
}

/// JSON as it is, where the text is exactly one value of it.
pub(crate) fn valid_json(text: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

/// The types the JSON value that begins like this satisfies.
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

/// P16, P17: a string, unless it is JSON of another allowed type. A JSON string is the string it stands for, because
/// that is the only way to write a string that looks like another type.
fn text_or_json(text: &str, types: Types) -> Reading {
    let only_text =
        !types.has(Types::NUMBER.or(Types::INTEGER).or(Types::BOOLEAN).or(Types::OBJECT).or(Types::ARRAY));
    let trimmed = text.trim();
    let other = if only_text { Types::NULL } else { Types::ANY };
    match valid_json(trimmed) {
        Some(json) if types.and(other).has(type_of(json)) => Reading::exact(json),
        Some(_) | None => {
            let mut json = String::new();
            escape::quoted(text, &mut json);
            Reading::exact(json)
        }
    }
}

/// P18: a listed value, written exactly, or else in other case, quotes or spacing if only one can be meant.
fn member(text: &str, members: &[Value]) -> Option<Reading> {
    let written = |member: &Value| match member {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            member.to_string()
        }
    };
    if let Some(exact) = members.iter().find(|member| written(member) == text) {
        return Some(Reading::exact(exact.to_string()));
    }
    let folded = |text: &str| text.trim().trim_matches(['"', '\'', '`']).to_lowercase();
    let wanted = folded(text);
    let mut matching = members.iter().filter(|member| folded(&written(member)) == wanted);
    let only = matching.next()?;
    matching.next().is_none().then(|| Reading::by(Recovery::Coerced, only.to_string()))
}

fn scalar(text: &str, types: Types) -> Option<Reading> {
    let bare = text.trim_matches(['"', '\'']).trim();
    if types.has(Types::NUMBER.or(Types::INTEGER))
        && let Some(number) = number(bare, types)
    {
        return Some(Reading::by(Recovery::Coerced, number));
    }
    let word = bare.to_ascii_lowercase();
    let json = match word.as_str() {
        "true" | "yes" | "1" if types.has(Types::BOOLEAN) => "true",
        "false" | "no" | "0" if types.has(Types::BOOLEAN) => "false",
        "none" | "null" if types.has(Types::NULL) => "null",
        _ => return None,
    };
    Some(Reading::by(Recovery::Coerced, json))
}

/// P19: `5.0` where only integers are allowed. Digits are kept as written, so large numbers lose nothing.
fn number(bare: &str, types: Types) -> Option<String> {
    let bare = bare.strip_prefix('+').unwrap_or(bare);
    let json = valid_json(bare).filter(|json| type_of(json).has(Types::NUMBER))?;
    if types.has(type_of(json)) {
        return Some(json.to_owned());
    }
    let (whole, fraction) = json.split_once('.')?;
    fraction.bytes().all(|digit| digit == b'0').then(|| whole.to_owned())
}

fn structure(text: &str, types: Types) -> Option<Reading> {
    if !types.has(Types::OBJECT.or(Types::ARRAY)) {
        return None;
    }
    let fits = |json: &str| types.has(type_of(json));
    // P15
    if let Ok(inner) = serde_json::from_str::<String>(text) {
        let json = valid_json(inner.trim()).filter(|json| fits(json))?;
        return Some(Reading::by(Recovery::DoubleEncoded, json));
    }
    // P13
    let decoded = escape::decoded(text);
    if decoded != text
        && let Some(json) = valid_json(&decoded).filter(|json| fits(json))
    {
        return Some(Reading::by(Recovery::EntitiesDecoded, json));
    }
    // P14
    let repaired = repair::json(text).or_else(|| repair::json(&decoded))?;
    fits(&repaired).then(|| Reading::by(Recovery::JsonRepaired, repaired))
}
