//! Inlines the references of a JSON Schema: replaces each `$ref` by its target. Some hosts reject references (T24), and
//! a parameter can only be described separately once they are gone.

use serde_json::{Map, Value};

/// The maximum size of an inlined schema, in values. Nested references can multiply exponentially.
const MAX_NODES: usize = 20_000;
/// The maximum depth of an inlined schema: inlining is recursive.
const MAX_DEPTH: usize = 128;
/// Keywords that only control how references are resolved.
const RESOLUTION: [&str; 3] = ["$schema", "$id", "$anchor"];
/// Keywords that hold the targets of references.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose keys are names chosen by the schema's author.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];
/// Keywords that only describe. Beside a `$ref` they override those of its target.
const DESCRIPTIONS: [&str; 5] = ["title", "description", "default", "examples", "deprecated"];

/// A schema without references.
#[derive(Clone, Debug, PartialEq)]
pub struct Inlined {
    /// The schema, without its definitions. A reference that cannot be inlined becomes a schema that accepts anything.
    pub schema: Value,
    /// Whether the meaning is unchanged.
    pub meaning: Meaning,
}

/// Whether an inlined schema is equivalent to the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Every reference was inlined.
    Same,
    /// A reference is recursive, has no target or an external one, or the result would be too large.
    Wider,
}

/// Inlines every reference. `None` if there is none, so that the caller can keep the original bytes.
pub fn inlined(schema: &Value) -> Option<Inlined> {
    let mut inliner = Inliner {
        root: schema,
        budget: MAX_NODES,
        depth: 0,
        open: Vec::new(),
        meaning: Meaning::Same,
        references: 0,
    };
    let flat = inliner.schema(schema);
    (inliner.references > 0).then_some(Inlined { schema: flat, meaning: inliner.meaning })
}

struct Inliner<'a> {
    root: &'a Value,
    budget: usize,
    depth: usize,
    /// The references that are being followed, to detect recursion.
    open: Vec<&'a str>,
    meaning: Meaning,
    references: usize,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, value: &'a Value) -> Value {
        if self.budget == 0 || self.depth == MAX_DEPTH {
            self.meaning = Meaning::Wider;
            return Value::Bool(true);
        }
        self.budget -= 1;
        self.depth += 1;
        let flat = match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.schema(item)).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        };
        self.depth -= 1;
        flat
    }

    fn object(&mut self, fields: &'a Map<String, Value>) -> Value {
        let is_root = self.root.as_object().is_some_and(|root| std::ptr::eq(root, fields));
        let mut result = match fields.get("$ref") {
            Some(Value::String(reference)) => self.follow(reference),
            Some(_) | None => Map::new(),
        };
        for (keyword, value) in fields {
            let name = keyword.as_str();
            let is_dropped = RESOLUTION.contains(&name) || name == "$ref";
            if is_dropped && value.is_string() || is_root && DEFINITIONS.contains(&name) {
                continue;
            }
            let value = match value.as_object().filter(|_| NAMED.contains(&name)) {
                Some(named) => self.named(named),
                None if DATA.contains(&name) => value.clone(),
                None => self.schema(value),
            };
            self.put(&mut result, name, value);
        }
        Value::Object(result)
    }

    fn named(&mut self, schemas: &'a Map<String, Value>) -> Value {
        Value::Object(schemas.iter().map(|(name, schema)| (name.clone(), self.schema(schema))).collect())
    }

    /// The inlined target of a reference; empty if it cannot be inlined.
    fn follow(&mut self, reference: &'a str) -> Map<String, Value> {
        self.references += 1;
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let target = target.filter(|_| !self.open.contains(&reference));
        let Some(target @ Value::Object(_)) = target else {
            self.meaning = Meaning::Wider;
            return Map::new();
        };
        self.open.push(reference);
        let flat = self.schema(target);
        self.open.pop();
        match flat {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        }
    }

    /// Adds a keyword that is beside a reference. If both define it differently, one object cannot express both.
    fn put(&mut self, result: &mut Map<String, Value>, keyword: &str, value: Value) {
        let differs = result.get(keyword).is_some_and(|before| *before != value);
        if differs && !DESCRIPTIONS.contains(&keyword) {
            self.meaning = Meaning::Wider;
        }
        result.insert(keyword.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, meaning: Meaning, flat: &Value) {
        let expected = Inlined { schema: flat.clone(), meaning };
        assert_eq!(inlined(schema), Some(expected), "{schema}");
    }

    #[test]
    fn references_are_replaced_by_their_targets() {
        let text = json!({"type": "string"});
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        check(
            &json!({"$schema": "x", "type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": text}}),
            Meaning::Same,
            &object(json!({"a": text})),
        );
        check(
            &json!({"$ref": "#/definitions/Root", "definitions": {"Root": object(json!({"a": text}))}}),
            Meaning::Same,
            &object(json!({"a": text})),
        );
        check(
            &json!({"items": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"not": {"$ref": "#/$defs/B"}}, "B": text}}),
            Meaning::Same,
            &json!({"items": [{"not": text}]}),
        );
        check(
            &json!({"not": {"$ref": "#/$defs/T", "description": "mine"}, "$defs": {"T": {"type": "string", "description": "its"}}}),
            Meaning::Same,
            &json!({"not": {"type": "string", "description": "mine"}}),
        );
    }

    #[test]
    fn a_reference_that_cannot_be_inlined_widens_the_schema() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
        check(
            &json!({"properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}),
            Meaning::Wider,
            &json!({"properties": {"first": {"type": "object", "properties": {"next": {}}}}}),
        );
        check(&json!({"not": {"$ref": "#/nowhere"}}), Meaning::Wider, &json!({"not": {}}));
        check(&json!({"not": {"$ref": "other.json#/a"}}), Meaning::Wider, &json!({"not": {}}));
        check(
            &json!({"not": {"$ref": "#/$defs/T", "required": ["b"]}, "$defs": {"T": {"required": ["a"]}}}),
            Meaning::Wider,
            &json!({"not": {"required": ["b"]}}),
        );
    }

    #[test]
    fn data_and_names_that_look_like_references_are_unchanged() {
        for schema in [
            json!({"type": "object", "properties": {"$ref": {"type": "string"}}}),
            json!({"type": "object", "default": {"$ref": "#/$defs/T"}, "$defs": {"T": {}}}),
            json!({"enum": [{"$ref": "#"}]}),
            json!({"type": "object"}),
            json!(true),
        ] {
            assert_eq!(inlined(&schema), None, "{schema}");
        }
    }

    #[test]
    fn references_that_multiply_are_bounded() {
        let mut definitions = Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"properties": {"a": next, "b": next, "c": next}}));
        }
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
        assert_eq!(inlined(&schema).map(|inlined| inlined.meaning), Some(Meaning::Wider));
    }

    #[test]
    fn a_long_chain_of_references_is_bounded() {
        let link = |level: usize| (format!("d{level}"), json!({"$ref": format!("#/$defs/d{}", level + 1)}));
        let definitions: Map<String, Value> = (0..10_000).map(link).collect();
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        assert_eq!(inlined(&schema).map(|inlined| inlined.meaning), Some(Meaning::Wider));
    }
}
