//! What a tool takes, as far as reading its arguments needs to know: which JSON types each parameter may have.
//! Types come from the schema, never from the look of the text (P16).

pub(crate) mod builtin;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use toolgate_model::references::inlined;
use toolgate_model::{CallKind, JsonText, Losses, Tool};

/// The one parameter of a tool that takes free text.
pub(crate) const RAW_PARAMETER: &str = "input";

/// A tool as the prompt shows it and the parser reads it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolSpec {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) kind: CallKind,
    pub(crate) parameters: Vec<Parameter>,
}

/// One parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) types: Types,
    /// The only values allowed, where the schema lists them.
    pub(crate) members: Vec<Value>,
    pub(crate) notation: Notation,
    pub(crate) required: bool,
    /// The schema with references replaced by what they mean.
    pub(crate) schema: Value,
}

/// How a parameter's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Strings raw, other types as JSON.
    Raw,
    /// All as JSON, strings in quotes: a listed string would otherwise look like another listed value.
    Json,
}

/// A set of JSON types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const STRING: Self = Self(1);
    pub(crate) const NUMBER: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const BOOLEAN: Self = Self(8);
    pub(crate) const NULL: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    pub(crate) const ARRAY: Self = Self(64);
    pub(crate) const ANY: Self = Self(127);

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The types a value of this JSON type satisfies.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER,
            Value::Number(_) => Self::NUMBER.or(Self::INTEGER),
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// The set a schema's type name stands for. Some tool lists use Python's names.
    fn named(name: &str) -> Self {
        match name {
            "string" | "str" => Self::STRING,
            "number" | "float" | "double" => Self::NUMBER.or(Self::INTEGER),
            "integer" | "int" => Self::INTEGER,
            "boolean" | "bool" => Self::BOOLEAN,
            "null" => Self::NULL,
            "object" | "dict" => Self::OBJECT,
            "array" | "list" | "tuple" => Self::ARRAY,
            _ => Self::ANY,
        }
    }
}

impl ToolSpec {
    /// What can be read of a tool; `None`, and a reported loss, where only its own provider could run it.
    pub(crate) fn of(tool: &Tool, losses: &mut Losses) -> Option<Self> {
        match tool {
            Tool::Function(function) => {
                let schema = function.schema.as_ref().map_or(Value::Null, JsonText::to_value);
                Some(Self {
                    name: function.name.as_str().to_owned(),
                    description: function.description.clone().unwrap_or_default(),
                    kind: CallKind::Function,
                    parameters: parameters(&schema),
                })
            }
            Tool::Custom(custom) => {
                let mut description = custom.description.clone().unwrap_or_default();
                if let Some(format) = &custom.format {
                    description.push_str("\nThe input must follow this format: ");
                    description.push_str(format.as_str());
                }
                let name = custom.name.as_str().to_owned();
                let schema = serde_json::json!({"type": "string"});
                let input = Parameter::new(RAW_PARAMETER.to_owned(), schema, Presence::Required);
                Some(Self { name, description, kind: CallKind::Custom, parameters: vec![input] })
            }
            Tool::Provider(provider) => {
                let built_in = tool.name().and_then(|name| builtin::tool(name, &provider.kind));
                if built_in.is_none() {
                    losses.add(
                        format!("tools[{}]", provider.kind),
                        "only its provider can run it, and the model is given tools as text",
                    );
                }
                built_in
            }
        }
    }

    /// The position of a parameter by its exact name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }
}

/// Whether a parameter may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

impl Parameter {
    pub(crate) fn new(name: String, schema: Value, presence: Presence) -> Self {
        let required = presence == Presence::Required;
        let types = types(&schema);
        let members = allowed_members(&schema, types);
        Self { name, types, notation: notation(&members), members, required, schema }
    }

    /// A parameter no schema speaks of.
    pub(crate) fn unknown(name: String) -> Self {
        Self::new(name, Value::Bool(true), Presence::Optional)
    }
}

/// The parameters of a tool from its schema.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let flat = inlined(schema).map(|inlined| inlined.schema);
    let mut required = Vec::new();
    let mut properties = Map::new();
    collect(flat.as_ref().unwrap_or(schema), &mut properties, &mut required);
    let parameter = |(name, schema): (String, Value)| {
        let presence = if required.contains(&name) { Presence::Required } else { Presence::Optional };
        Parameter::new(name, schema, presence)
    };
    properties.into_iter().map(parameter).collect()
}

/// Properties may stand in the schema itself or in the parts of an `allOf`; those of `anyOf` and `oneOf` are
/// known but none of them is required.
fn collect(schema: &Value, properties: &mut Map<String, Value>, required: &mut Vec<String>) {
    if let Some(own) = schema.get("properties").and_then(Value::as_object) {
        properties.extend(own.iter().map(|(name, schema)| (name.clone(), schema.clone())));
    }
    if let Some(names) = schema.get("required").and_then(Value::as_array) {
        required.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    for part in alternatives(schema, "allOf") {
        collect(part, properties, required);
    }
    for part in alternatives(schema, "anyOf").iter().chain(alternatives(schema, "oneOf")) {
        collect(part, properties, &mut Vec::new());
    }
}

fn alternatives<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The types a schema without references allows (P17).
fn types(schema: &Value) -> Types {
    let Some(fields) = schema.as_object() else { return Types::ANY };
    let mut allowed = match fields.get("type") {
        Some(Value::String(name)) => Types::named(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).fold(Types::NONE, |set, name| set.or(Types::named(name)))
        }
        _ if fields.contains_key("properties") => Types::OBJECT,
        _ if fields.contains_key("items") => Types::ARRAY,
        _ => Types::ANY,
    };
    for keyword in ["anyOf", "oneOf"] {
        let parts = alternatives(schema, keyword);
        if !parts.is_empty() {
            allowed = allowed.and(parts.iter().fold(Types::NONE, |set, part| set.or(types(part))));
        }
    }
    for part in alternatives(schema, "allOf") {
        allowed = allowed.and(types(part));
    }
    let listed = listed(schema);
    if !listed.is_empty() {
        allowed = allowed.and(listed.iter().fold(Types::NONE, |set, value| set.or(Types::of(value))));
    }
    // A default is a value the tool takes, whatever its type says.
    let null_by_default = fields.get("default") == Some(&Value::Null);
    if null_by_default || fields.get("nullable") == Some(&Value::Bool(true)) {
        allowed = allowed.or(Types::NULL);
    }
    // A schema that contradicts itself still has to be read somehow.
    if allowed == Types::NONE { Types::ANY } else { allowed }
}

fn listed(schema: &Value) -> Vec<Value> {
    let constant = schema.get("const").cloned();
    constant.into_iter().chain(alternatives(schema, "enum").iter().cloned()).collect()
}

/// The listed values that the types allow too, and null where only the types speak of it.
fn allowed_members(schema: &Value, types: Types) -> Vec<Value> {
    let mut members = members(schema);
    if members.iter().any(|member| types.has(Types::of(member))) {
        members.retain(|member| types.has(Types::of(member)));
        if types.has(Types::NULL) && !members.contains(&Value::Null) {
            members.push(Value::Null);
        }
    }
    members
}

/// `"1"` beside `1`, `"null"` beside null: raw, the one could not be told from the other.
fn notation(members: &[Value]) -> Notation {
    let meant_otherwise = |text: &str| serde_json::from_str(text).is_ok_and(|value| members.contains(&value));
    if members.iter().filter_map(Value::as_str).any(meant_otherwise) { Notation::Json } else { Notation::Raw }
}

/// The only values allowed; empty where others are allowed too.
fn members(schema: &Value) -> Vec<Value> {
    let own = listed(schema);
    if !own.is_empty() {
        return own;
    }
    let mut all = Vec::new();
    for part in alternatives(schema, "anyOf").iter().chain(alternatives(schema, "oneOf")) {
        let part_members = members(part);
        if part_members.is_empty() && types(part) != Types::NULL {
            return Vec::new();
        }
        all.extend(part_members);
    }
    all
}
