//! Learns which optional fields a host refuses. No profile knows every host, so a refusal that names a field is answered
//! by sending the request again without it, and later requests for the same model leave it out. A refusal costs nothing,
//! and what is left out is reported as a loss. Never applies to a client's own bytes.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_dialect::anthropic_messages;
use toolgate_model::DialectId;

/// How many fields one request may lose, each after a refusal.
pub(super) const MAX_DROPPED: usize = 4;

/// The most models whose fields are remembered per host. Clients choose names if the route is a pattern.
const MAX_MODELS: usize = 256;

/// Fields whose absence would change the question, the tools or the form of the answer.
const NEVER_DROPPED: [&str; 13] = [
    "conversation",
    "input",
    "instructions",
    "messages",
    "model",
    "output_config",
    "previous_response_id",
    "prompt",
    "response_format",
    "stream",
    "system",
    "text",
    "tools",
];

/// What the Messages API requires beside them.
const REQUIRED_BY_MESSAGES: &str = "max_tokens";

/// Words of a host that does not know a field, or not for this model. A host that objects to a value says other words.
const MARKERS: [&str; 9] = [
    "unsupported",
    "not supported",
    "does not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "deprecated",
];

/// Hosts that want a field back say so in similar words.
const WANTED: &str = "must be passed back";

/// The fields that a host refused, by model.
#[derive(Debug, Default)]
pub(super) struct UnsupportedFields(Mutex<HashMap<Box<str>, BTreeSet<Box<str>>>>);

impl UnsupportedFields {
    /// The fields of the request that the host refused earlier for this model.
    pub(super) fn known_in(&self, model: &str, request: &Bytes) -> Vec<Box<str>> {
        let known = self.0.lock().get(model).cloned().unwrap_or_default();
        if known.is_empty() {
            return Vec::new();
        }
        let fields = Fields::read(request);
        known.into_iter().filter(|name| fields.as_ref().is_some_and(|fields| fields.has(name))).collect()
    }

    /// Remembers that the host takes requests for this model without these fields only.
    pub(super) fn remember(&self, model: &str, fields: Vec<Box<str>>) {
        let mut known = self.0.lock();
        if known.len() >= MAX_MODELS && !known.contains_key(model) {
            known.clear();
        }
        known.entry(model.into()).or_default().extend(fields);
    }
}

/// The optional field of the request that the host's error names as one that it does not take.
pub(super) fn named(dialect: DialectId, request: &[u8], refusal: &[u8]) -> Option<Box<str>> {
    let error: Value = serde_json::from_slice(refusal).ok()?;
    let text = String::from_utf8_lossy(refusal).to_lowercase();
    if text.contains(WANTED) || !MARKERS.iter().any(|marker| text.contains(marker)) {
        return None;
    }
    let fields = Fields::read(request)?;
    let is_required = |name: &str| {
        NEVER_DROPPED.contains(&name) || dialect == anthropic_messages::ID && name == REQUIRED_BY_MESSAGES
    };
    let mut names = fields.0.iter().map(|(name, _)| name.as_str());
    names.find(|name| !is_required(name) && names_field(&error, name)).map(Box::from)
}

/// The request without this field; every other byte of its values stays.
pub(super) fn without(request: &Bytes, field: &str) -> Option<Bytes> {
    let mut fields = Fields::read(request)?;
    fields.0.retain(|(name, _)| name != field);
    serde_json::to_vec(&fields).ok().map(Bytes::from)
}

/// True if the error names the field, in one of the places that hosts use: `param`, `loc`, or a text.
fn names_field(error: &Value, field: &str) -> bool {
    match error {
        Value::Object(members) => members.iter().any(|(key, value)| match (key.as_str(), value) {
            ("param", Value::String(param)) => param == field,
            ("loc", Value::Array(path)) => matches!(path.as_slice(), [name] | [_, name] if name == field),
            _ => names_field(value, field),
        }),
        Value::Array(items) => items.iter().any(|item| names_field(item, field)),
        Value::String(text) => text_names_field(text, field),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `'x'`, `"x"`, `` `x` ``, `x: …` at the beginning, or in a list after `supplied: `.
fn text_names_field(text: &str, field: &str) -> bool {
    let is_quoted = ['\'', '"', '`'].iter().any(|quote| text.contains(&format!("{quote}{field}{quote}")));
    let is_first = text.strip_prefix(field).is_some_and(|rest| rest.starts_with(':'));
    let listed = text.split_once("supplied: ").map_or("", |(_, names)| names);
    is_quoted || is_first || listed.split([',', ' ', '.']).any(|name| name == field)
}

/// The fields of a JSON object in their order, with their values as they are.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    fn has(&self, field: &str) -> bool {
        self.0.iter().any(|(name, _)| name == field)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_dialect::openai_chat;

    use super::*;

    const REQUEST: &str =
        r#"{"model":"m","messages":[],"store":true,"temperature":0.10,"user":"u","max_tokens":5}"#;

    #[track_caller]
    fn check(refusal: &Value, expect: Option<&str>) {
        let refusal = refusal.to_string();
        assert_eq!(
            named(openai_chat::ID, REQUEST.as_bytes(), refusal.as_bytes()).as_deref(),
            expect,
            "{refusal}"
        );
    }

    #[test]
    fn each_hosts_words_for_an_unknown_field_are_understood() {
        let openai = |message: &str, param: Value| json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": null } });
        check(
            &openai(
                "Unsupported parameter: 'temperature' is not supported with this model.",
                json!("temperature"),
            ),
            Some("temperature"),
        );
        check(&openai("Unsupported value: the default only", json!("temperature")), Some("temperature"));
        check(&openai("Unrecognized request argument supplied: store", Value::Null), Some("store"));
        check(&openai("Unrecognized request arguments supplied: verbosity, user", Value::Null), Some("user"));
        check(&openai("property 'store' is unsupported", Value::Null), Some("store"));
        check(
            &json!([{ "error": { "code": 400, "message": "Unknown name \"user\": Cannot find field." } }]),
            Some("user"),
        );
        check(
            &json!({ "message": "body.store: property is unsupported", "param": "store", "code": "wrong_api_format" }),
            Some("store"),
        );
        check(
            &json!({ "detail": [{ "type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra inputs are not permitted" }] }),
            Some("store"),
        );
        check(
            &json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "user: Extra inputs are not permitted" } }),
            Some("user"),
        );
        check(
            &json!({ "error": { "message": "`temperature` is deprecated for this model." } }),
            Some("temperature"),
        );
    }

    #[test]
    fn other_refusals_name_no_field() {
        for message in [
            "Invalid 'temperature': above the maximum of 2",
            "Unsupported parameter: 'messages' is not supported with this model",
            "property 'messages.1.store' is unsupported",
            "Unknown name \"seed\"",
            "The 'user' field is unsupported here and must be passed back",
            "unsupported: the user cannot store temperature",
        ] {
            check(&json!({ "error": { "message": message } }), None);
        }
        assert_eq!(named(openai_chat::ID, REQUEST.as_bytes(), b"<html>unknown 'user'</html>"), None);
    }

    #[test]
    fn a_limit_is_dropped_only_where_it_is_optional() {
        let refusal = br#"{"error":{"message":"Unsupported parameter: 'max_tokens'"}}"#;
        let named_at = |dialect| named(dialect, REQUEST.as_bytes(), refusal);
        assert_eq!(named_at(openai_chat::ID).as_deref(), Some("max_tokens"));
        assert_eq!(named_at(anthropic_messages::ID), None);
    }

    #[test]
    fn a_field_is_left_out_and_the_rest_stays_as_it_is() {
        let changed = without(&Bytes::from_static(REQUEST.as_bytes()), "store").expect("an object");
        assert_eq!(&*changed, REQUEST.replace(r#""store":true,"#, "").as_bytes());
    }

    #[test]
    fn fields_are_remembered_for_their_model_and_bounded() {
        let request = Bytes::from_static(REQUEST.as_bytes());
        let fields = UnsupportedFields::default();
        fields.remember("m", vec!["store".into(), "seed".into()]);
        assert_eq!(fields.known_in("m", &request), ["store".into()]);
        assert!(fields.known_in("other", &request).is_empty());
        for number in 0..MAX_MODELS {
            fields.remember(&number.to_string(), vec!["user".into()]);
        }
        assert!(fields.0.lock().len() <= MAX_MODELS);
        assert_eq!(fields.known_in("255", &request), ["user".into()]);
    }
}
