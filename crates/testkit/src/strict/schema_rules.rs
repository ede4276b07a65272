//! Tool schemas that hosts refuse.

use serde_json::Value;

use super::profile::{Rule, StrictProfile};

type Check = Result<(), String>;

/// Checks the parameters of a chat or Responses function.
pub(super) fn check(profile: &StrictProfile, function: &Value) -> Check {
    let parameters = &function["parameters"];
    if parameters.is_null() {
        return Ok(());
    }
    let name = &function["name"];
    let refuse = |what: &str| Err(format!("Invalid schema for function {name}: {what}"));
    if profile.has(&Rule::OpenAiFamily) {
        if parameters["type"] != "object" || !parameters["properties"].is_object() {
            return refuse("the root must be an object with properties");
        }
        if ["oneOf", "anyOf", "allOf", "enum", "not"].iter().any(|union| !parameters[*union].is_null()) {
            return refuse("no union at the root");
        }
        each(parameters, &|schema| {
            if schema["type"] == "array" && schema["items"].is_null() {
                return Err("array schema missing items".to_owned());
            }
            if function["strict"] == true { strict_object(schema) } else { Ok(()) }
        })?;
    }
    if profile.has(&Rule::GeminiSchema) {
        each(parameters, &gemini)?;
    }
    if profile.has(&Rule::MoonshotSchema) {
        if parameters["type"] != "object" {
            return refuse("the root must be an object");
        }
        each(parameters, &moonshot)?;
    }
    Ok(())
}

/// Every key required, no others.
pub(super) fn strict_object(schema: &Value) -> Check {
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    if schema["additionalProperties"] != false {
        return Err("'additionalProperties' is required to be supplied and to be false".to_owned());
    }
    let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
    match properties.keys().find(|key| !required.iter().any(|name| *name == *key)) {
        Some(key) => Err(format!("'required' must include every key: missing '{key}'")),
        None => Ok(()),
    }
}

fn gemini(schema: &Value) -> Check {
    for keyword in ["$schema", "const"] {
        if !schema[keyword].is_null() {
            return Err(format!(
                "Unknown name \"{keyword}\" at 'tools[0].function_declarations[0].parameters'"
            ));
        }
    }
    if schema["type"].is_array() {
        return Err("Proto field is not repeating, cannot start list: type".to_owned());
    }
    if schema["enum"].as_array().into_iter().flatten().any(|value| !value.is_string()) {
        return Err("enum: only strings are allowed".to_owned());
    }
    Ok(())
}

fn moonshot(schema: &Value) -> Check {
    let keywords = schema.as_object().map_or(0, serde_json::Map::len);
    if !schema["$ref"].is_null() && keywords > 1 {
        return Err("$ref must stand alone".to_owned());
    }
    if !schema["anyOf"].is_null() && !schema["type"].is_null() {
        return Err("type must not be beside anyOf".to_owned());
    }
    if schema["items"].is_array() || !schema["prefixItems"].is_null() {
        return Err("tuples are not supported".to_owned());
    }
    Ok(())
}

/// Keywords of limits that Claude's structured output does not know.
const LIMITS: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
];

/// Claude's structured output: closed objects, no limits.
pub(super) fn claude_format(schema: &Value) -> Check {
    each(schema, &|schema| {
        if schema["type"] == "object" && schema["additionalProperties"] != false {
            return Err(
                "For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned()
            );
        }
        if let Some(keyword) = LIMITS.iter().find(|keyword| !schema[**keyword].is_null()) {
            return Err(format!("For '{}' type, property '{keyword}' is not supported", schema["type"]));
        }
        if schema["minItems"].as_u64().is_some_and(|least| least > 1) {
            return Err("'minItems' other than 0 and 1 is not supported".to_owned());
        }
        Ok(())
    })
}

/// Checks a schema and every schema in it.
pub(super) fn each(schema: &Value, check: &dyn Fn(&Value) -> Check) -> Check {
    if !schema.is_object() {
        return Ok(());
    }
    check(schema)?;
    for keyword in ["properties", "$defs", "definitions"] {
        for (_, child) in schema[keyword].as_object().into_iter().flatten() {
            each(child, check)?;
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems", "items"] {
        for child in schema[keyword].as_array().into_iter().flatten() {
            each(child, check)?;
        }
    }
    each(&schema["items"], check)?;
    each(&schema["additionalProperties"], check)
}
