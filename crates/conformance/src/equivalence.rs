//! When two JSON bodies of one dialect are equivalent.
//!
//! - a missing field equals `null`, an empty array, an empty object and a flag with its default value;
//! - a string in place of content parts equals one text part;
//! - numbers are compared by value, objects in any key order, call arguments as parsed JSON;
//! - consecutive user messages of a Messages request equal one message (the API joins them);
//! - legacy names (`functions`, `max_tokens`) must be kept; `obfuscation` padding is ignored.

use serde_json::{Map, Value, json};
use toolgate_model::DialectId;

/// The kind of body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A request.
    Request,
    /// A whole reply.
    Reply,
}

/// The first difference in meaning between two bodies.
pub fn difference(dialect: DialectId, side: Side, before: Value, after: Value) -> Option<String> {
    let before = canonical(dialect, side, before);
    let after = canonical(dialect, side, after);
    first_difference("", &before, &after)
}

/// The body in canonical form.
fn canonical(dialect: DialectId, side: Side, body: Value) -> Value {
    let mut body = canonical_value("", body).unwrap_or_else(|| json!({}));
    let Some(fields) = body.as_object_mut() else { return body };
    if side == Side::Request {
        join_user_messages(dialect, fields);
    }
    body
}

/// Fields in which a string equals one text part.
const CONTENT_FIELDS: [&str; 5] = ["content", "system", "input", "output", "instructions"];
/// Fields whose string is parsed as JSON.
const JSON_FIELDS: [&str; 1] = ["arguments"];
/// Default values, equal to an absent field.
const DEFAULTS: [(&str, Value); 4] = [
    ("stream", Value::Bool(false)),
    ("is_error", Value::Bool(false)),
    ("background", Value::Bool(false)),
    ("strict", Value::Null),
];

fn canonical_value(field: &str, value: Value) -> Option<Value> {
    if DEFAULTS.iter().any(|(name, default)| *name == field && *default == value) {
        return None;
    }
    match value {
        Value::Null => None,
        Value::Number(number) => Some(number.as_f64().map_or(Value::Number(number), |number| json!(number))),
        Value::String(text) if CONTENT_FIELDS.contains(&field) => Some(text_content(&text)),
        Value::String(text) if JSON_FIELDS.contains(&field) => Some(
            serde_json::from_str(&text)
                .ok()
                .and_then(|json| canonical_value("", json))
                .unwrap_or(Value::String(text)),
        ),
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(|item| canonical_value("", item)).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(fields) => {
            let mut out = Map::new();
            for (name, value) in fields {
                if let Some(value) = canonical_value(&name, value) {
                    out.insert(name, value);
                }
            }
            remove_redundant_type(&mut out);
            (!out.is_empty()).then_some(Value::Object(out))
        }
        other @ (Value::Bool(_) | Value::String(_)) => Some(other),
    }
}

fn text_content(text: &str) -> Value {
    json!([{ "text": text }])
}

/// Removes tags that add no meaning: text parts have several, and Responses messages may omit theirs.
fn remove_redundant_type(fields: &mut Map<String, Value>) {
    let tag = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    if ["text", "input_text", "output_text"].contains(&tag) && fields.contains_key("text")
        || (tag == "message" && fields.contains_key("role"))
        || (tag == "custom" && fields.contains_key("input_schema"))
    {
        fields.remove("type");
    }
}

/// The Messages API joins consecutive user messages into one turn.
fn join_user_messages(dialect: DialectId, body: &mut Map<String, Value>) {
    let joins = dialect.provider == "anthropic";
    let Some(Value::Array(messages)) = body.get_mut("messages").filter(|_| joins) else { return };
    let mut joined: Vec<Value> = Vec::new();
    for message in messages.drain(..) {
        let same_role = joined.last().is_some_and(|last| last["role"] == "user" && message["role"] == "user");
        let (true, Some(last)) = (same_role, joined.last_mut()) else {
            joined.push(message);
            continue;
        };
        let more = message["content"].as_array().cloned().unwrap_or_default();
        if let Some(content) = last["content"].as_array_mut() {
            content.extend(more);
        }
    }
    *messages = joined;
}

fn first_difference(path: &str, before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let at = format!("{path}.{name}");
                match (before.get(name), after.get(name)) {
                    (Some(before), Some(after)) => first_difference(&at, before, after),
                    (Some(before), None) => Some(format!("{at} was {} and is missing", brief(before))),
                    (None, after) => {
                        Some(format!("{at} was missing and is {}", brief(after.unwrap_or(&Value::Null))))
                    }
                }
            })
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let mut pairs = before.iter().zip(after).enumerate();
            pairs.find_map(|(index, (before, after))| {
                first_difference(&format!("{path}[{index}]"), before, after)
            })
        }
        _ if before == after => None,
        _ => Some(format!("{path} was {} and is {}", brief(before), brief(after))),
    }
}

/// Truncates long values: a fault is one line.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: DialectId = DialectId { name: "anthropic-messages", provider: "anthropic" };

    #[test]
    fn only_documented_equivalences_hold() {
        let check = |before: Value, after: Value, expect: Option<&str>| {
            assert_eq!(difference(MESSAGES, Side::Request, before, after).as_deref(), expect);
        };
        check(json!({"system": "a"}), json!({"system": [{"type": "text", "text": "a"}]}), None);
        check(json!({"a": null, "b": [], "stream": false, "t": 1}), json!({"t": 1.0}), None);
        check(json!({"arguments": "{\"a\": 1}"}), json!({"arguments": "{\"a\":1}"}), None);
        check(json!({"a": {"b": 1}}), json!({}), Some(".a was {\"b\":1.0} and is missing"));
        check(json!({"a": "x"}), json!({"a": "y"}), Some(".a was \"x\" and is \"y\""));
        let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let both = json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        check(json!({"messages": [user("a"), user("b")]}), json!({"messages": [both]}), None);
    }
}
