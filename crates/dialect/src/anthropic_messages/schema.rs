//! The schema of a tool's input. Hosts want an object with a `type` and no choice at its root (T24); a schema that
//! is like that already goes out byte for byte.

use serde_json::{Value, json};
use toolgate_model::{Fields, JsonText, Losses};

use super::arguments::CUSTOM_INPUT;

/// Keywords the API refuses at the root.
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The schema as the host takes it.
pub(super) fn host_schema(tool: &str, schema: Option<&JsonText>, losses: &mut Losses) -> JsonText {
    let Some(schema) = schema else { return JsonText::from_value(&empty()) };
    let Value::Object(root) = schema.to_value() else {
        losses.add(
            format!("tools[{tool}].input_schema"),
            "the schema is no JSON object: any object is accepted",
        );
        return JsonText::from_value(&empty());
    };
    let is_object = root.get("type").and_then(Value::as_str) == Some("object");
    if is_object && !CHOICES.iter().any(|keyword| root.contains_key(*keyword)) {
        return schema.clone();
    }
    let mut fixed = Fields::new();
    fixed.insert("type".to_owned(), Value::from("object"));
    if !is_object && root.contains_key("type") {
        losses
            .add(format!("tools[{tool}].input_schema.type"), "the root of a tool's schema must be an object");
    }
    fixed.extend(root.into_iter().filter(|(name, _)| name != "type"));
    for keyword in CHOICES {
        if let Some(Value::Array(variants)) = fixed.shift_remove(keyword) {
            losses.add(
                format!("tools[{tool}].input_schema.{keyword}"),
                "not allowed at the root: variants merged",
            );
            merge_variants(keyword, &variants, &mut fixed);
        }
    }
    JsonText::from_value(&Value::Object(fixed))
}

/// The schema for a tool that takes text, which this dialect does not know.
pub(super) fn text_schema() -> JsonText {
    JsonText::from_value(&json!({
        "type": "object",
        "properties": { CUSTOM_INPUT: { "type": "string" } },
        "required": [CUSTOM_INPUT],
    }))
}

fn empty() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Every variant's properties are allowed; required is what each of them requires, for `allOf` what any does.
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
