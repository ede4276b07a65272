//! When two JSON bodies of one dialect are equivalent.
//!
//! - a missing field equals `null`, an empty array, an empty object, a flag with its default value and a token count
//!   of zero;
//! - a string in place of content parts or input items equals one text part, and one in place of an image's object its URL;
//! - numbers are compared by value, objects in any key order, call arguments as parsed JSON;
//! - consecutive user messages of a Messages request equal one message (the API joins them), and thinking without a
//!   signature equals none (no host of Claude accepts it);
//! - the results of one turn may be in any order, because they name their calls;
//! - different words for the same value are equal (`any` and `required`, `eos` and `stop`);
//! - legacy names (`functions`, `max_tokens`) must be kept; `obfuscation` padding is ignored.
//!
//! In a reply, a field that the API requires may be added, no content equals empty content, and only the first choice
//! counts: the others are reported as lost.

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
    let mut after = canonical(dialect, side, after);
    remove_added(side, &before, &mut after);
    first_difference("", &before, &after)
}

/// The body in canonical form.
fn canonical(dialect: DialectId, side: Side, body: Value) -> Value {
    let mut body = canonical_value("", body).unwrap_or_else(|| json!({}));
    let Some(fields) = body.as_object_mut() else { return body };
    match side {
        Side::Request => {
            remove_unsigned_thinking(dialect, fields);
            join_user_messages(dialect, fields);
            sort_results(fields);
        }
        Side::Reply => {
            if let Some(Value::Array(choices)) = fields.get_mut("choices") {
                choices.truncate(1);
            }
        }
    }
    body
}

/// Fields in which a string equals one text part.
const CONTENT_FIELDS: [&str; 4] = ["content", "system", "output", "instructions"];
/// Fields whose string is parsed as JSON.
const JSON_FIELDS: [&str; 1] = ["arguments"];
/// Default values, equal to an absent field.
const DEFAULTS: [(&str, &str); 1] = [("detail", "auto")];
/// The same for values that are not texts.
const DEFAULT_VALUES: [(&str, Value); 4] = [
    ("stream", Value::Bool(false)),
    ("is_error", Value::Bool(false)),
    ("background", Value::Bool(false)),
    ("strict", Value::Null),
];
/// Texts that equal an absent field if they are empty.
const OPTIONAL_TEXTS: [&str; 4] = ["reasoning_content", "reasoning", "signature", "refusal"];
/// Words with the same meaning: the field, a host's word, the API's word.
const SAME_WORDS: [(&str, &str, &str); 2] =
    [("tool_choice", "any", "required"), ("finish_reason", "eos", "stop")];

fn canonical_value(field: &str, value: Value) -> Option<Value> {
    let is_text = |text: &str| value.as_str() == Some(text);
    if DEFAULT_VALUES.iter().any(|(name, default)| *name == field && *default == value)
        || DEFAULTS.iter().any(|(name, default)| *name == field && is_text(default))
    {
        return None;
    }
    match value {
        Value::Null => None,
        Value::Number(number) if field.ends_with("_tokens") && number.as_u64() == Some(0) => None,
        Value::Number(number) => Some(number.as_f64().map_or(Value::Number(number), |number| json!(number))),
        Value::String(text) if OPTIONAL_TEXTS.contains(&field) && text.is_empty() => None,
        Value::String(text) if field == "input" => {
            Some(json!([{ "role": "user", "content": text_content(&text) }]))
        }
        Value::String(text) if field == "image_url" => Some(json!({ "url": text })),
        Value::String(text) if CONTENT_FIELDS.contains(&field) => Some(text_content(&text)),
        Value::String(text) if JSON_FIELDS.contains(&field) => canonical_json(text),
        Value::String(text) => {
            let same = SAME_WORDS.iter().find(|(name, word, _)| *name == field && *word == text);
            Some(same.map_or(Value::String(text), |(_, _, word)| Value::from(*word)))
        }
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
            if field == "tool_choice" && out.get("type").is_some_and(|kind| kind == "tool") {
                let name = out.remove("name").unwrap_or_default();
                out = Map::from_iter([
                    ("type".to_owned(), Value::from("function")),
                    ("function".to_owned(), json!({ "name": name })),
                ]);
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        other @ Value::Bool(_) => Some(other),
    }
}

/// Parsed arguments. No arguments equal an empty object.
fn canonical_json(text: String) -> Option<Value> {
    match serde_json::from_str(&text) {
        Ok(json) => canonical_value("", json),
        Err(_) if text.trim().is_empty() => None,
        Err(_) => Some(Value::String(text)),
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

/// The fields that a reply must have: a writer adds them if the host left them out.
const REQUIRED_FIELDS: [&str; 5] = ["id", "object", "created", "model", "finish_reason"];

/// Removes required fields and empty content that only the second body has.
fn remove_added(side: Side, before: &Value, after: &mut Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            after.retain(|name, value| {
                let may_be_added = match side {
                    // Some hosts accept a result without the id of its call.
                    Side::Request => name == "tool_call_id",
                    Side::Reply => {
                        let is_empty_content = name == "content" && *value == text_content("");
                        REQUIRED_FIELDS.contains(&name.as_str()) || is_empty_content
                    }
                };
                before.contains_key(name) || !may_be_added
            });
            for (name, value) in after {
                remove_added(side, before.get(name).unwrap_or(&Value::Null), value);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after).for_each(|(before, after)| remove_added(side, before, after));
        }
        _ => {}
    }
}

/// No host of Claude accepts thinking without a signature, so it is not sent.
fn remove_unsigned_thinking(dialect: DialectId, body: &mut Map<String, Value>) {
    let Some(Value::Array(messages)) = body.get_mut("messages").filter(|_| dialect.provider == "anthropic")
    else {
        return;
    };
    for message in messages {
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            blocks.retain(|block| block["type"] != "thinking" || block.get("signature").is_some());
        }
    }
}

/// Sorts the results of one turn by the id of their call.
fn sort_results(body: &mut Map<String, Value>) {
    let id = |item: &Value| {
        let names = ["tool_call_id", "call_id", "tool_use_id"];
        let is_result =
            item["role"] == "tool" || item.get("output").is_some() || item["type"] == "tool_result";
        names.iter().find_map(|name| item.get(*name)?.as_str()).filter(|_| is_result).map(str::to_owned)
    };
    for name in ["messages", "input"] {
        let Some(Value::Array(items)) = body.get_mut(name) else { continue };
        for run in items.chunk_by_mut(|one, next| id(one).is_some() == id(next).is_some()) {
            run.sort_by_key(id);
        }
        for item in items {
            let Some(Value::Array(blocks)) = item.get_mut("content") else { continue };
            for run in blocks.chunk_by_mut(|one, next| id(one).is_some() == id(next).is_some()) {
                run.sort_by_key(id);
            }
        }
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
        check(json!({"arguments": ""}), json!({"arguments": "{}"}), None);
        check(json!({"input": "a"}), json!({"input": [{"role": "user", "content": "a"}]}), None);
        check(json!({"tool_choice": "any"}), json!({"tool_choice": "required"}), None);
        check(
            json!({"tool_choice": "none"}),
            json!({"tool_choice": "required"}),
            Some(".tool_choice was \"none\" and is \"required\""),
        );
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": id});
        check(
            json!({"messages": [result("a"), result("b")]}),
            json!({"messages": [result("b"), result("a")]}),
            None,
        );
        let apart = json!({"messages": [result("b"), user("x"), result("a")]});
        assert!(
            difference(
                MESSAGES,
                Side::Request,
                json!({"messages": [result("a"), user("x"), result("b")]}),
                apart
            )
            .is_some()
        );
    }

    #[test]
    fn a_reply_may_gain_only_required_fields() {
        let check = |before: Value, after: Value, expect: Option<&str>| {
            assert_eq!(difference(MESSAGES, Side::Reply, before, after).as_deref(), expect);
        };
        let choice = |message: Value| json!({"message": message});
        let done = |message: Value| json!({"message": message, "finish_reason": "stop"});
        check(
            json!({"choices": [choice(json!({"content": null, "a": 1}))]}),
            json!({"object": "x", "choices": [done(json!({"content": "", "a": 1}))]}),
            None,
        );
        check(
            json!({"choices": [choice(json!({"a": 1})), choice(json!({"b": 1}))]}),
            json!({"choices": [done(json!({"a": 1}))]}),
            None,
        );
        check(
            json!({"choices": [choice(json!({"a": 1}))]}),
            json!({"choices": [choice(json!({"a": 1, "content": "b"}))]}),
            Some(".choices[0].message.content was missing and is [{\"text\":\"b\"}]"),
        );
        check(
            json!({"usage": {"input_tokens": 1, "cached_tokens": 0}}),
            json!({"usage": {"input_tokens": 1}}),
            None,
        );
        check(json!({"object": "x"}), json!({}), Some(".object was \"x\" and is missing"));
    }
}
