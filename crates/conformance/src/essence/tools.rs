//! Offered tools and the arguments of calls.

use serde_json::{Map, Value, json};
use toolgate_model::{CallKind, CustomTool, FunctionTool, JsonText, Tool, ToolCall};

use super::{Speaker, Statement};
use crate::adaptation::{DATA, NAMED};

/// The statements about an offered tool: that it is offered, its schema or grammar, and whether it is strict.
pub(super) fn tool(tool: &Tool, statements: &mut Vec<Statement>) {
    let mut say = |name: &str, detail: String| {
        statements.push(Statement::non_text(Speaker::OfferedTool, name, detail));
    };
    match tool {
        Tool::Function(FunctionTool { name, description, schema, strict, extras: _ }) => {
            let name = name.as_str();
            say(name, format!("function {}", description.as_deref().unwrap_or_default()));
            say(name, format!("schema {}", canonical(schema.as_ref())));
            if *strict == Some(true) {
                say(name, "strict".to_owned());
            }
        }
        Tool::Custom(CustomTool { name, description, format, extras: _ }) => {
            let name = name.as_str();
            say(name, format!("custom {}", description.as_deref().unwrap_or_default()));
            let grammar = format.as_ref().map(JsonText::to_value).and_then(grammar);
            if let Some(grammar) = grammar {
                say(name, format!("grammar {grammar}"));
            }
        }
        Tool::Provider(opaque) => say(&opaque.kind, "of its provider".to_owned()),
    }
}

/// A grammar: one dialect nests it, the other does not. Plain text is the default.
fn grammar(mut format: Value) -> Option<Value> {
    let nested = format.get_mut("grammar").map(Value::take);
    let grammar = nested.unwrap_or(format);
    let field = |name: &str| grammar.get(name).cloned().unwrap_or_default();
    (field("type") != "text").then(|| json!([field("syntax"), field("definition")]))
}

/// The schema with its keywords sorted. The order of properties is kept: models fill them in this order.
pub(super) fn canonical(schema: Option<&JsonText>) -> Value {
    schema.map_or(Value::Null, |schema| sorted(schema.to_value()))
}

fn sorted(schema: Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let mut all: Map<String, Value> =
                keywords.into_iter().map(|(keyword, value)| sorted_keyword(keyword, value)).collect();
            all.sort_keys();
            Value::Object(all)
        }
        Value::Array(schemas) => schemas.into_iter().map(sorted).collect(),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => value,
    }
}

fn sorted_keyword(keyword: String, value: Value) -> (String, Value) {
    if DATA.contains(&keyword.as_str()) {
        return (keyword, value);
    }
    let value = match value {
        Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
            named.into_iter().map(|(name, schema)| (name, sorted(schema))).collect()
        }
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => sorted(value),
    };
    (keyword, value)
}

/// The arguments of a call in a request.
pub(super) fn arguments(call: &ToolCall) -> String {
    match call.kind {
        CallKind::Custom => format!("text {}", call.arguments),
        CallKind::Function => format!("arguments {}", parsed(&call.arguments)),
    }
}

/// The arguments of a call in a reply. A dialect without custom tools writes the text of one as the only field `input`;
/// the gateway unwraps only what it wrapped, so a reply that is read without its request still has it.
pub(super) fn unwrapped_arguments(call: &ToolCall) -> String {
    let arguments = match call.kind {
        CallKind::Custom => Value::from(call.arguments.as_str()),
        CallKind::Function => {
            let arguments = parsed(&call.arguments);
            let only = arguments.as_object().filter(|fields| fields.len() == 1);
            only.and_then(|fields| fields.get("input"))
                .filter(|input| input.is_string())
                .cloned()
                .unwrap_or(arguments)
        }
    };
    format!("arguments {arguments}")
}

/// Parsed arguments. None, and `null`, equal an empty object; text that is no JSON is itself.
pub(crate) fn parsed(arguments: &str) -> Value {
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Null) => json!({}),
        Err(_) if arguments.trim().is_empty() => json!({}),
        Ok(value) => value,
        Err(_) => Value::from(arguments),
    }
}
