//! When two JSON bodies of one dialect mean the same.
//!
//! - a missing field, `null`, an empty array and an empty object are alike, and so is a `false` flag the API defaults to;
//! - a string where content parts may stand is one text part;
//! - numbers are compared by value, object keys in any order, JSON inside strings of call arguments by meaning;
//! - consecutive user messages of a Messages request are one (the API joins them);
//! - legacy names (`functions`, `max_tokens`) stay as they were; padding meant for nobody (`obfuscation`) is left out.

use serde_json::{Map, Value, json};
use toolgate_model::DialectId;

/// Which body is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A request.
    Request,
    /// A whole reply.
    Reply,
}

/// The first place where two bodies differ in meaning.
pub fn difference(dialect: DialectId, side: Side, before: Value, after: Value) -> Option<String> {
    let before = canonical(dialect, side, before);
    let after = canonical(dialect, side, after);
    first_difference("", &before, &after)
}

/// The body with every documented equivalence applied.
fn canonical(dialect: DialectId, side: Side, body: Value) -> Value {
    let mut body = canonical_value("", body).unwrap_or_else(|| json!({}));
    let Some(fields) = body.as_object_mut() else { return body };
    if side == Side::Request {
        join_user_messages(dialect, fields);
    }
    body
}

/// Fields in which a string and one text part mean the same.
const CONTENT_FIELDS: [&str; 5] = ["content", "system", "input", "output", "instructions"];
/// Fields whose string is JSON, compared by meaning.
const JSON_FIELDS: [&str; 1] = ["arguments"];
/// Flags whose absence means `false`, and counts whose absence means one.
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
            typed(&mut out);
            (!out.is_empty()).then_some(Value::Object(out))
        }
        other @ (Value::Bool(_) | Value::String(_)) => Some(other),
    }
}

fn text_content(text: &str) -> Value {
    json!([{ "text": text }])
}

/// Text parts go by several tags for one thing, and Responses' messages may leave their tag out.
fn typed(fields: &mut Map<String, Value>) {
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
                    (Some(before), None) => Some(format!("{at} was {} and is gone", brief(before))),
                    (None, after) => {
                        Some(format!("{at} was not there and is {}", brief(after.unwrap_or(&Value::Null))))
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

/// Long values are cut: a verdict is one line.
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
    fn documented_equivalences_and_nothing_else() {
        let check = |before: Value, after: Value, expect: Option<&str>| {
            assert_eq!(difference(MESSAGES, Side::Request, before, after).as_deref(), expect);
        };
        check(json!({"system": "a"}), json!({"system": [{"type": "text", "text": "a"}]}), None);
        check(json!({"a": null, "b": [], "stream": false, "t": 1}), json!({"t": 1.0}), None);
        check(json!({"arguments": "{\"a\": 1}"}), json!({"arguments": "{\"a\":1}"}), None);
        check(json!({"a": {"b": 1}}), json!({}), Some(".a was {\"b\":1.0} and is gone"));
        check(json!({"a": "x"}), json!({"a": "y"}), Some(".a was \"x\" and is \"y\""));
        let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let both = json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        check(json!({"messages": [user("a"), user("b")]}), json!({"messages": [both]}), None);
    }
}
