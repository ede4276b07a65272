//! Converts messages to the flat list of items.

use serde_json::{Value, json};
use toolgate_model::pairing::HostIds;
use toolgate_model::{
    AssistantMessage, Block, CallKind, Citation, Extras, Fields, Losses, Message, Notes, Opaque, Part,
    Reasoning, ReasoningKind, SealToken, SystemRole, Text, ToolCall, ToolOutcome, ToolResult,
};

use super::ID;
use super::client_tools::{self, NAMESPACE, TOOL_SEARCH};
use super::content_read::{CONTENT_INDEX, MESSAGE_FIELDS};
use super::content_write_parts::{self, ContentSource};
use super::request_write::Origin;
use crate::NameMap;
use crate::openai_shared::{URL_CITATION, characters, citation_fields};

/// The recipient of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// A host. It accepts only its own seals (T26). The origin of the request decides what may change.
    Host(Origin),
    /// A client, or the gateway's store. It keeps every seal, foreign ones as tokens.
    Client,
}

/// The input items for messages.
pub(super) fn input(
    messages: &[Message],
    names: &NameMap,
    ids: &HostIds,
    recipient: Recipient,
    losses: &mut Losses,
) -> Vec<Value> {
    let mut writer = ItemWriter { names, recipient, losses, items: Vec::new() };
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::System(message) => {
                let role = match message.role {
                    SystemRole::System => "system",
                    SystemRole::Developer => "developer",
                };
                writer.message(role, &message.content, &message.extras);
            }
            Message::User(message) => match whole_item(&message.content) {
                Some(item) => writer.opaque(item),
                None => writer.message("user", &message.content, &message.extras),
            },
            Message::Assistant(message) => writer.assistant(message, |block| ids.call(index, block)),
            Message::ToolResults(results) => {
                // Items of this dialect keep the client's order.
                let order = match recipient {
                    Recipient::Host(Origin::Foreign) => ids.results_in_order(index).to_vec(), // T25
                    Recipient::Host(Origin::Native) | Recipient::Client => {
                        (0..results.results.len()).collect()
                    }
                };
                for at in order {
                    writer.result(&results.results[at], ids.result(index, at));
                }
            }
        }
    }
    writer.items.into_iter().map(Value::Object).collect()
}

/// The output items for blocks: as in an input, with an id and a status each. `first` is the output index of the first
/// item.
pub(super) fn output(blocks: &[Block], reply_id: &str, first: usize, losses: &mut Losses) -> Vec<Value> {
    let mut writer =
        ItemWriter { names: &NameMap::default(), recipient: Recipient::Client, losses, items: Vec::new() };
    writer.blocks(blocks, |at| match &blocks[at] {
        Block::ToolCall(call) => call.id.as_str(),
        Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => "",
    });
    let items = writer.items.into_iter().enumerate();
    items.map(|(index, item)| Value::Object(completed(item, reply_id, first + index))).collect()
}

/// The generated id of the item at an output index, the same each time the reply is written.
pub(super) fn item_id(prefix: &str, reply_id: &str, index: usize) -> String {
    /// The API rejects ids of more than 64 characters in a later request.
    const MAX_KEPT: usize = 48;
    let kept: String = reply_id.strip_prefix("resp_").unwrap_or(reply_id).chars().take(MAX_KEPT).collect();
    format!("{prefix}_{kept}_{index}")
}

fn completed(item: Fields, reply_id: &str, index: usize) -> Fields {
    let (prefix, status) = match item.get("type").and_then(Value::as_str) {
        Some("message") => ("msg", Some("completed")),
        Some("function_call") => {
            let arguments = item.get("arguments").and_then(Value::as_str).unwrap_or_default();
            ("fc", Some(call_status(CallKind::Function, arguments)))
        }
        Some("custom_tool_call") => ("ctc", Some("completed")),
        Some("tool_search_call") => ("tsc", Some("completed")),
        Some("reasoning") => ("rs", None),
        _ => return item,
    };
    let mut fields = Fields::new();
    fields.insert("id".to_owned(), Value::from(item_id(prefix, reply_id, index)));
    fields.extend(status.map(|status| ("status".to_owned(), Value::from(status))));
    fields.extend(item);
    fields
}

/// The message of a role that only this dialect has, kept as an opaque block.
fn whole_item(content: &[Part]) -> Option<&Opaque> {
    match content {
        [Part::Opaque(opaque)] if opaque.fields.contains_key("role") => Some(opaque),
        _ => None,
    }
}

struct ItemWriter<'a> {
    names: &'a NameMap,
    recipient: Recipient,
    losses: &'a mut Losses,
    items: Vec<Fields>,
}

impl ItemWriter<'_> {
    fn message(&mut self, role: &str, content: &[Part], extras: &Extras) {
        let mut item = Fields::new();
        item.insert("type".to_owned(), Value::from("message"));
        item.insert("role".to_owned(), Value::from(role));
        let content = content_write_parts::content(content, ContentSource::User, self.losses);
        if matches!(&content, Value::Array(parts) if parts.is_empty()) {
            return;
        }
        item.insert("content".to_owned(), content);
        item.extend(extras.write(ID, "messages[]", self.losses));
        self.items.push(item);
    }

    fn assistant<'a>(&mut self, message: &AssistantMessage, call_id: impl Fn(usize) -> &'a str) {
        let extras = message.extras.write(ID, "messages[]", self.losses);
        debug_assert!(
            extras.is_empty(),
            "an assistant message is a fold of items and has no fields of its own"
        );
        self.blocks(&message.content, call_id);
    }

    fn blocks<'a>(&mut self, blocks: &[Block], call_id: impl Fn(usize) -> &'a str) {
        for (at, block) in blocks.iter().enumerate() {
            match block {
                Block::Text(text) => self.text(text, "output_text", "text"),
                Block::Refusal(text) => self.text(text, "refusal", "refusal"),
                Block::Reasoning(reasoning) => self.reasoning(reasoning),
                Block::ToolCall(call) => {
                    let item = call_item(call, call_id(at), self.names, self.losses);
                    self.items.push(item);
                }
                Block::Opaque(opaque) => self.opaque(opaque),
            }
        }
    }

    fn opaque(&mut self, opaque: &Opaque) {
        self.items.extend(opaque.write(ID, "output", self.losses).cloned());
    }

    fn text(&mut self, text: &Text, kind: &str, field: &str) {
        let place = "output[].content[]";
        let (mut extras, notes) = match self.recipient {
            Recipient::Client => text.extras.write_noted(ID, place, self.losses),
            Recipient::Host(_) => (text.extras.write(ID, place, self.losses), None),
        };
        extras.extend(notes.map(|notes| note_fields(notes, &text.text)).into_iter().flatten());
        let message = extras.shift_remove(MESSAGE_FIELDS);
        let continues = extras.shift_remove(CONTENT_INDEX).is_some();
        let is_plain = text.extras.is_empty() && matches!(self.recipient, Recipient::Host(_));
        if text.text.is_empty() && is_plain {
            return;
        }
        if is_plain || self.recipient == Recipient::Host(Origin::Foreign) {
            if kind == "refusal" {
                self.losses.add("refusal", "written as text: only the host's own messages have refusals");
            }
            self.items.push(earlier_text(&text.text));
            return;
        }
        let mut part = Fields::new();
        part.insert("type".to_owned(), Value::from(kind));
        part.insert(field.to_owned(), Value::from(text.text.as_str()));
        if kind == "output_text" {
            part.insert("annotations".to_owned(), Value::Array(Vec::new()));
        }
        part.extend(extras);
        let part = Value::Object(part);
        if let Some(Value::Array(content)) = self.open_message().filter(|_| continues) {
            content.push(part);
            return;
        }
        let mut item = Fields::new();
        item.insert("type".to_owned(), Value::from("message"));
        item.insert("role".to_owned(), Value::from("assistant"));
        item.insert("content".to_owned(), Value::Array(vec![part]));
        if let Some(Value::Object(fields)) = message {
            item.extend(fields);
        }
        self.items.push(item);
    }

    fn open_message(&mut self) -> Option<&mut Value> {
        let last = self.items.last_mut()?;
        (last.get("role")? == "assistant").then(|| last.get_mut("content")).flatten()
    }

    fn reasoning(&mut self, reasoning: &Reasoning) {
        if let Some(item) = reasoning_item(reasoning, self.recipient, self.losses) {
            self.items.push(item);
        }
    }

    fn result(&mut self, result: &ToolResult, call_id: &str) {
        if result.extras.is_marked(ID, TOOL_SEARCH) {
            let mut item = Fields::new();
            item.insert("type".to_owned(), Value::from("tool_search_output"));
            item.insert("call_id".to_owned(), Value::from(call_id));
            item.extend(result.extras.write(ID, "input[]", self.losses));
            return self.items.push(item);
        }
        let mut output = content_write_parts::content(&result.content, ContentSource::Tool, self.losses);
        if result.outcome == ToolOutcome::Error {
            content_write_parts::mark_error(&mut output, self.losses);
        }
        let mut item = Fields::new();
        let kind = match result.kind {
            CallKind::Function => "function_call_output",
            CallKind::Custom => "custom_tool_call_output",
        };
        item.insert("type".to_owned(), Value::from(kind));
        item.insert("call_id".to_owned(), Value::from(call_id));
        item.insert("output".to_owned(), output);
        item.extend(result.extras.write(ID, "messages[].content[]", self.losses));
        self.items.push(item);
    }
}

/// A text that is no message of this API's own: output parts are only valid with an id and a status.
fn earlier_text(text: &str) -> Fields {
    let mut item = Fields::new();
    item.insert("type".to_owned(), Value::from("message"));
    item.insert("role".to_owned(), Value::from("assistant"));
    item.insert("content".to_owned(), Value::from(text));
    item
}

/// The item for a complete call.
pub(super) fn call_item(call: &ToolCall, call_id: &str, names: &NameMap, losses: &mut Losses) -> Fields {
    let mut item = Fields::new();
    if client_tools::is_search(call) {
        item.insert("type".to_owned(), Value::from("tool_search_call"));
        item.insert("call_id".to_owned(), Value::from(call_id));
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        item.insert("arguments".to_owned(), arguments);
        item.extend(call.extras.write(ID, "output[]", losses));
        return item;
    }
    let (kind, field) = match call.kind {
        CallKind::Function => ("function_call", "arguments"),
        CallKind::Custom => ("custom_tool_call", "input"),
    };
    let name = match call.extras.field(ID, NAMESPACE).and_then(Value::as_str) {
        Some(namespace) => client_tools::name_in_namespace(call, namespace),
        None => names.to_host(call.name.as_str()),
    };
    item.insert("type".to_owned(), Value::from(kind));
    item.insert("call_id".to_owned(), Value::from(call_id));
    item.insert("name".to_owned(), Value::from(name));
    item.insert(field.to_owned(), Value::from(arguments(call.kind, &call.arguments)));
    item.extend(call.extras.write(ID, "output[]", losses));
    item
}

/// The status of a call. One with truncated arguments is incomplete, so that agents do not run it (T16).
pub(super) fn call_status(kind: CallKind, arguments: &str) -> &'static str {
    let is_truncated =
        kind == CallKind::Function && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err();
    if is_truncated { "incomplete" } else { "completed" }
}

/// The arguments to write: an empty object instead of an empty string (T9).
pub(super) fn arguments(kind: CallKind, text: &str) -> &str {
    if kind == CallKind::Function && text.trim().is_empty() { "{}" } else { text }
}

/// The notes of another dialect, as fields of a text part.
fn note_fields(notes: &Notes, text: &str) -> Fields {
    let annotation = |citation: &Citation| {
        let mut fields = Fields::from_iter([("type".to_owned(), Value::from(URL_CITATION))]);
        fields.extend(citation_fields(citation, 0..characters(text)));
        Value::Object(fields)
    };
    let annotations: Vec<Value> = notes.citations.iter().map(annotation).collect();
    let logprobs = notes.logprobs.clone();
    [("annotations", annotations), ("logprobs", logprobs)]
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(name, values)| (name.to_owned(), Value::Array(values)))
        .collect()
}

/// The item for reasoning; `None` if the recipient does not accept it.
pub(super) fn reasoning_item(
    reasoning: &Reasoning,
    recipient: Recipient,
    losses: &mut Losses,
) -> Option<Fields> {
    let extras = reasoning.extras.write(ID, "reasoning", losses);
    let mut item = Fields::new();
    item.insert("type".to_owned(), Value::from("reasoning"));
    match (&reasoning.seal, recipient) {
        (Some(seal), _) if seal.belongs_to(ID) => {
            item.extend(seal.id.iter().map(|id| ("id".to_owned(), Value::from(id.as_str()))));
            item.insert("encrypted_content".to_owned(), Value::from(seal.data.as_str()));
        }
        (Some(seal), Recipient::Client) => {
            // Clients drop the text when they return an item with encrypted content.
            let text = Some(reasoning.text()).filter(|text| !text.is_empty());
            let token = SealToken { seal: seal.clone(), text };
            item.insert("encrypted_content".to_owned(), Value::from(token.to_string()));
        }
        (None, Recipient::Client) => {}
        (None, Recipient::Host(_)) if reasoning.extras.known_to(ID).is_some() => {}
        // T26
        (Some(_) | None, Recipient::Host(_)) => {
            losses.add("messages[].reasoning", "a host accepts only its own reasoning");
            return None;
        }
    }
    item.insert("summary".to_owned(), paragraphs(reasoning, ReasoningKind::Summary));
    if reasoning.parts.iter().any(|part| part.kind == ReasoningKind::Full) {
        item.insert("content".to_owned(), paragraphs(reasoning, ReasoningKind::Full));
    }
    item.extend(extras);
    Some(item)
}

fn paragraphs(reasoning: &Reasoning, kind: ReasoningKind) -> Value {
    let parts = reasoning.parts.iter().filter(|part| part.kind == kind);
    parts.map(|part| Value::Object(paragraph(kind, &part.text))).collect()
}

/// A paragraph of reasoning, in items and events.
pub(super) fn paragraph(kind: ReasoningKind, text: &str) -> Fields {
    let mut fields = Fields::new();
    let tag = match kind {
        ReasoningKind::Full => "reasoning_text",
        ReasoningKind::Summary => "summary_text",
    };
    fields.insert("type".to_owned(), Value::from(tag));
    fields.insert("text".to_owned(), Value::from(text));
    fields
}
