//! Schemas of tools and of the output, in the part of JSON Schema that the host accepts.

use serde_json::{Value, json};
use toolgate_model::{DialectId, Fields, FunctionTool, JsonText, Losses, SchemaFormat, Tool};

use super::super::{HostProfile, SchemaPart};
use super::Client;
use crate::{anthropic_messages, tool_schema};

/// Limits that Claude refuses in strict schemas. They go into the description.
const REFUSED_BY_CLAUDE: [&str; 10] = [
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Keywords whose values are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Fits the schema of a tool (T24).
pub(super) fn fit_tool(
    tool: &mut Tool,
    profile: &HostProfile,
    dialect: DialectId,
    client: Client,
    losses: &mut Losses,
) {
    let Tool::Function(tool) = tool else { return };
    let schema = match (client, &tool.schema) {
        (Client::SameDialect, Some(schema)) => schema.clone(),
        (Client::SameDialect, None) => return,
        (Client::OtherDialect, schema) => tool_schema::for_host(tool.name.as_str(), schema.as_ref(), losses),
    };
    if !profile.strict_tools && tool.strict.take() == Some(true) {
        losses.add(format!("tools[{}].strict", tool.name), "the host does not guarantee it");
    }
    let mut value = schema.to_value();
    let before = value.clone();
    if dialect != anthropic_messages::ID {
        add_missing_properties(&mut value);
    }
    each_schema(&mut value, &mut |fields| {
        add_missing_items(fields);
        replace_refused(fields, profile);
    });
    fit_strict(tool, &mut value, dialect, losses);
    // An acceptable schema is sent byte for byte (T37).
    tool.schema = Some(if value == before { schema } else { JsonText::from_value(&value) });
}

/// Fits the schema of the output.
pub(super) fn fit_output(
    format: &mut SchemaFormat,
    profile: &HostProfile,
    dialect: DialectId,
    losses: &mut Losses,
) {
    let mut value = format.schema.to_value();
    let before = value.clone();
    if dialect == anthropic_messages::ID {
        // Claude always follows the schema, so nothing is lost with `strict`.
        each_schema(&mut value, &mut restrict_for_claude);
        format.strict = None;
    } else {
        each_schema(&mut value, &mut |fields| replace_refused(fields, profile));
        if format.strict == Some(true) && !is_strict(&value) {
            losses
                .add("response_format.strict", "the schema has optional keys, which strict output excludes");
            format.strict = Some(false);
        }
    }
    if value != before {
        format.schema = JsonText::from_value(&value);
    }
}

fn fit_strict(tool: &mut FunctionTool, schema: &mut Value, dialect: DialectId, losses: &mut Losses) {
    if tool.strict != Some(true) {
        return;
    }
    if dialect == anthropic_messages::ID {
        each_schema(schema, &mut restrict_for_claude);
    } else if !is_strict(schema) {
        losses.add(
            format!("tools[{}].strict", tool.name),
            "the schema has optional keys, which strict tools exclude",
        );
        tool.strict = Some(false);
    }
}

/// OpenAI requires `properties` at the root.
fn add_missing_properties(schema: &mut Value) {
    if let Value::Object(root) = schema
        && !root.contains_key("$ref")
    {
        root.entry("properties").or_insert_with(|| json!({}));
    }
}

/// An array without `items` is refused.
fn add_missing_items(fields: &mut Fields) {
    let is_array = fields.get("type").and_then(Value::as_str) == Some("array");
    if is_array && !fields.contains_key("prefixItems") {
        fields.entry("items").or_insert_with(|| json!({}));
    }
}

/// Replaces what the host refuses by what says the same, or says less.
fn replace_refused(fields: &mut Fields, profile: &HostProfile) {
    for part in profile.refused_schema.iter() {
        match part {
            SchemaPart::SchemaUri => drop(fields.shift_remove("$schema")),
            SchemaPart::Const => {
                if let Some(value) = fields.shift_remove("const") {
                    fields.insert("enum".to_owned(), json!([value]));
                }
            }
            SchemaPart::TypeArray => split_types(fields),
            SchemaPart::NumberEnum => {
                let has_numbers = |values: &Vec<Value>| values.iter().any(Value::is_number);
                if fields.get("enum").and_then(Value::as_array).is_some_and(has_numbers)
                    && let Some(values) = fields.shift_remove("enum")
                {
                    describe(fields, &format!("One of {values}."));
                }
            }
            SchemaPart::ClosedObject => {
                if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                    fields.shift_remove("additionalProperties");
                }
            }
            SchemaPart::TypedChoice => {
                if fields.contains_key("anyOf") {
                    fields.shift_remove("type");
                }
            }
        }
    }
}

/// `["string", "null"]` becomes `string`, several other types become `anyOf`.
fn split_types(fields: &mut Fields) {
    let Some(Value::Array(types)) = fields.get("type").cloned() else { return };
    let types: Vec<Value> = types.into_iter().filter(|kind| kind != "null").collect();
    match types.as_slice() {
        [] => drop(fields.shift_remove("type")),
        [one] => drop(fields.insert("type".to_owned(), one.clone())),
        many => {
            let choices: Vec<Value> = many.iter().map(|kind| json!({ "type": kind })).collect();
            fields.shift_remove("type");
            fields.insert("anyOf".to_owned(), Value::Array(choices));
        }
    }
}

/// Claude enforces closed objects without limits on numbers, lengths and items.
fn restrict_for_claude(fields: &mut Fields) {
    if fields.get("type").and_then(Value::as_str) == Some("object") {
        fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    for keyword in REFUSED_BY_CLAUDE {
        let is_accepted =
            keyword == "minItems" && fields.get(keyword).is_some_and(|least| least == 0 || least == 1);
        if is_accepted {
            continue;
        }
        if let Some(limit) = fields.shift_remove(keyword) {
            describe(fields, &format!("{keyword}: {limit}."));
        }
    }
}

/// Appends a sentence to the description.
fn describe(fields: &mut Fields, sentence: &str) {
    let text = match fields.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} {sentence}"),
        None => sentence.to_owned(),
    };
    fields.insert("description".to_owned(), Value::from(text));
}

/// True if every object requires all of its keys and excludes others, as OpenAI demands of strict schemas.
fn is_strict(schema: &Value) -> bool {
    let mut schema = schema.clone();
    let mut strict = true;
    each_schema(&mut schema, &mut |fields| {
        let Some(properties) = fields.get("properties").and_then(Value::as_object) else { return };
        let required = fields.get("required").and_then(Value::as_array);
        let is_required =
            |name: &String| required.is_some_and(|names| names.iter().any(|value| value == name));
        strict &= fields.get("additionalProperties") == Some(&Value::Bool(false))
            && properties.keys().all(is_required);
    });
    strict
}

/// Visits a schema and all schemas inside it. Names of properties are not keywords.
fn each_schema(schema: &mut Value, visit: &mut dyn FnMut(&mut Fields)) {
    match schema {
        Value::Object(fields) => {
            visit(fields);
            for (keyword, value) in fields {
                if matches!(keyword.as_str(), "enum" | "const" | "default" | "examples") {
                    continue;
                }
                match value.as_object_mut().filter(|_| NAMED.contains(&keyword.as_str())) {
                    Some(named) => named.values_mut().for_each(|schema| each_schema(schema, visit)),
                    None => each_schema(value, visit),
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| each_schema(schema, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostFacts;
    use crate::openai_chat;
    use toolgate_model::Extras;

    fn fitted(
        dialect: DialectId,
        host: &str,
        strict: Option<bool>,
        schema: &Value,
    ) -> (Value, Option<bool>, usize) {
        let profile = HostFacts::named(dialect, host).expect("a known host").profile("m");
        let mut losses = Losses::default();
        let mut tool = Tool::Function(FunctionTool {
            name: "f".into(),
            description: None,
            schema: Some(JsonText::from_value(schema)),
            strict,
            extras: Extras::NONE,
        });
        fit_tool(&mut tool, &profile, dialect, Client::OtherDialect, &mut losses);
        let Tool::Function(tool) = tool else { unreachable!("it was a function") };
        (tool.schema.expect("a schema").to_value(), tool.strict, losses.iter().count())
    }

    fn with_property(property: &Value) -> Value {
        json!({ "type": "object", "properties": { "a": property } })
    }

    #[test]
    fn schemas_that_a_host_would_refuse_are_rewritten() {
        for (host, property, expected) in [
            ("openai", json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
            ("gemini", json!({ "const": "x" }), json!({ "enum": ["x"] })),
            ("gemini", json!({ "type": ["string", "null"] }), json!({ "type": "string" })),
            (
                "gemini",
                json!({ "type": ["string", "integer"] }),
                json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
            ),
            ("gemini", json!({ "enum": [1, 2] }), json!({ "description": "One of [1,2]." })),
            ("moonshot", json!({ "type": "string", "anyOf": [{}] }), json!({ "anyOf": [{}] })),
            (
                "xai",
                json!({ "type": "object", "properties": {}, "additionalProperties": false }),
                json!({ "type": "object", "properties": {} }),
            ),
        ] {
            let (schema, ..) = fitted(openai_chat::ID, host, None, &with_property(&property));
            assert_eq!(schema, with_property(&expected), "{host}");
        }
    }

    #[test]
    fn strict_is_kept_only_for_schemas_without_optional_keys() {
        let optional = with_property(&json!({ "type": "string" }));
        let mut required = optional.clone();
        required["required"] = json!(["a"]);
        required["additionalProperties"] = json!(false);
        let (_, strict, lost) = fitted(openai_chat::ID, "openai", Some(true), &optional);
        assert_eq!((strict, lost), (Some(false), 1));
        let (schema, strict, lost) = fitted(openai_chat::ID, "openai", Some(true), &required);
        assert_eq!((schema, strict, lost), (required, Some(true), 0));
        let (schema, strict, lost) = fitted(anthropic_messages::ID, "anthropic", Some(true), &optional);
        assert_eq!((&schema["additionalProperties"], strict, lost), (&json!(false), Some(true), 0));
        let limited = with_property(&json!({ "type": "string", "maxLength": 9, "description": "A name." }));
        let (schema, ..) = fitted(anthropic_messages::ID, "anthropic", Some(true), &limited);
        assert_eq!(
            schema["properties"]["a"],
            json!({ "type": "string", "description": "A name. maxLength: 9." })
        );
    }
}
