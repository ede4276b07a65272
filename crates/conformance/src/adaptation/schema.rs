//! The rules for schemas of tools and of the output.

use serde_json::{Map, Value, json};
use toolgate_dialect::host::{HostProfile, SchemaPart};
use toolgate_model::references::{Inlined, Meaning, inlined};
use toolgate_model::{FunctionTool, JsonText, Losses, SchemaFormat};

use super::{Host, is_messages};

/// A schema's keywords.
type Keywords = Map<String, Value>;

/// The schema and the strictness of a tool.
pub(super) fn adapt_tool(tool: &mut FunctionTool, host: Host<'_>, losses: &Losses) {
    let is_lost = |what: &str| losses.contains(&format!("tools[{}].{what}", tool.name));
    let mut schema = tool.schema.as_ref().map_or_else(empty_object, JsonText::to_value);
    inline_references(&mut schema);
    if !schema.is_object() && is_lost("schema") {
        schema = empty_object();
    }
    if let Value::Object(root) = &mut schema {
        adapt_root(root, host, &is_lost);
    }
    each_schema(&mut schema, &mut |keywords| {
        add_items(keywords);
        replace_refused(keywords, host.profile);
    });
    if tool.strict == Some(true) && is_lost("strict") {
        tool.strict = Some(false);
    } else if tool.strict == Some(true) && is_messages(host) {
        each_schema(&mut schema, &mut close_for_claude);
    }
    tool.schema = Some(JsonText::from_value(&schema));
}

/// The schema of the output. Claude follows every schema, so `strict` has no meaning there.
pub(super) fn adapt_output(format: &mut SchemaFormat, host: Host<'_>, losses: &Losses) {
    let mut schema = format.schema.to_value();
    if is_messages(host) {
        each_schema(&mut schema, &mut close_for_claude);
        format.strict = None;
    } else {
        each_schema(&mut schema, &mut |keywords| replace_refused(keywords, host.profile));
        if losses.contains("response_format.strict") {
            format.strict = Some(false);
        }
    }
    format.schema = JsonText::from_value(&schema);
}

fn empty_object() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// References are replaced by their targets, unless that changes the meaning.
fn inline_references(schema: &mut Value) {
    if let Some(Inlined { schema: flat, meaning: Meaning::Same }) = inlined(schema) {
        *schema = flat;
    }
}

/// The root is an object with properties, without a choice of schemas.
fn adapt_root(root: &mut Keywords, host: Host<'_>, is_lost: &dyn Fn(&str) -> bool) {
    let is_object = root.get("type").is_some_and(|kind| kind == "object");
    if !is_object && (!root.contains_key("type") || is_lost("schema.type")) {
        root.insert("type".to_owned(), Value::from("object"));
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        match root.get(keyword) {
            Some(Value::Array(variants)) if is_lost(&format!("schema.{keyword}")) => {
                let variants = variants.clone();
                root.shift_remove(keyword);
                merge_variants(keyword, &variants, root);
            }
            Some(Value::Null) => drop(root.shift_remove(keyword)),
            Some(_) | None => {}
        }
    }
    if !is_messages(host) && !root.contains_key("$ref") {
        root.entry("properties").or_insert_with(|| json!({}));
    }
}

/// The properties of all variants are allowed. Required is what every variant requires; for `allOf`, what any does.
fn merge_variants(keyword: &str, variants: &[Value], root: &mut Keywords) {
    let names = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
    let mut properties = root.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for variant in variants.iter().filter_map(|variant| variant["properties"].as_object()) {
        for (name, property) in variant {
            properties.entry(name).or_insert_with(|| property.clone());
        }
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    let is_shared = |name: &Value| variants.iter().all(|variant| names(variant).contains(name));
    let mut required = root.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for name in variants.iter().flat_map(names) {
        if (keyword == "allOf" || is_shared(&name)) && !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
}

/// An array without `items` gets items of any kind.
fn add_items(keywords: &mut Keywords) {
    let is_array = keywords.get("type").is_some_and(|kind| kind == "array");
    if is_array && !keywords.contains_key("prefixItems") {
        keywords.entry("items").or_insert_with(|| json!({}));
    }
}

/// What the host refuses is replaced by what says the same, or says less.
fn replace_refused(keywords: &mut Keywords, profile: &HostProfile) {
    let refuses = |part| profile.refused_schema.contains(part);
    if refuses(SchemaPart::SchemaUri) {
        keywords.shift_remove("$schema");
    }
    if refuses(SchemaPart::Const)
        && let Some(value) = keywords.shift_remove("const")
    {
        keywords.insert("enum".to_owned(), json!([value]));
    }
    if refuses(SchemaPart::TypeArray)
        && let Some(Value::Array(types)) = keywords.get("type").cloned()
    {
        keywords.shift_remove("type");
        let types: Vec<Value> = types.into_iter().filter(|kind| kind != "null").collect();
        match types.as_slice() {
            [] => {}
            [one] => drop(keywords.insert("type".to_owned(), one.clone())),
            many => {
                let choices = many.iter().map(|kind| json!({ "type": kind })).collect();
                keywords.insert("anyOf".to_owned(), Value::Array(choices));
            }
        }
    }
    let has_numbers = |values: &Value| values.as_array().is_some_and(|all| all.iter().any(Value::is_number));
    if refuses(SchemaPart::NumberEnum) && keywords.get("enum").is_some_and(has_numbers) {
        let values = keywords.shift_remove("enum").unwrap_or_default();
        describe(keywords, &format!("One of {values}."));
    }
    if refuses(SchemaPart::ClosedObject) && keywords.get("additionalProperties") == Some(&json!(false)) {
        keywords.shift_remove("additionalProperties");
    }
    if refuses(SchemaPart::TypedChoice) && keywords.contains_key("anyOf") {
        keywords.shift_remove("type");
    }
}

/// Claude enforces closed objects. It refuses limits, which move into the description in this order.
fn close_for_claude(keywords: &mut Keywords) {
    if keywords.get("type").is_some_and(|kind| kind == "object") {
        keywords.insert("additionalProperties".to_owned(), json!(false));
    }
    for limit in [
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
    ] {
        let is_accepted =
            limit == "minItems" && keywords.get(limit).is_some_and(|least| least == 0 || least == 1);
        if !is_accepted && let Some(value) = keywords.shift_remove(limit) {
            describe(keywords, &format!("{limit}: {value}."));
        }
    }
}

fn describe(keywords: &mut Keywords, sentence: &str) {
    let before = keywords.get("description").and_then(Value::as_str);
    let text = before.map_or_else(|| sentence.to_owned(), |before| format!("{before} {sentence}"));
    keywords.insert("description".to_owned(), Value::from(text));
}

/// Keywords whose values are schemas by name.
pub(crate) const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose values are data.
pub(crate) const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Visits a schema and those inside it.
fn each_schema(schema: &mut Value, visit: &mut dyn FnMut(&mut Keywords)) {
    match schema {
        Value::Object(keywords) => {
            visit(keywords);
            for (keyword, value) in keywords {
                if DATA.contains(&keyword.as_str()) {
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
