//! Reads the offered tools and the tool choice.

use serde_json::Value;
use toolgate_model::{
    CallKind, Choice, CustomTool, Extras, Fields, FunctionTool, Parallel, Tool, ToolChoice, TurnError,
};

use super::ID;
use super::extras::{nested_extras, opaque};
use super::wire::NameIn;
use super::wire_either::StringOrObject;
use super::wire_tools::{CustomToolIn, FunctionToolIn, ToolIn};
use crate::openai_shared::{ALLOWED_TOOLS, read_allowed_tools};

/// Reads tools and legacy functions, in the client's order (T37).
pub(super) fn read(tools: Option<Vec<ToolIn>>, functions: Option<Vec<FunctionToolIn>>) -> Vec<Tool> {
    let tools = tools.unwrap_or_default().into_iter().map(|tool| match tool {
        ToolIn::Function { function, extra } => read_function(function, extra),
        ToolIn::Custom { custom: CustomToolIn { name, description, format, extra: inner }, extra } => {
            let extras = nested_extras(extra, "custom", inner);
            Tool::Custom(CustomTool { name: name.into(), description, format, extras })
        }
        ToolIn::Other(opaque) => Tool::Provider(opaque),
    });
    let functions =
        functions.unwrap_or_default().into_iter().map(|function| read_function(function, Fields::new()));
    tools.chain(functions).collect()
}

fn read_function(function: FunctionToolIn, extra: Fields) -> Tool {
    let FunctionToolIn { name, description, parameters, strict, extra: inner } = function;
    let extras = nested_extras(extra, "function", inner);
    Tool::Function(FunctionTool { name: name.into(), description, schema: parameters, strict, extras })
}

/// The key of a choice in an unusual form, in the choice's extras.
pub(super) const TOOL_CHOICE: &str = "tool_choice";

/// Reads the tool choice. `parallel_tool_calls` alone forces no call (T31). A form that only some hosts accept is kept
/// for hosts of this dialect.
pub(super) fn read_choice(
    tool_choice: Option<StringOrObject<Fields>>,
    function_call: Option<StringOrObject<NameIn>>,
    parallel: Option<bool>,
) -> Result<ToolChoice, TurnError> {
    let parallel = parallel.map(|allowed| if allowed { Parallel::Allowed } else { Parallel::Forbidden });
    let extras = tool_choice.as_ref().and_then(unusual_form).map_or(Extras::NONE, |form| {
        Extras::of(ID, Fields::from_iter([(TOOL_CHOICE.to_owned(), form)])).all_envelope_fields()
    });
    let choice = match (tool_choice, function_call) {
        (Some(StringOrObject::String(word)), _) => Some(read_keyword("tool_choice", &word)?),
        (Some(StringOrObject::Object(fields)), _) if is_list_of_allowed(&fields) => {
            let list = fields.get(ALLOWED_TOOLS).and_then(Value::as_object).unwrap_or(&fields);
            return Ok(ToolChoice { parallel, ..read_allowed_tools(list, ID) });
        }
        (Some(StringOrObject::Object(fields)), _) => Some(read_choice_object(fields)?),
        (None, Some(StringOrObject::String(word))) => Some(read_keyword("function_call", &word)?),
        (None, Some(StringOrObject::Object(NameIn { name }))) => {
            Some(Choice::Named(name.into(), CallKind::Function))
        }
        (None, None) => None,
    };
    Ok(ToolChoice { choice, parallel, extras, ..ToolChoice::default() })
}

fn unusual_form(choice: &StringOrObject<Fields>) -> Option<Value> {
    match choice {
        StringOrObject::String(word) => (word == "any").then(|| Value::from(word.as_str())),
        StringOrObject::Object(fields) => {
            let tag = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_unusual = match tag {
                "function" | "custom" => !fields.contains_key(tag),
                "" | "tool" | "none" | "auto" | "required" | "any" => true,
                _ => false,
            };
            is_unusual.then(|| Value::Object(fields.clone()))
        }
    }
}

fn is_list_of_allowed(fields: &Fields) -> bool {
    fields.get("type").and_then(Value::as_str) == Some(ALLOWED_TOOLS)
}

fn read_keyword(field: &str, word: &str) -> Result<Choice, TurnError> {
    match word {
        "none" => Ok(Choice::None),
        "auto" => Ok(Choice::Auto),
        // Some compatible hosts use `any`.
        "required" | "any" => Ok(Choice::Any),
        other => {
            let message = format!(
                "{field}: unknown value `{other}`: use none, auto, required or an object that names a tool"
            );
            Err(TurnError::invalid_param(field, message))
        }
    }
}

/// Reads an object. Besides OpenAI's forms, hosts accept a word as its type, a name beside the type, and
/// `{"type": "tool", "name": …}`.
fn read_choice_object(mut fields: Fields) -> Result<Choice, TurnError> {
    let tag = fields.get("type").and_then(Value::as_str).unwrap_or("function").to_owned();
    let kind = match tag.as_str() {
        "function" | "tool" => CallKind::Function,
        "custom" => CallKind::Custom,
        "none" | "auto" | "required" | "any" => return read_keyword("tool_choice", &tag),
        _ => {
            fields.shift_remove("type");
            return Ok(Choice::Provider(opaque(&tag, fields)));
        }
    };
    let nested = fields.get(&tag).and_then(|tool| tool.get("name"));
    if let Some(name) = nested.or_else(|| fields.get("name")).and_then(Value::as_str) {
        return Ok(Choice::Named(name.into(), kind));
    }
    fields.shift_remove("type");
    Ok(Choice::Provider(opaque(&tag, fields)))
}
