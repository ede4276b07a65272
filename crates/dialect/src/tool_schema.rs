//! Tool schemas in the form that hosts of every dialect accept (T24): an object with a `type`, no `anyOf` at its root,
//! and no references. A schema that already has this form is sent byte for byte (T37).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::{Value, json};
use toolgate_model::references::{Inlined, Meaning, inlined};
use toolgate_model::{Fields, JsonText, Losses};

/// Keywords that hosts reject at the root.
const ROOT_CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The schema for a host of a different dialect than the client's.
pub(crate) fn for_host(tool: &str, schema: Option<&JsonText>, losses: &mut Losses) -> JsonText {
    let Some(schema) = schema else { return JsonText::from_value(&empty()) };
    if is_acceptable(schema.as_str()) {
        return schema.clone();
    }
    let value = schema.to_value();
    let (text, value) = match inlined(&value) {
        Some(Inlined { schema: flat, meaning: Meaning::Same }) => (JsonText::from_value(&flat), flat),
        // Recursive schemas need their references. Hosts that support none return an error.
        Some(Inlined { schema: _, meaning: Meaning::Wider }) | None => (schema.clone(), value),
    };
    let Value::Object(root) = value else {
        losses
            .add(format!("tools[{tool}].schema"), "the schema is not a JSON object: any object is accepted");
        return JsonText::from_value(&empty());
    };
    let is_object = root.get("type").and_then(Value::as_str) == Some("object");
    if is_object && !ROOT_CHOICES.iter().any(|keyword| root.contains_key(*keyword)) {
        return text;
    }
    let mut fixed = Fields::new();
    fixed.insert("type".to_owned(), Value::from("object"));
    if !is_object && root.contains_key("type") {
        losses.add(format!("tools[{tool}].schema.type"), "the root of a tool's schema must be an object");
    }
    fixed.extend(root.into_iter().filter(|(name, _)| name != "type"));
    for keyword in ROOT_CHOICES {
        if let Some(Value::Array(variants)) = fixed.shift_remove(keyword) {
            losses.add(format!("tools[{tool}].schema.{keyword}"), "not allowed at the root: variants merged");
            merge_variants(keyword, &variants, &mut fixed);
        }
    }
    JsonText::from_value(&Value::Object(fixed))
}

/// A cheap check that hosts accept the schema as it is. Clients send dozens of tools with every request, and nearly all
/// of them pass.
fn is_acceptable(schema: &str) -> bool {
    #[derive(Deserialize)]
    struct Root<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        #[serde(default, rename = "anyOf")]
        any_of: Presence,
        #[serde(default, rename = "oneOf")]
        one_of: Presence,
        #[serde(default, rename = "allOf")]
        all_of: Presence,
    }
    // The keyword may be written with escapes.
    let may_refer = schema.contains("$ref") || schema.contains("\\u00");
    let Ok(Root { kind, any_of, one_of, all_of }) = serde_json::from_str(schema) else { return false };
    kind == "object"
        && !may_refer
        && [any_of, one_of, all_of].iter().all(|choice| *choice == Presence::Absent)
}

/// Whether a field is present, with any value.
#[derive(Default, PartialEq)]
enum Presence {
    #[default]
    Absent,
    Present,
}

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self::Present)
    }
}

fn empty() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Allows the properties of every variant. Requires what every variant requires; for `allOf`, what any does.
fn merge_variants(keyword: &str, variants: &[Value], root: &mut Fields) {
    let mut properties = object(root.get("properties"));
    let mut shared: Option<Vec<Value>> = None;
    for variant in variants {
        for (name, property) in object(variant.get("properties")) {
            properties.entry(name).or_insert(property);
        }
        let required = array(variant.get("required"));
        shared = Some(match shared {
            None => required,
            Some(mut before) if keyword == "allOf" => {
                before.extend(required);
                before
            }
            Some(before) => before.into_iter().filter(|name| required.contains(name)).collect(),
        });
    }
    let mut required = array(root.get("required"));
    for name in shared.unwrap_or_default() {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
}

fn object(value: Option<&Value>) -> Fields {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn array(value: Option<&Value>) -> Vec<Value> {
    value.and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, expected: &str) {
        let text = JsonText::parse(schema).expect("valid JSON");
        assert_eq!(for_host("t", Some(&text), &mut Losses::default()).as_str(), expected);
    }

    #[test]
    fn an_acceptable_schema_is_unchanged() {
        for schema in [
            r#"{ "type":"object", "properties": {"a":{"anyOf":[{"type":"null"}]}} }"#,
            r#"{"properties":{"anyOf":{"type":"string","description":"a \"b\"\n"}},"type":"object"}"#,
            r#"{"type":"object","$defs":{"a":{"type":"string"}}}"#,
        ] {
            assert!(is_acceptable(schema), "{schema}");
            check(schema, schema);
        }
    }

    #[test]
    fn any_other_schema_is_rewritten() {
        let flat = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        for reference in [r##"{"$ref":"#/$defs/x"}"##, r##"{"\u0024ref":"#/$defs/x"}"##] {
            let defs = r#""$defs":{"x":{"type":"string"}}"#;
            check(&format!(r#"{{"type":"object","properties":{{"a":{reference}}},{defs}}}"#), flat);
        }
        check(r#"{"type":"object","anyOf":null}"#, r#"{"type":"object"}"#);
        check(r#"{"type":["object","null"]}"#, r#"{"type":"object"}"#);
        check(r#"{"properties":{}}"#, r#"{"type":"object","properties":{}}"#);
        check("[]", r#"{"type":"object","properties":{}}"#);
    }
}
