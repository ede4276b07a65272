//! Converts the flat list of items to messages. Consecutive output items form one assistant message, consecutive results
//! one message of results; [`content_write`](super::content_write) restores the same flat list.

use serde_json::Value;
use toolgate_model::{
    AssistantMessage, Block, CallKind, Extras, Fields, Message, Opaque, Part, Reasoning, ReasoningKind,
    ReasoningPart, Seal, SealToken, SystemMessage, SystemRole, Text, Tool, ToolCall, ToolOutcome, ToolResult,
    ToolResults, UserMessage,
};

use super::ID;
use super::client_tools::{self, ADDITIONAL_TOOLS, NAMESPACE, TOOL_SEARCH};
use super::content_read_parts::{opaque_message, parts};
use super::request_read_tools;
use super::wire::{
    Content, ContentPart, CustomCallItem, FunctionCallItem, Item, MessageItem, OutputItem, ReasoningItem,
    ToolSearchCallItem,
};
use crate::openai_shared::with_notes;

/// The key for a message's unknown fields, in the extras of its first text.
pub(super) const MESSAGE_FIELDS: &str = "message";
/// The key for a text's index, in the extras of a message's later texts.
pub(super) const CONTENT_INDEX: &str = "content_index";
/// The host's id for an item, if a stream had to write a generated id before it was known.
pub(super) const HOST_ID: &str = "host_id";
/// Item fields that are not content.
pub(super) const ENVELOPE_FIELDS: [&str; 6] =
    ["id", "status", MESSAGE_FIELDS, CONTENT_INDEX, HOST_ID, NAMESPACE];
/// The kind of the seal in `encrypted_content`.
pub(super) const ENCRYPTED: &str = "encrypted";

/// The content of a list of items.
#[derive(Default)]
pub(super) struct Conversation {
    /// The messages.
    pub(super) messages: Vec<Message>,
    /// The tools that items loaded.
    pub(super) loaded_tools: Vec<Tool>,
    /// The `additional_tools` items, which are no messages.
    pub(super) additional_tools: Vec<Value>,
}

/// Converts items to messages.
pub(super) fn conversation(items: Vec<Item>) -> Conversation {
    let mut conversation = Conversation::default();
    for item in items {
        conversation.push(item);
    }
    conversation
}

impl Conversation {
    fn push(&mut self, item: Item) {
        match item {
            Item::Other(kind, fields) if kind == ADDITIONAL_TOOLS => {
                self.loaded_tools.extend(request_read_tools::read_loaded(fields.get("tools")));
                self.additional_tools.push(Value::Object(fields));
            }
            Item::ToolSearchOutput(output) => {
                let tools = request_read_tools::read_loaded(output.extra.get("tools"));
                let result = ToolResult {
                    call: output.call_id.into(),
                    kind: CallKind::Function,
                    content: vec![Part::text(client_tools::found_text(&tools))],
                    outcome: ToolOutcome::Success,
                    extras: Extras::marked_by(ID, output.extra, vec![TOOL_SEARCH]).all_envelope_fields(),
                };
                push_result(result, &mut self.messages);
                self.loaded_tools.extend(tools);
            }
            item @ (Item::Message(_)
            | Item::FunctionCall(_)
            | Item::CustomCall(_)
            | Item::FunctionOutput(_)
            | Item::CustomOutput(_)
            | Item::ToolSearchCall(_)
            | Item::Reasoning(_)
            | Item::Other(..)) => push(item, &mut self.messages),
        }
    }
}

fn push(item: Item, messages: &mut Vec<Message>) {
    match item {
        Item::FunctionOutput(output) => push_result(result(output, CallKind::Function), messages),
        Item::CustomOutput(output) => push_result(result(output, CallKind::Custom), messages),
        Item::Message(message) => match message.role.as_deref() {
            Some("assistant") | None => push_blocks(message_blocks(message), messages),
            Some("user") => messages.push(Message::User(UserMessage {
                content: parts(message.content),
                extras: item_extras(message.extra),
            })),
            Some("system") => messages.push(system(SystemRole::System, message)),
            Some("developer") => messages.push(system(SystemRole::Developer, message)),
            Some(_) => messages.push(Message::User(UserMessage {
                content: vec![Part::Opaque(opaque_message(message))],
                extras: Extras::NONE,
            })),
        },
        Item::Reasoning(item) => push_blocks(vec![Block::Reasoning(returned_reasoning(item))], messages),
        item @ (Item::FunctionCall(_)
        | Item::CustomCall(_)
        | Item::ToolSearchCall(_)
        | Item::ToolSearchOutput(_)
        | Item::Other(..)) => push_blocks(blocks(item), messages),
    }
}

/// The blocks of an output item. A result gives none.
pub(super) fn blocks(item: Item) -> Vec<Block> {
    match item {
        Item::Message(message) => message_blocks(message),
        Item::FunctionCall(call) => vec![Block::ToolCall(function_call(call))],
        Item::CustomCall(call) => vec![Block::ToolCall(custom_call(call))],
        Item::ToolSearchCall(call) => vec![Block::ToolCall(tool_search_call(call))],
        Item::Reasoning(item) => vec![Block::Reasoning(reasoning(item))],
        Item::Other(kind, fields) => vec![Block::Opaque(Opaque { dialect: ID, kind, fields })],
        Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::ToolSearchOutput(_) => Vec::new(),
    }
}

fn push_blocks(blocks: Vec<Block>, messages: &mut Vec<Message>) {
    match messages.last_mut() {
        Some(Message::Assistant(last)) => last.content.extend(blocks),
        _ => messages.push(Message::Assistant(AssistantMessage { content: blocks, extras: Extras::NONE })),
    }
}

fn result(output: OutputItem, kind: CallKind) -> ToolResult {
    let mut content = parts(output.output);
    // An empty output is read as no content.
    if matches!(content.as_slice(), [Part::Text(text)] if text.text.is_empty() && text.extras.is_empty()) {
        content.clear();
    }
    ToolResult {
        call: output.call_id.into(),
        kind,
        content,
        outcome: ToolOutcome::Success,
        extras: item_extras(output.extra),
    }
}

fn push_result(result: ToolResult, messages: &mut Vec<Message>) {
    match messages.last_mut() {
        Some(Message::ToolResults(last)) => last.results.push(result),
        _ => messages.push(Message::ToolResults(ToolResults { results: vec![result] })),
    }
}

fn system(role: SystemRole, message: MessageItem) -> Message {
    Message::System(SystemMessage {
        role,
        content: parts(message.content),
        extras: item_extras(message.extra),
    })
}

/// The texts and refusals of an assistant message. A message with any other part stays opaque.
fn message_blocks(mut message: MessageItem) -> Vec<Block> {
    restore_id(&mut message.extra);
    let parts = match message.content {
        Content::Text(text) => {
            let extras = match text_extras(Fields::new(), 0, &message.extra) {
                // Marked, so that the writer keeps it: it drops empty texts of translations.
                none if none.is_empty() && text.is_empty() => Extras::marked(ID, Fields::new()),
                extras => extras,
            };
            return vec![Block::Text(Text { text, extras })];
        }
        Content::Parts(parts) => parts,
    };
    let known = |part: &ContentPart| matches!(part, ContentPart::Text(_) | ContentPart::Refusal(_));
    if parts.is_empty() || !parts.iter().all(known) {
        message.content = Content::Parts(parts);
        return vec![Block::Opaque(opaque_message(message))];
    }
    let mut blocks = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        match part {
            ContentPart::Text(part) => blocks.push(Block::Text(Text {
                text: part.text,
                extras: text_extras(part.extra, index, &message.extra),
            })),
            ContentPart::Refusal(part) => blocks.push(Block::Refusal(Text {
                text: part.refusal,
                extras: text_extras(part.extra, index, &message.extra),
            })),
            ContentPart::Image(_) | ContentPart::File(_) | ContentPart::Audio(_) | ContentPart::Other(..) => {
            }
        }
    }
    blocks
}

/// The extras of a text: its own unknown fields and, for a message's first text, those of the message.
pub(super) fn text_extras(mut part: Fields, index: usize, message: &Fields) -> Extras {
    part.retain(|_, value| !is_empty_value(value));
    let (annotations, logprobs) = (part.get("annotations").cloned(), part.get("logprobs").cloned());
    if index > 0 {
        part.insert(CONTENT_INDEX.to_owned(), Value::from(index));
    } else if !message.is_empty() {
        part.insert(MESSAGE_FIELDS.to_owned(), Value::Object(message.clone()));
    }
    with_notes(item_extras(part), ID, annotations.as_ref(), logprobs.as_ref())
}

/// The unknown fields of an item or of a text in it.
fn item_extras(fields: Fields) -> Extras {
    Extras::of(ID, fields).envelope_fields(&ENVELOPE_FIELDS)
}

/// True for values that the API treats as missing.
pub(super) fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Restores the host's id of an item.
pub(super) fn restore_id(fields: &mut Fields) {
    if let Some(id) = fields.shift_remove(HOST_ID) {
        fields.insert("id".to_owned(), id);
    }
}

fn function_call(mut item: FunctionCallItem) -> ToolCall {
    restore_id(&mut item.extra);
    ToolCall {
        id: call_id(item.call_id, &item.extra).into(),
        name: called_name(item.name, &item.extra).into(),
        kind: CallKind::Function,
        arguments: item.arguments.0,
        extras: item_extras(item.extra),
    }
}

fn custom_call(mut item: CustomCallItem) -> ToolCall {
    restore_id(&mut item.extra);
    ToolCall {
        id: call_id(item.call_id, &item.extra).into(),
        name: called_name(item.name, &item.extra).into(),
        kind: CallKind::Custom,
        arguments: item.input,
        extras: item_extras(item.extra),
    }
}

fn tool_search_call(item: ToolSearchCallItem) -> ToolCall {
    ToolCall {
        id: item.call_id.into(),
        name: TOOL_SEARCH.into(),
        kind: CallKind::Function,
        arguments: item.arguments,
        extras: Extras::marked_by(ID, item.extra, vec![TOOL_SEARCH]).all_envelope_fields(),
    }
}

/// The name of the called tool in other dialects.
pub(super) fn called_name(name: String, extra: &Fields) -> String {
    match extra.get(NAMESPACE).and_then(Value::as_str) {
        Some(namespace) => client_tools::flat_name(namespace, &name),
        None => name,
    }
}

/// The call's id; hosts that omit `call_id` use the item's id.
pub(super) fn call_id(call_id: Option<String>, extra: &Fields) -> String {
    call_id.or_else(|| extra.get("id")?.as_str().map(str::to_owned)).unwrap_or_default()
}

fn reasoning(item: ReasoningItem) -> Reasoning {
    let paragraphs = |kind: ReasoningKind, list: &Option<Vec<super::wire::Paragraph>>| {
        let list = list.iter().flatten();
        list.map(|paragraph| ReasoningPart { kind, text: paragraph.text.clone() }).collect::<Vec<_>>()
    };
    let mut parts = paragraphs(ReasoningKind::Summary, &item.summary);
    parts.extend(paragraphs(ReasoningKind::Full, &item.content));
    let (seal, extras) = seal_and_extras(item);
    Reasoning { parts, seal, extras }
}

/// Reasoning that a client returns. It may have dropped or shortened the text; a token has it as the host wrote it.
fn returned_reasoning(item: ReasoningItem) -> Reasoning {
    let token = item.encrypted_content.as_deref().and_then(SealToken::parse);
    let mut reasoning = reasoning(item);
    if let Some(text) = token.and_then(|token| token.text).filter(|text| *text != reasoning.text()) {
        reasoning.parts = vec![ReasoningPart { kind: ReasoningKind::Full, text }];
    }
    reasoning
}

/// The seal and unknown fields of a reasoning item. Without a seal, the host identifies the item by its id.
pub(super) fn seal_and_extras(item: ReasoningItem) -> (Option<Seal>, Extras) {
    let mut extra = item.extra;
    let host_id = extra.shift_remove(HOST_ID).and_then(|id| id.as_str().map(str::to_owned));
    let id = host_id.or(item.id);
    let seal = item.encrypted_content.map(|data| {
        Seal::from_token(&data).unwrap_or_else(|| Seal { id: id.clone(), ..Seal::new(ID, ENCRYPTED, data) })
    });
    if seal.is_some() {
        return (seal, item_extras(extra));
    }
    if let Some(id) = id {
        extra.insert("id".to_owned(), Value::from(id));
    }
    // Marked even without fields: an item of this dialect may be sent back to it.
    (None, Extras::marked(ID, extra).envelope_fields(&ENVELOPE_FIELDS))
}
