//! Reads an assistant message, in a request's history and in a whole reply.

use serde_json::Value;
use toolgate_model::{
    Block, CallKind, Extras, Fields, JsonText, Opaque, Reasoning, ReasoningKind, ReasoningPart, Seal,
    SealToken, Text, ToolCall,
};

use super::extras::{extras, nested_extras};
use super::reasoning_details::REASONING_DETAILS;
use super::wire::{AssistantIn, CallIn, CustomCallIn, FunctionCallIn, PartIn, RefusalIn, TextIn};
use super::wire_either::StringOrArray;
use super::{ID, content_read, marks, reasoning_details, thought_signature};

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
        reasoning_text,
        reasoning_details,
        tool_calls,
        function_call,
        _role: _,
        mut extra,
    } = message;
    let fields = [
        ("reasoning_content", reasoning_content),
        ("reasoning", reasoning),
        ("reasoning_text", reasoning_text),
    ];
    let reasoning = read_reasoning(fields, reasoning_details, &mut extra);
    let mut extras = extras(extra);
    let mut blocks = Vec::new();
    blocks.extend(reasoning.into_iter().map(Block::Reasoning));
    match content.map(|content| content.0) {
        None => {}
        Some(StringOrArray::String(text)) if text.is_empty() => extras.mark(ID, marks::EMPTY_CONTENT),
        Some(StringOrArray::String(text)) => blocks.push(Block::Text(Text::new(text))),
        Some(StringOrArray::Array(parts)) => blocks.extend(parts.into_iter().map(read_part)),
    }
    blocks.extend(refusal.filter(|text| !text.is_empty()).map(|text| Block::Refusal(Text::new(text))));
    let calls = tool_calls.unwrap_or_default().into_iter();
    blocks.extend(calls.enumerate().flat_map(|(index, call)| read_call(call, || new_id(index))));
    blocks.extend(function_call.filter(|call| !call.name.is_empty()).map(|call| {
        let mut call = function_block(Some(new_id(0)), call, Fields::new(), String::new);
        call.extras.mark(ID, marks::LEGACY);
        Block::ToolCall(call)
    }));
    AssistantContent { blocks, extras }
}

/// The reasoning: the first field with a text, else the text of the details, which are the seal. Hosts that fill
/// several fields put the same text in all of them. Seals of other dialects come with their texts.
fn read_reasoning(
    fields: [(&'static str, Option<Value>); 3],
    details: Option<Value>,
    extra: &mut Fields,
) -> Vec<Reasoning> {
    let details = match details {
        Some(Value::Array(details)) => details,
        other => {
            extra.extend(other.map(|other| (REASONING_DETAILS.to_owned(), other)));
            Vec::new()
        }
    };
    if let Some(tokens) = reasoning_details::foreign_seals(&details) {
        let all = fields.iter().find_map(|(_, value)| value.as_ref()?.as_str()).unwrap_or_default();
        return read_sealed(all, tokens);
    }
    let [content, other, third] = fields.map(|(name, value)| text_or_extra(name, value, extra));
    let (text, mark) = match (content, other) {
        (Some(text), Some(same)) if text == same => (Some(text), Some(marks::REASONING_BOTH)),
        (Some(text), other) => {
            extra.extend(other.map(|other| ("reasoning".to_owned(), Value::from(other))));
            (Some(text), None)
        }
        (None, Some(text)) => (Some(text), Some(marks::REASONING)),
        (None, None) => (None, None),
    };
    let (text, mark) = match (text, third) {
        (Some(text), third) => {
            extra.extend(third.map(|third| ("reasoning_text".to_owned(), Value::from(third))));
            (Some(text), mark)
        }
        (None, Some(text)) => (Some(text), Some(marks::REASONING_TEXT)),
        (None, None) => {
            let text = Some(reasoning_details::text(&details)).filter(|text| !text.is_empty());
            (text, Some(marks::REASONING_DETAILS))
        }
    };
    let seal = reasoning_details::seal(details);
    let is_there = text.is_some() || seal.is_some();
    is_there.then(|| reasoning(text, seal, mark, Extras::NONE)).into_iter().collect()
}

/// The blocks of a text that seals of other dialects cover in parts. What lies between their texts has no seal. A
/// client may have changed the text; then only the sealed texts count.
fn read_sealed(all: &str, tokens: Vec<SealToken>) -> Vec<Reasoning> {
    let unsealed = |text: &str| {
        let text = text.trim_matches('\n');
        (!text.is_empty()).then(|| reasoning(Some(text.to_owned()), None, None, Extras::NONE))
    };
    let (mut blocks, mut rest) = (Vec::new(), all);
    for SealToken { seal, text } in tokens {
        let text = text.filter(|text| !text.is_empty());
        match text.as_deref().map(|text| rest.split_once(text)) {
            Some(Some((before, after))) => {
                blocks.extend(unsealed(before));
                rest = after;
            }
            Some(None) => rest = "",
            None => {}
        }
        blocks.push(reasoning(text, Some(seal), None, Extras::NONE));
    }
    blocks.extend(unsealed(rest));
    blocks
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

fn reasoning(
    text: Option<String>,
    seal: Option<Seal>,
    mark: Option<&'static str>,
    mut extras: Extras,
) -> Reasoning {
    if let Some(mark) = mark {
        extras.mark(ID, mark);
    }
    let parts = text.into_iter().map(|text| ReasoningPart { kind: ReasoningKind::Full, text }).collect();
    Reasoning { parts, seal, extras }
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
                let mark = Some(marks::REASONING_PART);
                Block::Reasoning(reasoning(Some(text), None, mark, extras(rest)))
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
    match part.fields.get("thinking").filter(|_| part.kind == "thinking")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(pieces) => pieces.iter().map(|piece| piece.get("text")?.as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
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
    // What SDKs add to a call of a stream, and return with it, means nothing to a host.
    let is_helper = inner.keys().all(|name| name == "parsed_arguments");
    let envelope: &[&str] = if is_helper { &["index", "function"] } else { &["index"] };
    let extras = nested_extras(extra, "function", inner).envelope_fields(envelope);
    let (id, extras) = call_id(id, extras, new_id);
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
