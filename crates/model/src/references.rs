//! A JSON Schema without references: each `$ref` is replaced by what it points at. Some hosts refuse references
//! (T24), and a parameter can only be shown by itself once they are gone.

use serde_json::{Map, Value};

/// How many values a schema may grow to. References to references can multiply without end.
const MAX_NODES: usize = 20_000;
/// How deep values may stand in one another once references are replaced; the stack is not endless.
const MAX_DEPTH: usize = 128;
/// Keywords that only say how references are resolved.
const RESOLUTION: [&str; 3] = ["$schema", "$id", "$anchor"];
/// Keywords that hold the schemas references point at.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose keys are names that the schema's author chose.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];
/// Keywords that only describe: beside a `$ref` they win over those of what it points at.
const DESCRIPTIONS: [&str; 5] = ["title", "description", "default", "examples", "deprecated"];

/// A schema without references.
#[derive(Clone, Debug, PartialEq)]
pub struct Inlined {
    /// The schema, without its definitions. What could not be put in place is left open: it accepts anything.
    pub schema: Value,
    /// Whether it still means the same.
    pub meaning: Meaning,
}

/// Whether an inlined schema means what it meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Every reference was put in place.
    Same,
    /// A reference is recursive, points nowhere or outside, or the schema would grow too large.
    Wider,
}

/// The schema with every reference replaced; `None` where it has none, and should stay byte for byte.
pub fn inlined(schema: &Value) -> Option<Inlined> {
    let mut work =
        Work { root: schema, budget: MAX_NODES, depth: 0, open: Vec::new(), meaning: Meaning::Same, met: 0 };
    let flat = work.schema(schema);
    (work.met > 0).then_some(Inlined { schema: flat, meaning: work.meaning })
}

struct Work<'a> {
    root: &'a Value,
    budget: usize,
    depth: usize,
    /// The references being followed.
    open: Vec<&'a str>,
    meaning: Meaning,
    met: usize,
}

impl<'a> Work<'a> {
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
            let word = keyword.as_str();
            let is_gone = RESOLUTION.contains(&word) || word == "$ref";
            if is_gone && value.is_string() || is_root && DEFINITIONS.contains(&word) {
                continue;
            }
            let value = match value.as_object().filter(|_| NAMED.contains(&word)) {
                Some(named) => self.named(named),
                None if DATA.contains(&word) => value.clone(),
                None => self.schema(value),
            };
            self.put(&mut result, word, value);
        }
        Value::Object(result)
    }

    fn named(&mut self, schemas: &'a Map<String, Value>) -> Value {
        Value::Object(schemas.iter().map(|(name, schema)| (name.clone(), self.schema(schema))).collect())
    }

    /// What a reference points at; nothing where it cannot be put in place.
    fn follow(&mut self, reference: &'a str) -> Map<String, Value> {
        self.met += 1;
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

    /// Adds a keyword that stood beside a reference. Both must hold, which one object cannot say where they differ.
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
    fn references_are_replaced_by_what_they_mean() {
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
    fn what_cannot_be_put_in_place_is_left_open_and_said() {
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
    fn data_and_names_that_look_like_references_are_none() {
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
