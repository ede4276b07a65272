//! Writes the messages of a request.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;
use toolgate_model::pairing::HostIds;
use toolgate_model::{
    Block, Fields, Losses, Message, Part, SystemRole, ToolOutcome, ToolResult, TurnRequest,
};

use super::content_write::{self, ContentOut, PartOut, TypedPart};
use super::content_write_assistant::{self as assistant, AssistantOut, CallForm, PARAGRAPH, WriteContext};
use super::content_write_reasoning::MessageReader;
use super::{ID, Origin, marks};
use crate::host::Prefill;
use crate::{NameMap, RequestForm};

/// A message to write.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessageOut<'a> {
    Plain {
        role: &'static str,
        content: ContentOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Assistant(Box<AssistantOut<'a>>),
    Tool {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<&'a str>,
        content: ContentOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Function {
        role: &'static str,
        name: &'a str,
        content: ContentOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
}

/// Writes the system prompt, then the messages.
pub(super) fn write<'a>(
    request: &'a TurnRequest,
    ids: &'a HostIds,
    names: &'a NameMap,
    form: RequestForm<'a>,
    losses: &mut Losses,
) -> Vec<MessageOut<'a>> {
    let (origin, reader) = match form {
        RequestForm::AsRead => (Origin::Native, MessageReader::Client),
        RequestForm::Refitted(profile) | RequestForm::Fitted(profile) => {
            (Origin::Foreign, MessageReader::Host(profile))
        }
    };
    let mut writer = Writer {
        messages: &request.messages,
        ids,
        names,
        reader,
        origin,
        out: Vec::new(),
        called: HashMap::new(),
        written_results: HashSet::new(),
        losses,
    };
    writer.system(&request.system);
    for (index, message) in request.messages.iter().enumerate() {
        writer.message(index, message);
    }
    if matches!(reader, MessageReader::Host(profile) if !profile.user_after_tool) {
        bridge_results(&mut writer.out);
    }
    if matches!(reader, MessageReader::Host(profile) if profile.prefill == Prefill::Marked)
        && let Some(MessageOut::Assistant(last)) = writer.out.last_mut()
    {
        last.mark_prefix();
    }
    writer.out
}

/// Adds an assistant message between results and a user message, for hosts that require one.
fn bridge_results(messages: &mut Vec<MessageOut<'_>>) {
    let mut at = 1;
    while at < messages.len() {
        let is_bridge = matches!(messages[at - 1], MessageOut::Tool { .. })
            && matches!(messages[at], MessageOut::Plain { .. });
        if is_bridge {
            messages.insert(at, MessageOut::Assistant(Box::new(AssistantOut::text("I have the results."))));
        }
        at += 1;
    }
}

/// The prefix of a failed tool's result: this dialect has no error flag (T25).
const ERROR_PREFIX: &str = "[error] ";

struct Writer<'a, 'l> {
    messages: &'a [Message],
    ids: &'a HostIds,
    names: &'a NameMap,
    reader: MessageReader<'a>,
    origin: Origin,
    out: Vec<MessageOut<'a>>,
    /// The tools called so far, by call id: a legacy result names its tool.
    called: HashMap<&'a str, &'a str>,
    /// Results already written after their calls: message index and index in it.
    written_results: HashSet<(usize, usize)>,
    losses: &'l mut Losses,
}

impl<'a> Writer<'a, '_> {
    /// Joins the texts of a system prompt: many hosts accept only a string here.
    fn system(&mut self, parts: &'a [Part]) {
        let mut texts: Vec<&str> = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => {
                    let _lost = text.extras.write(ID, "system", self.losses);
                    texts.push(&text.text);
                }
                // Telemetry of another API's client (T29).
                Part::Opaque(_) => {}
                Part::Image(_) | Part::Document(_) | Part::Audio(_) => {
                    self.losses.add("system", "openai-chat accepts only text as instructions");
                }
            }
        }
        if !texts.is_empty() {
            let content = ContentOut::Text(Cow::Owned(texts.join(PARAGRAPH)));
            self.out.push(MessageOut::Plain { role: "system", content, extra: Fields::new() });
        }
    }

    fn message(&mut self, index: usize, message: &'a Message) {
        match message {
            Message::System(message) => {
                let role = match message.role {
                    SystemRole::System => "system",
                    SystemRole::Developer => "developer",
                };
                let extra = message.extras.write(ID, "messages[]", self.losses);
                let content = content_write::write(&message.content, "messages[]", self.losses);
                self.out.push(MessageOut::Plain { role, content, extra });
            }
            Message::User(message) => {
                let extra = message.extras.write(ID, "messages[]", self.losses);
                let content = content_write::write(&message.content, "messages[]", self.losses);
                self.out.push(MessageOut::Plain { role: "user", content, extra });
            }
            Message::Assistant(message) => {
                let (names, ids) = (self.names, self.ids);
                let context = WriteContext {
                    origin: self.origin,
                    reader: self.reader,
                    names,
                    calls: CallForm::Tools,
                    place: "messages[]",
                };
                let id = |block, _: &'a _| ids.call(index, block);
                let written = assistant::write(&message.content, &message.extras, context, id, self.losses);
                if self.origin == Origin::Native || !written.is_empty() {
                    self.out.push(MessageOut::Assistant(Box::new(written)));
                } else if message.content.iter().any(|block| matches!(block, Block::Reasoning(_))) {
                    self.losses.add("messages[].reasoning", "a turn needs more than reasoning");
                }
                self.note_calls(&message.content);
                if self.origin == Origin::Foreign {
                    self.results_after(index);
                }
            }
            Message::ToolResults(_) => {
                let mut hoisted = Vec::new();
                self.results(index, &mut hoisted);
                self.attachments(hoisted);
            }
        }
    }

    fn note_calls(&mut self, blocks: &'a [Block]) {
        for block in blocks {
            if let Block::ToolCall(call) = block {
                self.called.insert(call.id.as_str(), call.name.as_str());
            }
        }
    }

    /// Writes results directly after their calls, whatever the client put between (T25).
    fn results_after(&mut self, assistant: usize) {
        let following = self.messages.iter().enumerate().skip(assistant + 1);
        let until_next = following.take_while(|(_, message)| !matches!(message, Message::Assistant(_)));
        let results: Vec<usize> = until_next
            .filter(|(_, message)| matches!(message, Message::ToolResults(_)))
            .map(|(at, _)| at)
            .collect();
        let mut hoisted = Vec::new();
        for at in results {
            self.results(at, &mut hoisted);
        }
        self.attachments(hoisted);
    }

    fn results(&mut self, index: usize, hoisted: &mut Vec<PartOut<'a>>) {
        let Some(Message::ToolResults(results)) = self.messages.get(index) else { return };
        let in_order = self.ids.results_in_order(index).iter().copied();
        let order: Vec<usize> = match self.origin {
            Origin::Native => (0..results.results.len()).collect(),
            Origin::Foreign => in_order.collect(),
        };
        for at in order {
            if !self.written_results.insert((index, at)) {
                continue;
            }
            let Some(result) = results.results.get(at) else { continue };
            self.result(result, self.ids.result(index, at), hoisted);
        }
    }

    fn attachments(&mut self, hoisted: Vec<PartOut<'a>>) {
        if !hoisted.is_empty() {
            let content = ContentOut::Parts(hoisted);
            self.out.push(MessageOut::Plain { role: "user", content, extra: Fields::new() });
        }
    }

    fn result(&mut self, result: &'a ToolResult, id: &'a str, hoisted: &mut Vec<PartOut<'a>>) {
        let extra = result.extras.write(ID, "messages[].tool_result", self.losses);
        let content = match self.origin {
            Origin::Native => content_write::write(&result.content, "messages[].tool_result", self.losses),
            Origin::Foreign => ContentOut::Text(self.result_text(result, id, hoisted)),
        };
        if result.extras.is_marked(ID, marks::LEGACY) {
            let name = self.called.get(result.call.as_str()).copied().unwrap_or_default();
            let name = self.names.to_host(name);
            return self.out.push(MessageOut::Function { role: "function", name, content, extra });
        }
        let tool_call_id = Some(id).filter(|_| !result.extras.is_marked(ID, marks::NO_ID));
        self.out.push(MessageOut::Tool { role: "tool", tool_call_id, content, extra });
    }

    /// Writes a result as text (T25). Images and files are mentioned in it and follow in a user message.
    fn result_text(
        &mut self,
        result: &'a ToolResult,
        id: &'a str,
        hoisted: &mut Vec<PartOut<'a>>,
    ) -> Cow<'a, str> {
        let mut pieces: Vec<Cow<'a, str>> = Vec::new();
        let mut attachments = Vec::new();
        for part in &result.content {
            let kind = match part {
                Part::Text(text) => {
                    let _lost = text.extras.write(ID, "messages[].tool_result", self.losses);
                    pieces.push(Cow::Borrowed(&text.text));
                    continue;
                }
                Part::Image(_) => "image",
                Part::Document(_) => "document",
                Part::Audio(_) => "audio",
                Part::Opaque(_) => "attachment",
            };
            let part = match content_write::write_part(part, "messages[].tool_result", self.losses) {
                None => continue,
                // Such as a document that consists of text.
                Some(PartOut::Typed(TypedPart::Text { text, .. })) => {
                    pieces.push(text);
                    continue;
                }
                Some(part) => part,
            };
            pieces.push(Cow::Owned(format!("[{kind}: see the next user message]")));
            attachments.push(part);
        }
        if !attachments.is_empty() {
            hoisted.push(PartOut::text(format!("Attached to the result of tool call {id}:")));
            hoisted.extend(attachments);
            self.losses.add(
                "messages[].tool_result",
                "openai-chat accepts only text results; the rest follows in a user message",
            );
        }
        let text = match pieces.as_slice() {
            [Cow::Borrowed(one)] => Cow::Borrowed(*one),
            _ => Cow::Owned(pieces.join("\n")),
        };
        match result.outcome {
            ToolOutcome::Success => text,
            ToolOutcome::Error => {
                self.losses.add(
                    "messages[].tool_result.is_error",
                    "openai-chat has no error flag; the text says so",
                );
                Cow::Owned(format!("{ERROR_PREFIX}{text}"))
            }
        }
    }
}
