//! Replaces `$ref` by what it points at, so that every parameter's schema can be read and shown by itself.

use serde_json::{Map, Value};

/// How many references are followed inside one another; deeper ones are recursive and stay open.
const MAX_DEPTH: usize = 6;
/// How many values a schema may grow to. References to references can multiply without end.
const MAX_NODES: usize = 20_000;

/// The schema without references and without the definitions they pointed at.
pub(crate) fn references(schema: &Value) -> Value {
    let mut budget = MAX_NODES;
    replace(schema, schema, 0, &mut budget)
}

fn replace(value: &Value, root: &Value, depth: usize, budget: &mut usize) -> Value {
    if *budget == 0 {
        return Value::Bool(true);
    }
    *budget -= 1;
    match value {
        Value::Object(fields) => object(fields, root, depth, budget),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| replace(item, root, depth, budget)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn object(fields: &Map<String, Value>, root: &Value, depth: usize, budget: &mut usize) -> Value {
    let mut result = Map::new();
    if let Some(Value::String(reference)) = fields.get("$ref") {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let target = target.filter(|_| depth < MAX_DEPTH);
        if let Some(Value::Object(target)) = target.map(|target| replace(target, root, depth + 1, budget)) {
            result = target;
        }
    }
    for (name, value) in fields {
        // A property may be called `$defs`, but no schema keyword beside these holds definitions.
        let dropped = match name.as_str() {
            "$defs" | "definitions" => depth == 0 && std::ptr::eq(fields, root_fields(root, fields)),
            "$ref" | "$schema" | "$id" => value.is_string(),
            _ => false,
        };
        if !dropped {
            result.insert(name.clone(), replace(value, root, depth, budget));
        }
    }
    Value::Object(result)
}

fn root_fields<'a>(root: &'a Value, other: &'a Map<String, Value>) -> &'a Map<String, Value> {
    root.as_object().unwrap_or(other)
}
