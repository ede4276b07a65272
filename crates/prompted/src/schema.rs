//! What the parser needs to know about a tool's parameters: their names and JSON types. Types come from the
//! schema, never from what the text looks like (P16).

pub(crate) mod builtin;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use toolgate_model::references::inlined;
use toolgate_model::{CallKind, JsonText, Losses, Tool};

/// The only parameter of a tool that takes free text.
pub(crate) const RAW_PARAMETER: &str = "input";

/// A tool, as listed in the prompt and used by the parser.
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
    /// The allowed values, if the schema lists them.
    pub(crate) enum_values: Vec<Value>,
    pub(crate) notation: Notation,
    pub(crate) required: bool,
    /// The schema with references inlined.
    pub(crate) schema: Value,
}

/// How the values of a parameter are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Strings raw, other types as JSON.
    Raw,
    /// Everything as JSON, strings in quotes: a raw string could be confused with another allowed value.
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

    /// The types that a JSON value satisfies.
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

    /// The types for a type name in a schema. Some tool lists use Python's names.
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
    /// The specification of a tool; `None`, with a reported loss, if only its own provider can run it.
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
                        "only its provider can run this tool, so a text-only model cannot use it",
                    );
                }
                built_in
            }
        }
    }

    /// The position of the parameter with this exact name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }
}

/// Whether a parameter is required.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

impl Parameter {
    pub(crate) fn new(name: String, schema: Value, presence: Presence) -> Self {
        let required = presence == Presence::Required;
        let types = types(&schema);
        let enum_values = allowed_enum_values(&schema, types);
        Self { name, types, notation: notation(&enum_values), enum_values, required, schema }
    }

    /// A parameter that the schema does not define.
    pub(crate) fn unknown(name: String) -> Self {
        Self::new(name, Value::Bool(true), Presence::Optional)
    }
}

/// The parameters in a tool's schema.
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

/// Properties may be in the schema itself or in the parts of an `allOf`. Properties in `anyOf` and `oneOf` are
/// known, but never required.
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

/// The types that a schema without references allows (P17).
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
    let own_enum_values = own_enum_values(schema);
    if !own_enum_values.is_empty() {
        allowed =
            allowed.and(own_enum_values.iter().fold(Types::NONE, |set, value| set.or(Types::of(value))));
    }
    // The default is a valid value, whatever the type says.
    let null_by_default = fields.get("default") == Some(&Value::Null);
    if null_by_default || fields.get("nullable") == Some(&Value::Bool(true)) {
        allowed = allowed.or(Types::NULL);
    }
    // A contradictory schema allows any type.
    if allowed == Types::NONE { Types::ANY } else { allowed }
}

fn own_enum_values(schema: &Value) -> Vec<Value> {
    let constant = schema.get("const").cloned();
    constant.into_iter().chain(alternatives(schema, "enum").iter().cloned()).collect()
}

/// The listed values that the types allow, and null if the types allow it.
fn allowed_enum_values(schema: &Value, types: Types) -> Vec<Value> {
    let mut enum_values = enum_values(schema);
    if enum_values.iter().any(|value| types.has(Types::of(value))) {
        enum_values.retain(|value| types.has(Types::of(value)));
        if types.has(Types::NULL) && !enum_values.contains(&Value::Null) {
            enum_values.push(Value::Null);
        }
    }
    enum_values
}

/// `"1"` and `1`, or `"null"` and null, could not be distinguished if strings were written raw.
fn notation(enum_values: &[Value]) -> Notation {
    let meant_otherwise =
        |text: &str| serde_json::from_str(text).is_ok_and(|value| enum_values.contains(&value));
    if enum_values.iter().filter_map(Value::as_str).any(meant_otherwise) {
        Notation::Json
    } else {
        Notation::Raw
    }
}

/// The only allowed values; empty if other values are allowed too.
fn enum_values(schema: &Value) -> Vec<Value> {
    let own = own_enum_values(schema);
    if !own.is_empty() {
        return own;
    }
    let mut all = Vec::new();
    for part in alternatives(schema, "anyOf").iter().chain(alternatives(schema, "oneOf")) {
        let part_values = enum_values(part);
        if part_values.is_empty() && types(part) != Types::NULL {
            return Vec::new();
        }
        all.extend(part_values);
    }
    all
}
