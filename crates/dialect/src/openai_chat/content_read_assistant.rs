//! Reads an assistant message, in a request's history and in a whole reply.

use serde_json::Value;
use toolgate_model::{
    Block, CallKind, Extras, Fields, JsonText, Opaque, Reasoning, ReasoningKind, ReasoningPart, Text,
    ToolCall,
};

use super::extras::{extras, nested_extras};
use super::wire::{AssistantIn, CallIn, CustomCallIn, FunctionCallIn, PartIn, RefusalIn, TextIn};
use super::wire_either::StringOrArray;
use super::{ID, content_read, marks, thought_signature};

/// The content of an assistant message.
pub(super) struct AssistantContent {
    pub(super) blocks: Vec<Block>,
    /// The message's unknown fields and marks.
    pub(super) extras: Extras,
}

/// Reads a message: reasoning first, then text, then calls. `new_id` generates the id of a call without one.
pub(super) fn read(message: AssistantIn, mut new_id: impl FnMut(usize) -> String) -> AssistantContent {
    let AssistantIn {
        content,
        refusal,
        reasoning_content,
        reasoning,
        tool_calls,
        function_call,
        _role: _,
        mut extra,
    } = message;
    let (reasoning_text, reasoning_mark) = read_reasoning(reasoning_content, reasoning, &mut extra);
    let mut extras = extras(extra);
    let mut blocks = Vec::new();
    blocks.extend(reasoning_text.map(|text| reasoning_block(text, reasoning_mark, Extras::NONE)));
    match content {
        None => {}
        Some(StringOrArray::String(text)) if text.is_empty() => extras.mark(ID, marks::EMPTY_CONTENT),
        Some(StringOrArray::String(text)) => blocks.push(Block::Text(Text::new(text))),
        Some(StringOrArray::Array(parts)) => blocks.extend(parts.into_iter().map(read_part)),
    }
    blocks.extend(refusal.filter(|text| !text.is_empty()).map(|text| Block::Refusal(Text::new(text))));
    let calls = tool_calls.unwrap_or_default().into_iter();
    blocks.extend(calls.enumerate().flat_map(|(index, call)| read_call(call, || new_id(index))));
    blocks.extend(function_call.map(|call| {
        let mut call = function_block(Some(new_id(0)), call, Fields::new(), String::new);
        call.extras.mark(ID, marks::LEGACY);
        Block::ToolCall(call)
    }));
    AssistantContent { blocks, extras }
}

/// The reasoning, and the mark for its field. Hosts that fill both fields put the same text in both.
fn read_reasoning(
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    extra: &mut Fields,
) -> (Option<String>, Option<&'static str>) {
    let content = text_or_extra("reasoning_content", reasoning_content, extra);
    let other = text_or_extra("reasoning", reasoning, extra);
    match (content, other) {
        (Some(text), Some(same)) if text == same => (Some(text), Some(marks::REASONING_BOTH)),
        (Some(text), other) => {
            extra.extend(other.map(|other| ("reasoning".to_owned(), Value::from(other))));
            (Some(text), None)
        }
        (None, Some(text)) => (Some(text), Some(marks::REASONING)),
        (None, None) => (None, None),
    }
}

fn text_or_extra(name: &str, value: Option<Value>, extra: &mut Fields) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
        Some(other) => {
            extra.insert(name.to_owned(), other);
            None
        }
        None => None,
    }
}

fn reasoning_block(text: String, mark: Option<&'static str>, mut extras: Extras) -> Block {
    if let Some(mark) = mark {
        extras.mark(ID, mark);
    }
    Block::Reasoning(Reasoning {
        parts: vec![ReasoningPart { kind: ReasoningKind::Full, text }],
        seal: None,
        extras,
    })
}

/// Whether the reasoning was a content part.
pub(super) fn is_part(reasoning: &Reasoning) -> bool {
    reasoning.extras.is_marked(ID, marks::REASONING_PART)
}

pub(super) fn read_part(part: PartIn) -> Block {
    match part {
        PartIn::Text(TextIn { text, extra }) => Block::Text(Text { text, extras: extras(extra) }),
        PartIn::Refusal(RefusalIn { refusal, extra }) => {
            let mut extras = extras(extra);
            extras.mark(ID, marks::REFUSAL_PART);
            Block::Refusal(Text { text: refusal, extras })
        }
        PartIn::Other(opaque) => match thinking_text(&opaque) {
            Some(text) => {
                let mut rest = opaque.fields;
                rest.retain(|name, _| name != "type" && name != "thinking");
                reasoning_block(text, Some(marks::REASONING_PART), extras(rest))
            }
            None => Block::Opaque(opaque),
        },
        // Not allowed by the specification; some hosts send them, and they are written back unchanged.
        part @ (PartIn::Image(_) | PartIn::Audio(_) | PartIn::File(_)) => {
            Block::Opaque(content_read::read_opaque(part))
        }
    }
}

/// The text of a `thinking` part, if it contains nothing else.
fn thinking_text(part: &Opaque) -> Option<String> {
    let pieces = part.fields.get("thinking").filter(|_| part.kind == "thinking")?.as_array()?;
    pieces.iter().map(|piece| piece.get("text")?.as_str()).collect()
}

/// Reads a call, preceded by its signature if it has one.
fn read_call(call: CallIn, new_id: impl FnOnce() -> String) -> Vec<Block> {
    match call {
        CallIn::Function { id, function, mut extra } => {
            let signature = thought_signature::take(&mut extra);
            signed(function_block(id, function, extra, new_id), signature)
        }
        CallIn::Untyped { id, function, mut extra } => {
            let signature = thought_signature::take(&mut extra);
            let mut call = function_block(id, function, extra, new_id);
            call.extras.mark(ID, marks::NO_TYPE);
            signed(call, signature)
        }
        CallIn::Custom { id, custom: CustomCallIn { name, input, extra: inner }, extra } => {
            let (id, extras) = call_id(id, nested_extras(extra, "custom", inner), new_id);
            vec![Block::ToolCall(ToolCall {
                id: id.into(),
                name: name.into(),
                kind: CallKind::Custom,
                arguments: input,
                extras,
            })]
        }
        CallIn::Other(opaque) => vec![Block::Opaque(opaque)],
    }
}

fn signed(call: ToolCall, signature: Option<String>) -> Vec<Block> {
    let signature = signature.map(|signature| thought_signature::block(call.id.as_str(), signature));
    signature.into_iter().chain([Block::ToolCall(call)]).collect()
}

fn function_block(
    id: Option<String>,
    call: FunctionCallIn,
    extra: Fields,
    new_id: impl FnOnce() -> String,
) -> ToolCall {
    let FunctionCallIn { name, arguments, extra: inner } = call;
    let (id, extras) = call_id(id, nested_extras(extra, "function", inner), new_id);
    let arguments = arguments.as_ref().map(arguments_text).unwrap_or_default();
    ToolCall { id: id.into(), name: name.into(), kind: CallKind::Function, arguments, extras }
}

// T23
fn call_id(id: Option<String>, mut extras: Extras, new_id: impl FnOnce() -> String) -> (String, Extras) {
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        return (id, extras);
    }
    extras.mark(ID, marks::NO_ID);
    (new_id(), extras)
}

// T34
fn arguments_text(arguments: &JsonText) -> String {
    match serde_json::from_str::<String>(arguments.as_str()) {
        Ok(text) => text,
        Err(_) => arguments.as_str().to_owned(),
    }
}
