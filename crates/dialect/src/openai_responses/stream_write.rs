//! Writes a stream, with every event that the official SDKs need, in their order.
//!
//! An item's id must be written when it opens, before the host's id is known. So items get generated ids, and the host's
//! id follows as `host_id`. A sealed reasoning item, which its host accepts only under its own id, carries that id inside
//! its seal.

use serde_json::{Value, json};
use toolgate_model::{
    BlockEnd, BlockStart, Delta, Fields, Finish, Losses, Reasoning, ReasoningKind, ReasoningPart, ReplyHead,
    Text, ToolCall, TurnError, TurnEvent,
};

use super::ID;
use super::client_tools::CallForms;
use super::content_read::HOST_ID;
use super::content_write::{self, Recipient};
use super::error;
use super::reply_write;
use super::reply_write_reasoning::ReasoningForm;
use super::stream_write_calls;
use super::stream_write_events::{DeltaFrame, EventPosition, EventWriter};
use crate::frame::write_comment;
use crate::{ReplyContext, ReplyWriter};

/// Writes the events of one stream.
pub(super) struct StreamWriter {
    context: ReplyContext,
    phase: Phase,
    events: EventWriter,
    reply_id: String,
    reasoning: ReasoningForm,
    call_forms: CallForms,
    response: Fields,
    output: Vec<Value>,
    open: Option<OpenItem>,
    losses: Losses,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    Over,
}

/// The open item.
struct OpenItem {
    id: String,
    block: OpenBlock,
}

enum OpenBlock {
    Text(String),
    Refusal(String),
    Reasoning(Vec<ReasoningPart>),
    Call(ToolCall),
}

impl StreamWriter {
    /// Before the first event.
    pub(super) fn new(context: ReplyContext) -> Self {
        let call_forms = CallForms::of(&context.request.tools);
        Self {
            context,
            call_forms,
            phase: Phase::Before,
            events: EventWriter::default(),
            reply_id: String::new(),
            reasoning: ReasoningForm::default(),
            response: Fields::new(),
            output: Vec::new(),
            open: None,
            losses: Losses::default(),
        }
    }
}

impl ReplyWriter for StreamWriter {
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        match event {
            TurnEvent::BlockDelta(delta) => self.delta(&delta, out),
            TurnEvent::Started(head) => self.started(&head, out),
            TurnEvent::BlockStarted(start) => self.block_started(start, out),
            TurnEvent::BlockFinished(end) => self.block_finished(&end, out),
            // The API reports usage only at the end.
            TurnEvent::Usage(_) => {}
            TurnEvent::Finished(finish) => self.finished(&finish, out),
        }
    }

    fn error(&mut self, error: &TurnError, out: &mut Vec<u8>) {
        match self.phase {
            Phase::Before => {
                let mut event = Fields::new();
                event.insert("code".to_owned(), json!(error.code));
                event.insert("message".to_owned(), Value::from(error.message.as_str()));
                event.insert("param".to_owned(), json!(error.param));
                event.insert("error".to_owned(), error::object(error));
                self.events.write("error", event, out);
            }
            Phase::Running => {
                let mut response = std::mem::take(&mut self.response);
                response.insert("status".to_owned(), Value::from("failed"));
                response.insert("error".to_owned(), error::of_response(error));
                response.insert("output".to_owned(), Value::Array(std::mem::take(&mut self.output)));
                self.events.response("response.failed", response, out);
            }
            Phase::Over => return,
        }
        self.phase = Phase::Over;
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        write_comment("ping", out);
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

impl StreamWriter {
    fn started(&mut self, head: &ReplyHead, out: &mut Vec<u8>) {
        self.phase = Phase::Running;
        self.reply_id = reply_write::reply_id(head, &self.context);
        self.reasoning = ReasoningForm::new(head, &self.context.request);
        self.response = reply_write::in_progress(head, &self.context, &mut self.losses);
        self.events.response("response.created", self.response.clone(), out);
        self.events.response("response.in_progress", self.response.clone(), out);
    }

    fn block_started(&mut self, start: BlockStart, out: &mut Vec<u8>) {
        let index = self.output.len();
        let id = |prefix: &str| content_write::item_id(prefix, &self.reply_id, index);
        let (id, block, item) = match start {
            BlockStart::Text => (
                id("msg"),
                OpenBlock::Text(String::new()),
                json!({
                    "type": "message", "status": "in_progress", "role": "assistant", "content": [],
                }),
            ),
            BlockStart::Refusal => (
                id("msg"),
                OpenBlock::Refusal(String::new()),
                json!({
                    "type": "message", "status": "in_progress", "role": "assistant", "content": [],
                }),
            ),
            BlockStart::Reasoning(_) => (
                id("rs"),
                OpenBlock::Reasoning(Vec::new()),
                json!({
                    "type": "reasoning", "summary": [], "content": [],
                }),
            ),
            BlockStart::ToolCall { id: call_id, name, kind } => {
                let mut call = ToolCall {
                    id: call_id,
                    name,
                    kind,
                    arguments: String::new(),
                    extras: toolgate_model::Extras::NONE,
                };
                self.call_forms.apply(&mut call);
                let item = stream_write_calls::opening(&call, &mut self.losses);
                (id(stream_write_calls::id_prefix(&call)), OpenBlock::Call(call), Value::Object(item))
            }
            BlockStart::Opaque(opaque) => {
                if let Some(item) = opaque.write(ID, "output", &mut self.losses).cloned() {
                    self.events.item("response.output_item.added", index, Value::Object(item.clone()), out);
                    self.events.item("response.output_item.done", index, Value::Object(item.clone()), out);
                    self.output.push(Value::Object(item));
                }
                return;
            }
        };
        self.events.item("response.output_item.added", index, with_id(item, &id), out);
        let part = match &block {
            OpenBlock::Text(_) => Some(text_part("", &Fields::new())),
            OpenBlock::Refusal(_) => Some(json!({ "type": "refusal", "refusal": "" })),
            OpenBlock::Reasoning(_) | OpenBlock::Call(_) => None,
        };
        if let Some(part) = part {
            self.events.part(
                "response.content_part.added",
                EventPosition { index, id: &id, part: 0 },
                part,
                out,
            );
        }
        self.open = Some(OpenItem { id, block });
    }

    fn delta(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        let index = self.output.len();
        let Some(OpenItem { id, block }) = &mut self.open else { return };
        let frame = |kind, text| DeltaFrame::new(kind, EventPosition { index, id, part: 0 }, text);
        match (block, delta) {
            (OpenBlock::Text(all), Delta::Text(text)) => {
                all.push_str(text);
                self.events.delta(frame("response.output_text.delta", text).content(0).logprobs(), out);
            }
            (OpenBlock::Refusal(all), Delta::Text(text)) => {
                all.push_str(text);
                self.events.delta(frame("response.refusal.delta", text).content(0), out);
            }
            (OpenBlock::Call(call), Delta::Arguments(text)) => {
                call.arguments.push_str(text);
                if let Some(kind) = stream_write_calls::delta_event(call) {
                    self.events.delta(frame(kind, text), out);
                }
            }
            (OpenBlock::Reasoning(parts), Delta::Paragraph(kind)) => {
                self.events.end_paragraph(EventPosition { index, id, part: 0 }, parts, out);
                let kind = self.reasoning.kind(*kind);
                self.events.start_paragraph(EventPosition { index, id, part: 0 }, kind, parts, out);
            }
            (OpenBlock::Reasoning(parts), Delta::Text(text)) => {
                if parts.is_empty() {
                    self.events.start_paragraph(
                        EventPosition { index, id, part: 0 },
                        self.reasoning.kind(ReasoningKind::Full),
                        parts,
                        out,
                    );
                }
                self.events.append_to_paragraph(EventPosition { index, id, part: 0 }, text, parts, out);
            }
            // The grammar allows no other pair.
            (_, Delta::Text(_) | Delta::Arguments(_) | Delta::Paragraph(_)) => {}
        }
    }

    fn block_finished(&mut self, end: &BlockEnd, out: &mut Vec<u8>) {
        let Some(OpenItem { id, block }) = self.open.take() else { return };
        let position = EventPosition { index: self.output.len(), id: &id, part: 0 };
        let mut item = match block {
            OpenBlock::Text(text) => self.text_finished(position, text, end, out),
            OpenBlock::Refusal(text) => self.refusal_finished(position, text, end, out),
            OpenBlock::Reasoning(parts) => self.reasoning_finished(position, parts, end, out),
            OpenBlock::Call(mut call) => {
                call.extras = end.extras.clone();
                self.call_forms.apply(&mut call);
                stream_write_calls::finish(&call, position, &mut self.events, &mut self.losses, out)
            }
        };
        if let Some(host_id) =
            item.insert("id".to_owned(), Value::from(id.as_str())).filter(|known| *known != *id)
        {
            item.insert(HOST_ID.to_owned(), host_id);
        }
        self.events.item("response.output_item.done", position.index, Value::Object(item.clone()), out);
        self.output.push(Value::Object(item));
    }

    fn text_finished(
        &mut self,
        position: EventPosition<'_>,
        text: String,
        end: &BlockEnd,
        out: &mut Vec<u8>,
    ) -> Fields {
        let text = Text { text, extras: end.extras.clone() };
        let item = self.message(toolgate_model::Block::Text(text.clone()));
        let part = item["content"][0].clone();
        let annotations = part["annotations"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, annotation) in annotations.iter().enumerate() {
            self.events.annotation(position, at, annotation, out);
        }
        let logprobs = part.get("logprobs").cloned().unwrap_or_else(|| json!([]));
        let mut done = Fields::new();
        done.insert("text".to_owned(), Value::from(text.text));
        done.insert("logprobs".to_owned(), logprobs);
        self.events.content("response.output_text.done", position, done, out);
        self.events.part("response.content_part.done", position, part, out);
        item
    }

    fn refusal_finished(
        &mut self,
        position: EventPosition<'_>,
        text: String,
        end: &BlockEnd,
        out: &mut Vec<u8>,
    ) -> Fields {
        let mut done = Fields::new();
        done.insert("refusal".to_owned(), Value::from(text.as_str()));
        let item = self.message(toolgate_model::Block::Refusal(Text { text, extras: end.extras.clone() }));
        self.events.content("response.refusal.done", position, done, out);
        self.events.part("response.content_part.done", position, item["content"][0].clone(), out);
        item
    }

    /// The complete message item for one text.
    fn message(&mut self, block: toolgate_model::Block) -> Fields {
        let mut items = content_write::output(&[block], &self.reply_id, self.output.len(), &mut self.losses);
        match items.pop() {
            Some(Value::Object(item)) => item,
            _ => Fields::new(),
        }
    }

    fn reasoning_finished(
        &mut self,
        position: EventPosition<'_>,
        parts: Vec<ReasoningPart>,
        end: &BlockEnd,
        out: &mut Vec<u8>,
    ) -> Fields {
        self.events.end_paragraph(position, &parts, out);
        let seal = self.reasoning.seal(end.seal.clone());
        let reasoning = Reasoning { parts, seal, extras: end.extras.clone() };
        let item = content_write::reasoning_item(&reasoning, Recipient::Client, &mut self.losses);
        let mut item = item.unwrap_or_default();
        if let Some(seal) = end.seal.as_ref().filter(|seal| seal.belongs_to(ID)) {
            item.shift_remove("id");
            item.insert("encrypted_content".to_owned(), Value::from(seal.to_token()));
        }
        item
    }

    fn finished(&mut self, finish: &Finish, out: &mut Vec<u8>) {
        self.phase = Phase::Over;
        let mut response = std::mem::take(&mut self.response);
        reply_write::finished(&mut response, finish, std::mem::take(&mut self.output), &mut self.losses);
        let incomplete = response.get("status").is_some_and(|status| status == "incomplete");
        let kind = if incomplete { "response.incomplete" } else { "response.completed" };
        self.events.response(kind, response, out);
    }
}

/// A text part of a message.
fn text_part(text: &str, extras: &Fields) -> Value {
    let mut part = Fields::new();
    part.insert("type".to_owned(), Value::from("output_text"));
    part.insert("text".to_owned(), Value::from(text));
    part.insert("annotations".to_owned(), json!([]));
    part.insert("logprobs".to_owned(), json!([]));
    part.extend(extras.clone());
    Value::Object(part)
}

fn with_id(item: Value, id: &str) -> Value {
    let mut fields = Fields::new();
    fields.insert("id".to_owned(), Value::from(id));
    if let Value::Object(rest) = item {
        fields.extend(rest);
    }
    Value::Object(fields)
}
