//! Writes a reply as chunks.

use serde_json::Value;
use toolgate_model::{
    BlockEnd, BlockStart, CallKind, Delivery, Delta, Fields, Finish, Losses, Notes, ReplyHead, Seal,
    TurnError, TurnEvent, Usage, UsageReport,
};

use super::content_write_assistant::{CallForm, PARAGRAPH};
use super::reasoning_details::REASONING_DETAILS;
use super::reply_write::{self, FinishFields, NoteFields, RefusalForm};
use super::stream_write_chunk::{ChoiceFields, ChunkHead, ChunkWriter, json_text, quoted};
use super::stream_write_state::{OpenBlock, ReasoningForm, StreamEnd, WrittenContent};
use super::usage::UsageOut;
use super::{ID, Origin, error, reasoning_details, thought_signature};
use crate::frame::{write_comment, write_data};
use crate::openai_shared::characters;
use crate::{ReplyContext, ReplyWriter};

/// How much reasoning is kept for the token that returns its seal.
const MAX_SEALED_BYTES: usize = 1024 * 1024;

/// Writes one choice of a stream.
pub struct ChatWriter {
    context: ReplyContext,
    chunks: ChunkWriter,
    stream_end: StreamEnd,
    calls: CallForm,
    origin: Origin,
    reasoning: ReasoningForm,
    open: OpenBlock,
    /// Calls are numbered from 0 without gaps (T8).
    started_calls: u32,
    /// The id of the latest call.
    call_id: String,
    /// The signature of the next call.
    signature: Option<Seal>,
    /// How many seals of other dialects have been written.
    foreign_seals: usize,
    written: WrittenContent,
    refusal: RefusalForm,
    notes: NoteFields,
    /// The length of the open text.
    text_length: u64,
    losses: Losses,
}

impl ChatWriter {
    /// Writes the only choice.
    pub fn new(context: ReplyContext) -> Self {
        let calls = reply_write::call_form(&context);
        Self {
            context,
            chunks: ChunkWriter::new(0),
            stream_end: StreamEnd::WithChoice,
            calls,
            origin: Origin::Foreign,
            reasoning: ReasoningForm::ReasoningContent,
            open: OpenBlock::None,
            started_calls: 0,
            call_id: String::new(),
            signature: None,
            foreign_seals: 0,
            written: WrittenContent::NoText,
            refusal: RefusalForm::FinishReason,
            notes: NoteFields::default(),
            text_length: 0,
            losses: Losses::default(),
        }
    }

    /// Writes one of several choices, without usage and `[DONE]`. After all choices, end the stream with
    /// [`ChatWriter::close`] of any of them.
    #[must_use]
    pub fn with_choice(mut self, choice: u32) -> Self {
        self.chunks = ChunkWriter::new(choice);
        self.stream_end = StreamEnd::ByCaller;
        self
    }

    /// Ends a stream of several choices: the total usage, if the client requested it, then `[DONE]`.
    pub fn close(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        if let Some(usage) = usage.filter(|_| self.wants_usage() && self.chunks.is_started()) {
            self.chunks.usage(&UsageOut::new(usage, &mut self.losses), out);
        }
        write_data(b"[DONE]", out);
    }
}

impl ReplyWriter for ChatWriter {
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        match event {
            TurnEvent::Started(head) => self.start(&head, out),
            TurnEvent::BlockStarted(start) => self.start_block(start, out),
            TurnEvent::BlockDelta(delta) => self.delta(&delta, out),
            TurnEvent::BlockFinished(end) => self.end_block(&end, out),
            // Written once, at the end.
            TurnEvent::Usage(_) => {}
            TurnEvent::Finished(finish) => self.finish(&finish, out),
        }
    }

    // T17
    fn error(&mut self, error: &TurnError, out: &mut Vec<u8>) {
        write_data(&error::write(error), out);
        write_data(b"[DONE]", out);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        write_comment("ping", out);
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

impl ChatWriter {
    /// True if the client requested usage. A stream written for a request that asked for a whole reply carries it too.
    fn wants_usage(&self) -> bool {
        match self.context.request.delivery {
            Delivery::Whole | Delivery::Stream(UsageReport::Included) => true,
            Delivery::Stream(UsageReport::Default | UsageReport::Omitted) => false,
        }
    }

    fn start(&mut self, head: &ReplyHead, out: &mut Vec<u8>) {
        self.origin = Origin::of(&head.extras);
        self.chunks.start(&ChunkHead {
            id: reply_write::written_id(head, &self.context),
            object: "chat.completion.chunk",
            created: head.created.unwrap_or(self.context.now),
            model: head.model.as_ref().unwrap_or(&self.context.request.model).as_str(),
        });
        // T22: the first chunk carries the role.
        let extra = reply_write::head_fields(head, &mut self.losses);
        self.chunks.chunk(r#"{"role":"assistant","content":""}"#, &ChoiceFields::default(), &extra, out);
    }

    fn start_block(&mut self, start: BlockStart, out: &mut Vec<u8>) {
        self.open = match start {
            BlockStart::Text => {
                // Text after a call starts a new paragraph; a host of this dialect has already written the break.
                if self.written == WrittenContent::TextThenCall && self.origin == Origin::Foreign {
                    self.chunks.text("{\"content\":", PARAGRAPH, "}", out);
                }
                self.written = WrittenContent::Text;
                OpenBlock::Text
            }
            BlockStart::Refusal => {
                self.refusal = RefusalForm::Message;
                OpenBlock::Refusal
            }
            BlockStart::Reasoning(extras) => {
                self.reasoning = ReasoningForm::of(&extras);
                OpenBlock::Reasoning(String::new())
            }
            BlockStart::ToolCall { id, name, kind } => {
                if self.written == WrittenContent::Text {
                    self.written = WrittenContent::TextThenCall;
                }
                self.start_call(id.as_str(), name.as_str(), kind, out)
            }
            BlockStart::Opaque(opaque) => {
                if let Some(fields) = opaque.write(ID, "message", &mut self.losses) {
                    self.chunks.delta(&format!("{{\"content\":[{}]}}", json_text(fields)), out);
                }
                OpenBlock::None
            }
        };
    }

    fn start_call(&mut self, id: &str, name: &str, kind: CallKind, out: &mut Vec<u8>) -> OpenBlock {
        let index = self.started_calls;
        self.started_calls += 1;
        id.clone_into(&mut self.call_id);
        let (id, name) = (quoted(id), quoted(name));
        let delta = match (self.calls, kind) {
            (CallForm::Tools, CallKind::Function) => format!(
                r#"{{"tool_calls":[{{"index":{index},"id":{id},"type":"function","function":{{"name":{name},"arguments":""}}}}]}}"#
            ),
            (CallForm::Tools, CallKind::Custom) => format!(
                r#"{{"tool_calls":[{{"index":{index},"id":{id},"type":"custom","custom":{{"name":{name},"input":""}}}}]}}"#
            ),
            (CallForm::Legacy, _) if index == 0 => {
                format!(r#"{{"function_call":{{"name":{name},"arguments":""}}}}"#)
            }
            (CallForm::Legacy, _) => {
                self.losses.add("message.function_call", "the legacy form has room for one call");
                return OpenBlock::SkippedCall;
            }
        };
        self.chunks.delta(&delta, out);
        OpenBlock::Call { kind, has_input: false }
    }

    fn delta(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match (&mut self.open, delta) {
            (OpenBlock::Text, Delta::Text(text)) => {
                self.text_length += characters(text);
                self.chunks.text("{\"content\":", text, "}", out);
            }
            (OpenBlock::Refusal, Delta::Text(text)) => self.chunks.text("{\"refusal\":", text, "}", out),
            (OpenBlock::Reasoning(so_far), Delta::Text(text)) => {
                if so_far.len() <= MAX_SEALED_BYTES {
                    so_far.push_str(text);
                }
                self.reasoning_delta(text, out);
            }
            (OpenBlock::Reasoning(so_far), Delta::Paragraph(_)) => {
                if !so_far.is_empty() {
                    so_far.push_str(PARAGRAPH);
                    self.reasoning_delta(PARAGRAPH, out);
                }
            }
            (OpenBlock::Call { kind, has_input }, Delta::Arguments(text)) => {
                *has_input = true;
                let kind = *kind;
                self.input_delta(kind, text, out);
            }
            // The grammar allows no other pair, and the skipped call has been reported.
            (_, Delta::Text(_) | Delta::Paragraph(_) | Delta::Arguments(_)) => {}
        }
    }

    fn reasoning_delta(&self, text: &str, out: &mut Vec<u8>) {
        match self.reasoning {
            ReasoningForm::ReasoningContent => {
                self.chunks.text("{\"reasoning_content\":", text, "}", out);
            }
            ReasoningForm::Reasoning => self.chunks.text("{\"reasoning\":", text, "}", out),
            ReasoningForm::ReasoningText => self.chunks.text("{\"reasoning_text\":", text, "}", out),
            ReasoningForm::Details => {}
            ReasoningForm::Both => {
                let before = format!("{{\"reasoning_content\":{},\"reasoning\":", quoted(text));
                self.chunks.text(&before, text, "}", out);
            }
            ReasoningForm::ContentPart => {
                let before =
                    "{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":";
                self.chunks.text(before, text, "}]}]}", out);
            }
        }
    }

    fn input_delta(&self, kind: CallKind, text: &str, out: &mut Vec<u8>) {
        let index = self.started_calls.saturating_sub(1);
        let (before, after) = match (self.calls, kind) {
            (CallForm::Tools, CallKind::Function) => {
                (format!("{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":"), "}}]}")
            }
            (CallForm::Tools, CallKind::Custom) => {
                (format!("{{\"tool_calls\":[{{\"index\":{index},\"custom\":{{\"input\":"), "}}]}")
            }
            (CallForm::Legacy, _) => ("{\"function_call\":{\"arguments\":".to_owned(), "}}"),
        };
        self.chunks.text(&before, text, after, out);
    }

    fn end_block(&mut self, end: &BlockEnd, out: &mut Vec<u8>) {
        if let Some(details) = end.seal.as_ref().and_then(reasoning_details::of_seal) {
            self.chunks.delta(&format!("{{\"{REASONING_DETAILS}\":{details}}}"), out);
        } else if let (Some(seal), OpenBlock::Reasoning(text)) = (&end.seal, &self.open)
            && let Some(detail) = reasoning_details::foreign(seal, text, self.foreign_seals)
        {
            if text.len() > MAX_SEALED_BYTES {
                self.losses.add("message.reasoning.seal", "the reasoning is too long to be returned");
            } else {
                self.foreign_seals += 1;
                self.chunks.delta(&format!("{{\"{REASONING_DETAILS}\":[{detail}]}}"), out);
            }
        }
        let (mut fields, notes) = end.extras.write_noted(ID, "message", &mut self.losses);
        self.write_notes(notes, out);
        let OpenBlock::Call { kind, has_input } = std::mem::replace(&mut self.open, OpenBlock::None) else {
            return self.signature(end, out);
        };
        if let Some(signature) = self.signature.take_if(|seal| thought_signature::signs(seal, &self.call_id))
        {
            thought_signature::put(&mut fields, &signature.data);
        }
        // T9: no arguments are written as an empty object.
        if !has_input && kind == CallKind::Function {
            self.input_delta(kind, "{}", out);
        }
        self.call_fields(fields, out);
    }

    /// Writes the notes on a text in a chunk of their own.
    fn write_notes(&mut self, notes: Option<&Notes>, out: &mut Vec<u8>) {
        self.notes.add(notes, std::mem::take(&mut self.text_length));
        if notes.is_none() {
            return;
        }
        let choice = ChoiceFields { finish_reason: None, extra: self.notes.choice() };
        self.chunks.chunk(&json_text(&self.notes.message()), &choice, &Fields::new(), out);
    }

    /// Keeps a signature for its call, or adds it to the latest call.
    fn signature(&mut self, end: &BlockEnd, out: &mut Vec<u8>) {
        let Some(seal) = end.seal.as_ref().filter(|seal| thought_signature::is_signature(seal)) else {
            return;
        };
        if !thought_signature::signs(seal, &self.call_id) {
            self.signature = Some(seal.clone());
            return;
        }
        let mut fields = Fields::new();
        thought_signature::put(&mut fields, &seal.data);
        self.call_fields(fields, out);
    }

    /// Adds fields to the latest call.
    fn call_fields(&mut self, fields: Fields, out: &mut Vec<u8>) {
        if fields.is_empty() || self.calls != CallForm::Tools {
            return;
        }
        let index = self.started_calls.saturating_sub(1);
        let mut call = Fields::from_iter([("index".to_owned(), Value::from(index))]);
        call.extend(fields);
        self.chunks.delta(&format!("{{\"tool_calls\":[{}]}}", json_text(&call)), out);
    }

    fn finish(&mut self, finish: &Finish, out: &mut Vec<u8>) {
        let FinishFields { choice, message, reply: mut late } =
            reply_write::finish_fields(&finish.extras, &mut self.losses);
        let reason = reply_write::write_stop(finish, self.calls, self.refusal, &mut self.losses);
        let ends_stream = self.stream_end == StreamEnd::WithChoice;
        let usage = finish.usage.as_ref().filter(|_| ends_stream);
        // A host that reports usage unasked does so in its last chunk, so this writer does too: a chunk without
        // choices is only for clients that requested it.
        let is_unasked = !self.wants_usage()
            && self.origin == Origin::Native
            && self.context.request.delivery != Delivery::Stream(UsageReport::Omitted);
        if let Some(usage) = usage.filter(|_| is_unasked) {
            let usage = serde_json::to_value(UsageOut::new(usage, &mut self.losses)).unwrap_or_default();
            late.insert("usage".to_owned(), usage);
        }
        let choice = ChoiceFields { finish_reason: Some(reason), extra: choice };
        self.chunks.chunk(&json_text(&message), &choice, &late, out);
        if ends_stream {
            self.close(usage, out);
        }
    }
}
