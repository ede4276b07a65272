//! The arguments of a demo call: JSON from the user's text, or values that fit the tool's schema.

use serde_json::{Map, Value, json};
use toolgate_model::JsonText;

/// The maximum nesting depth that is filled in.
const MAX_DEPTH: usize = 6;

/// A JSON object for this schema, filled from the user's text.
pub(super) fn fill(schema: Option<&JsonText>, words: &str) -> String {
    if let Some(written) = embedded_object(words) {
        return written.to_string();
    }
    let schema = schema.map(JsonText::to_value).unwrap_or_default();
    object(&schema, words, 0).to_string()
}

/// The first JSON object in the text.
fn embedded_object(words: &str) -> Option<Value> {
    let start = words.find('{')?;
    let mut values = serde_json::Deserializer::from_str(&words[start..]).into_iter::<Value>();
    values.next()?.ok()
}

fn object(schema: &Value, words: &str, depth: usize) -> Value {
    let no_fields = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_fields);
    let required: Option<Vec<&str>> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect());
    let wanted = properties.iter().filter(|(name, _)| match &required {
        Some(required) if !required.is_empty() => required.contains(&name.as_str()),
        Some(_) | None => true,
    });
    Value::Object(wanted.map(|(name, schema)| (name.clone(), value(schema, words, depth + 1))).collect())
}

fn value(schema: &Value, words: &str, depth: usize) -> Value {
    if let Some(constant) = schema.get("const").or_else(|| schema.get("default")) {
        return constant.clone();
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let named =
            choices.iter().find(|choice| choice.as_str().is_some_and(|choice| words.contains(choice)));
        return named.or_else(|| choices.first()).cloned().unwrap_or(Value::Null);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("integer") => {
            number(words).and_then(|number| number.as_i64().map(Value::from)).unwrap_or(json!(1))
        }
        Some("number") => number(words).unwrap_or(json!(1)),
        Some("boolean") => Value::Bool(true),
        Some("null") => Value::Null,
        Some("array") if depth < MAX_DEPTH => Value::Array(
            schema.get("items").map(|items| value(items, words, depth + 1)).into_iter().collect(),
        ),
        Some("array") => Value::Array(Vec::new()),
        Some("object") if depth < MAX_DEPTH => object(schema, words, depth),
        Some("object") => Value::Object(Map::new()),
        Some(_) | None => Value::String(words.trim().trim_end_matches(['.', '!', '?']).to_owned()),
    }
}

fn number(words: &str) -> Option<Value> {
    let digits = |letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-';
    words.split(|letter| !digits(letter)).find_map(|word| {
        let word = word.trim_end_matches('.');
        word.parse::<i64>().map(Value::from).ok().or_else(|| word.parse::<f64>().map(Value::from).ok())
    })
}
