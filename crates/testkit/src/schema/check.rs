//! Checks a value against a schema. Only the keywords that the generated files use are known.

use serde_json::{Map, Value};

/// Checks `value` against `schema`, whose references are in `document`.
pub(super) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let checker = Checker { document };
    checker.check(schema, value, &Path::Root).map_err(|fault| format!("{}: {}", fault.path, fault.reason))
}

/// The first thing that is wrong.
struct Fault {
    path: String,
    reason: String,
    /// How far the check came before it failed. The alternative that came furthest is the one that was meant.
    depth: usize,
}

/// Where a value is in the document.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn depth(&self) -> usize {
        match self {
            Self::Root => 0,
            Self::Key(parent, _) | Self::Index(parent, _) => parent.depth() + 1,
        }
    }
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => formatter.write_str("body"),
            Self::Key(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

struct Checker<'a> {
    document: &'a Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, path: &Path<'_>) -> Result<(), Fault> {
        let fault = |reason: String| Fault { path: path.to_string(), reason, depth: path.depth() + 1 };
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.trim_start_matches("#/$defs/");
            return self.check(&self.document["$defs"][name], value, path);
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            return self.check_any(alternatives, value, path);
        }
        if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
            return Err(fault(format!("{value} is not {constant}")));
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.contains(value)) {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            return Err(fault(format!("{value} is not one of {}", values.join(", "))));
        }
        if let Some(kind) = schema["type"].as_str().filter(|kind| !is(kind, value)) {
            return Err(Fault { depth: path.depth(), ..fault(format!("{} is not {kind}", brief(value))) });
        }
        match value {
            Value::Array(items) if schema["items"].is_object() => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.check(&schema["items"], item, &Path::Index(path, index))),
            Value::Object(object) => self.check_object(schema, object, path),
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn check_any(&self, alternatives: &[Value], value: &Value, path: &Path<'_>) -> Result<(), Fault> {
        let mut best: Option<Fault> = None;
        for alternative in alternatives {
            let Err(fault) = self.check(alternative, value, path) else { return Ok(()) };
            if best.as_ref().is_none_or(|best| fault.depth > best.depth) {
                best = Some(fault);
            }
        }
        best.map_or(Ok(()), Err)
    }

    fn check_object(
        &self,
        schema: &Value,
        object: &Map<String, Value>,
        path: &Path<'_>,
    ) -> Result<(), Fault> {
        let fault = |reason: String| Fault { path: path.to_string(), reason, depth: path.depth() + 1 };
        let properties = schema["properties"].as_object();
        // Tags first: they say which alternative was meant.
        for (name, tag) in properties.into_iter().flatten().filter(|(name, _)| is_tag(name)) {
            let Some(value) = object.get(name) else { continue };
            self.check(tag, value, &Path::Key(path, name)).map_err(|fault| Fault { depth: 0, ..fault })?;
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            if !object.contains_key(name) {
                return Err(fault(format!("`{name}` is missing")));
            }
        }
        for (name, value) in object {
            let key = Path::Key(path, name);
            match properties.and_then(|properties| properties.get(name)) {
                Some(property) => self.check(property, value, &key)?,
                None if schema["additionalProperties"] == false => {
                    return Err(Fault { path: key.to_string(), ..fault("unknown field".to_owned()) });
                }
                None if schema["additionalProperties"].is_object() => {
                    self.check(&schema["additionalProperties"], value, &key)?;
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Whether a property says which alternative was meant.
fn is_tag(name: &str) -> bool {
    matches!(name, "type" | "role" | "object")
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

/// A value, short enough for a message.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 {
        text
    } else {
        format!("{}…", text.chars().take(80).collect::<String>())
    }
}
