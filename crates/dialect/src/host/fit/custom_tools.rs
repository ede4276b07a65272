//! Tools with free text at hosts that only have functions: the text becomes the one field of an object.

use serde::Deserialize;
use serde_json::json;
use toolgate_model::{
    Block, CallKind, Choice, CustomTool, FunctionTool, JsonText, Losses, Message, Tool, TurnRequest,
};

/// The field that holds the text.
const INPUT: &str = "input";

/// Writes custom tools, their calls and their results as functions.
pub(super) fn wrap(request: &mut TurnRequest, losses: &mut Losses) {
    for tool in &mut request.tools {
        if let Tool::Custom(custom) = tool {
            *tool = Tool::Function(function(custom, losses));
        }
    }
    if let Some(Choice::Named(_, kind)) = &mut request.tool_choice.choice {
        *kind = CallKind::Function;
    }
    for message in &mut request.messages {
        match message {
            Message::Assistant(assistant) => assistant.content.iter_mut().for_each(wrap_call),
            Message::ToolResults(results) => {
                results.results.iter_mut().for_each(|result| result.kind = CallKind::Function);
            }
            Message::System(_) | Message::User(_) => {}
        }
    }
}

fn function(custom: &CustomTool, losses: &mut Losses) -> FunctionTool {
    let CustomTool { name, description, format, extras } = custom;
    let is_grammar = |format: &JsonText| format.to_value().get("type").is_some_and(|kind| kind != "text");
    if format.as_ref().is_some_and(is_grammar) {
        losses.add(format!("tools[{name}].format"), "the host has no grammars");
    }
    let schema = json!({
        "type": "object",
        "properties": { INPUT: { "type": "string" } },
        "required": [INPUT],
        "additionalProperties": false,
    });
    FunctionTool {
        name: name.clone(),
        description: description.clone(),
        schema: Some(JsonText::from_value(&schema)),
        strict: None,
        extras: extras.clone(),
    }
}

fn wrap_call(block: &mut Block) {
    if let Block::ToolCall(call) = block
        && call.kind == CallKind::Custom
    {
        call.kind = CallKind::Function;
        call.arguments = json!({ INPUT: call.arguments }).to_string();
    }
}

/// The text inside; a model that did not wrap it meant what it wrote.
pub(crate) fn unwrapped(arguments: String) -> String {
    #[derive(Deserialize)]
    struct Wrapped {
        input: String,
    }
    serde_json::from_str::<Wrapped>(&arguments).map_or(arguments, |wrapped| wrapped.input)
}
