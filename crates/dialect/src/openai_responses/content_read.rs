//! Converts the flat list of items to messages. Consecutive output items form one assistant message, consecutive results
//! one message of results; [`content_write`](super::content_write) restores the same flat list.

use serde_json::Value;
use toolgate_model::{
    AssistantMessage, Audio, Block, CallKind, Document, Extras, Fields, Image, Message, Opaque, Part,
    Reasoning, ReasoningKind, ReasoningPart, Seal, SealToken, Source, SystemMessage, SystemRole, Text,
    ToolCall, ToolOutcome, ToolResult, ToolResults, UserMessage,
};

use super::ID;
use super::wire::{
    Content, ContentPart, CustomCallItem, FilePart, FunctionCallItem, ImagePart, Item, MessageItem,
    OutputItem, ReasoningItem,
};

/// The key for a message's unknown fields, in the extras of its first text.
pub(super) const MESSAGE_FIELDS: &str = "message";
/// The key for a text's index, in the extras of a message's later texts.
pub(super) const CONTENT_INDEX: &str = "content_index";
/// The host's id for an item, if a stream had to write a generated id before it was known.
pub(super) const HOST_ID: &str = "host_id";
/// Item fields that are not content.
pub(super) const ENVELOPE_FIELDS: [&str; 5] = ["id", "status", MESSAGE_FIELDS, CONTENT_INDEX, HOST_ID];
/// The kind of the seal in `encrypted_content`.
pub(super) const ENCRYPTED: &str = "encrypted";

/// Converts items to messages.
pub(super) fn messages(items: Vec<Item>) -> Vec<Message> {
    let mut messages = Vec::new();
    for item in items {
        push(item, &mut messages);
    }
    messages
}

fn push(item: Item, messages: &mut Vec<Message>) {
    match item {
        Item::FunctionOutput(output) => push_result(output, CallKind::Function, messages),
        Item::CustomOutput(output) => push_result(output, CallKind::Custom, messages),
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
        item @ (Item::FunctionCall(_) | Item::CustomCall(_) | Item::Reasoning(_) | Item::Other(..)) => {
            push_blocks(blocks(item), messages);
        }
    }
}

/// The blocks of an output item. A result gives none.
pub(super) fn blocks(item: Item) -> Vec<Block> {
    match item {
        Item::Message(message) => message_blocks(message),
        Item::FunctionCall(call) => vec![Block::ToolCall(function_call(call))],
        Item::CustomCall(call) => vec![Block::ToolCall(custom_call(call))],
        Item::Reasoning(item) => vec![Block::Reasoning(reasoning(item))],
        Item::Other(kind, fields) => vec![Block::Opaque(Opaque { dialect: ID, kind, fields })],
        Item::FunctionOutput(_) | Item::CustomOutput(_) => Vec::new(),
    }
}

fn push_blocks(blocks: Vec<Block>, messages: &mut Vec<Message>) {
    match messages.last_mut() {
        Some(Message::Assistant(last)) => last.content.extend(blocks),
        _ => messages.push(Message::Assistant(AssistantMessage { content: blocks, extras: Extras::NONE })),
    }
}

fn push_result(output: OutputItem, kind: CallKind, messages: &mut Vec<Message>) {
    let mut content = parts(output.output);
    // An empty output is read as no content.
    if matches!(content.as_slice(), [Part::Text(text)] if text.text.is_empty() && text.extras.is_empty()) {
        content.clear();
    }
    let result = ToolResult {
        call: output.call_id.into(),
        kind,
        content,
        outcome: ToolOutcome::Success,
        extras: item_extras(output.extra),
    };
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
    if index > 0 {
        part.insert(CONTENT_INDEX.to_owned(), Value::from(index));
    } else if !message.is_empty() {
        part.insert(MESSAGE_FIELDS.to_owned(), Value::Object(message.clone()));
    }
    item_extras(part)
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
        name: item.name.into(),
        kind: CallKind::Function,
        arguments: item.arguments.0,
        extras: item_extras(item.extra),
    }
}

fn custom_call(mut item: CustomCallItem) -> ToolCall {
    restore_id(&mut item.extra);
    ToolCall {
        id: call_id(item.call_id, &item.extra).into(),
        name: item.name.into(),
        kind: CallKind::Custom,
        arguments: item.input,
        extras: item_extras(item.extra),
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
    // The summary and content are copies of a token's text, or missing.
    let token = item.encrypted_content.as_deref().and_then(SealToken::parse);
    if let Some(text) = token.and_then(|token| token.text) {
        parts = vec![ReasoningPart { kind: ReasoningKind::Full, text }];
    }
    let (seal, extras) = seal_and_extras(item);
    Reasoning { parts, seal, extras }
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

fn parts(content: Content) -> Vec<Part> {
    match content {
        Content::Text(text) => vec![Part::text(text)],
        Content::Parts(parts) => parts.into_iter().map(part).collect(),
    }
}

fn part(part: ContentPart) -> Part {
    match part {
        ContentPart::Text(part) => {
            Part::Text(Text { text: part.text, extras: text_extras(part.extra, 0, &Fields::new()) })
        }
        ContentPart::Image(part) => image(part),
        ContentPart::File(part) => file(part),
        ContentPart::Audio(part) => Part::Audio(Audio {
            data: part.input_audio.data,
            format: part.input_audio.format,
            extras: Extras::of(ID, part.extra),
        }),
        part @ (ContentPart::Refusal(_) | ContentPart::Other(..)) => {
            let (kind, fields) = part_fields(part);
            Part::Opaque(Opaque { dialect: ID, kind, fields })
        }
    }
}

fn image(part: ImagePart) -> Part {
    let source = match (part.image_url, part.file_id) {
        (Some(url), _) => Source::from_url(url),
        (None, Some(id)) => Source::File { provider: ID.provider, id },
        (None, None) => {
            let mut fields = part.extra;
            fields.extend(part.detail.map(|detail| ("detail".to_owned(), Value::from(detail))));
            fields.insert("type".to_owned(), Value::from("input_image"));
            return Part::Opaque(Opaque { dialect: ID, kind: "input_image".to_owned(), fields });
        }
    };
    Part::Image(Image { source, detail: part.detail, extras: Extras::of(ID, part.extra) })
}

fn file(part: FilePart) -> Part {
    let source = match (part.file_data, part.file_url, part.file_id) {
        (Some(data), _, _) => match Source::from_url(data) {
            // Bare base64: the file name decides the media type.
            Source::Url(data) => {
                Source::Base64 { media_type: media_type(part.filename.as_deref()).to_owned(), data }
            }
            inline @ (Source::Base64 { .. } | Source::Text(_) | Source::File { .. }) => inline,
        },
        (None, Some(url), _) => Source::Url(url),
        (None, None, Some(id)) => Source::File { provider: ID.provider, id },
        (None, None, None) => {
            let mut fields = part.extra;
            fields.insert("type".to_owned(), Value::from("input_file"));
            return Part::Opaque(Opaque { dialect: ID, kind: "input_file".to_owned(), fields });
        }
    };
    Part::Document(Document { source, name: part.filename, extras: Extras::of(ID, part.extra) })
}

fn media_type(name: Option<&str>) -> &'static str {
    let extension = name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    match extension {
        Some("txt" | "md" | "csv") => "text/plain",
        Some(_) | None => "application/pdf",
    }
}

/// A whole message as an opaque block.
fn opaque_message(message: MessageItem) -> Opaque {
    let content = match message.content {
        Content::Text(text) => Value::from(text),
        Content::Parts(parts) => parts.into_iter().map(|part| Value::Object(part_fields(part).1)).collect(),
    };
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), Value::from("message"));
    fields.extend(message.role.map(|role| ("role".to_owned(), Value::from(role))));
    fields.insert("content".to_owned(), content);
    fields.extend(message.extra);
    Opaque { dialect: ID, kind: "message".to_owned(), fields }
}

fn part_fields(part: ContentPart) -> (String, Fields) {
    let mut fields = Fields::new();
    let kind = match part {
        ContentPart::Other(kind, fields) => return (kind, fields),
        ContentPart::Text(part) => {
            fields.insert("text".to_owned(), Value::from(part.text));
            fields.extend(part.extra);
            "output_text"
        }
        ContentPart::Refusal(part) => {
            fields.insert("refusal".to_owned(), Value::from(part.refusal));
            fields.extend(part.extra);
            "refusal"
        }
        ContentPart::Image(part) => {
            fields.extend(part.image_url.map(|url| ("image_url".to_owned(), Value::from(url))));
            fields.extend(part.file_id.map(|id| ("file_id".to_owned(), Value::from(id))));
            fields.extend(part.detail.map(|detail| ("detail".to_owned(), Value::from(detail))));
            fields.extend(part.extra);
            "input_image"
        }
        ContentPart::File(part) => {
            fields.extend(part.file_data.map(|data| ("file_data".to_owned(), Value::from(data))));
            fields.extend(part.file_url.map(|url| ("file_url".to_owned(), Value::from(url))));
            fields.extend(part.file_id.map(|id| ("file_id".to_owned(), Value::from(id))));
            fields.extend(part.filename.map(|name| ("filename".to_owned(), Value::from(name))));
            fields.extend(part.extra);
            "input_file"
        }
        ContentPart::Audio(part) => {
            let mut audio = Fields::new();
            audio.insert("data".to_owned(), Value::from(part.input_audio.data));
            audio.insert("format".to_owned(), Value::from(part.input_audio.format));
            fields.insert("input_audio".to_owned(), Value::Object(audio));
            fields.extend(part.extra);
            "input_audio"
        }
    };
    fields.insert("type".to_owned(), Value::from(kind));
    (kind.to_owned(), fields)
}
