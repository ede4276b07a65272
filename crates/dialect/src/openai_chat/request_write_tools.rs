//! Writes the offered tools and the tool choice.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_model::{
    AllowedTool, CallKind, Choice, CustomTool, Fields, FunctionTool, JsonText, Losses, Tool, ToolChoice,
};

use super::ID;
use super::extras::write_nested;
use crate::NameMap;
use crate::openai_shared::{ALLOWED_TOOLS, allowed_mode};

/// A tool to write.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolOut<'a> {
    Function {
        r#type: &'static str,
        function: FunctionOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Custom {
        r#type: &'static str,
        custom: CustomOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Opaque(&'a Fields),
}

#[derive(Serialize)]
pub(super) struct FunctionOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
pub(super) struct CustomOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Cow<'a, JsonText>>,
    #[serde(flatten)]
    extra: Fields,
}

/// Writes a tool; `None` if it cannot be written, which is reported.
pub(super) fn write<'a>(tool: &'a Tool, names: &'a NameMap, losses: &mut Losses) -> Option<ToolOut<'a>> {
    match tool {
        Tool::Function(tool) => {
            let (function, extra) = write_function(tool, names, losses);
            Some(ToolOut::Function { r#type: "function", function, extra })
        }
        Tool::Custom(CustomTool { name, description, format, extras }) => {
            let (extra, inner) = write_nested(extras, "custom", "tools[]", losses);
            let custom = CustomOut {
                name: names.to_host(name.as_str()),
                description: description.as_deref(),
                format: format.as_ref().map(nested_format),
                extra: inner,
            };
            Some(ToolOut::Custom { r#type: "custom", custom, extra })
        }
        Tool::Provider(opaque) => opaque.write(ID, "tools[]", losses).map(ToolOut::Opaque),
    }
}

/// Writes a function as `tools[].function` or as one of the legacy `functions`, and the tool's unknown fields.
pub(super) fn write_function<'a>(
    tool: &'a FunctionTool,
    names: &'a NameMap,
    losses: &mut Losses,
) -> (FunctionOut<'a>, Fields) {
    let FunctionTool { name, description, schema, strict, extras } = tool;
    let (extra, inner) = write_nested(extras, "function", "tools[]", losses);
    let parameters = schema.as_ref();
    let name = names.to_host(name.as_str());
    (
        FunctionOut { name, description: description.as_deref(), parameters, strict: *strict, extra: inner },
        extra,
    )
}

/// Moves a flat grammar into its own object, as this dialect requires.
fn nested_format(format: &JsonText) -> Cow<'_, JsonText> {
    let value = format.to_value();
    let (Some("grammar"), Some(definition), Some(syntax)) =
        (value["type"].as_str(), value.get("definition"), value.get("syntax"))
    else {
        return Cow::Borrowed(format);
    };
    let grammar = json!({"definition": definition, "syntax": syntax});
    Cow::Owned(JsonText::from_value(&json!({"type": "grammar", "grammar": grammar})))
}

/// A tool choice to write.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ChoiceOut<'a> {
    Word(&'static str),
    Function { r#type: &'static str, function: NameOut<'a> },
    Custom { r#type: &'static str, custom: NameOut<'a> },
    Legacy(NameOut<'a>),
    Opaque(&'a Fields),
    Allowed(Value),
}

#[derive(Serialize)]
pub(super) struct NameOut<'a> {
    name: &'a str,
}

/// Writes a choice among allowed tools; `None` if all tools are allowed.
pub(super) fn write_allowed<'a>(
    choice: &ToolChoice,
    names: &NameMap,
    losses: &mut Losses,
) -> Option<ChoiceOut<'a>> {
    let write = |tool: &AllowedTool| match tool {
        AllowedTool::Named(name, kind) => {
            let tag = match kind {
                CallKind::Function => "function",
                CallKind::Custom => "custom",
            };
            Some(json!({ "type": tag, tag: { "name": names.to_host(name.as_str()) } }))
        }
        AllowedTool::Provider(opaque) => opaque.write(ID, "tool_choice", losses).cloned().map(Value::Object),
    };
    let tools: Vec<Value> = choice.allowed.as_ref()?.iter().filter_map(write).collect();
    let mode = allowed_mode(choice.choice.as_ref());
    Some(ChoiceOut::Allowed(
        json!({ "type": ALLOWED_TOOLS, ALLOWED_TOOLS: { "mode": mode, "tools": tools } }),
    ))
}

/// Writes a choice; `None` if it cannot be written, which is reported.
pub(super) fn write_choice<'a>(
    choice: &'a Choice,
    names: &'a NameMap,
    losses: &mut Losses,
) -> Option<ChoiceOut<'a>> {
    Some(match choice {
        Choice::Auto => ChoiceOut::Word("auto"),
        Choice::Any => ChoiceOut::Word("required"),
        Choice::None => ChoiceOut::Word("none"),
        Choice::Named(name, kind) => {
            let name = NameOut { name: names.to_host(name.as_str()) };
            match kind {
                CallKind::Function => ChoiceOut::Function { r#type: "function", function: name },
                CallKind::Custom => ChoiceOut::Custom { r#type: "custom", custom: name },
            }
        }
        Choice::Provider(opaque) => ChoiceOut::Opaque(opaque.write(ID, "tool_choice", losses)?),
    })
}

/// Writes a choice as the legacy `function_call`, which cannot require a call.
pub(super) fn write_legacy_choice<'a>(
    choice: &'a Choice,
    names: &'a NameMap,
    losses: &mut Losses,
) -> Option<ChoiceOut<'a>> {
    match choice {
        Choice::Named(name, _) => Some(ChoiceOut::Legacy(NameOut { name: names.to_host(name.as_str()) })),
        Choice::Any => {
            losses.add("tool_choice", "function_call cannot require a call");
            Some(ChoiceOut::Word("auto"))
        }
        Choice::Auto | Choice::None | Choice::Provider(_) => write_choice(choice, names, losses),
    }
}
