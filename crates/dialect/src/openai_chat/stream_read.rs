//! Reads a stream. `Started` is emitted with the first chunk if it completes the head, so that the client sees it at
//! once; otherwise with the first content.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::sequencer::{BlockClosing, Sequencer};
use toolgate_model::{
    Block, BlockEnd, BlockStart, Delta, Extras, Fields, Finish, Losses, StopReason, TurnError, TurnEvent,
    Usage,
};

use super::extras::merge;
use super::reply_read::Noted;
use super::stream_read_calls::Calls;
use super::stream_read_head::HeadReader;
use super::stream_read_state::{BlockKey, DoneMarker, ReasoningSource, Stage};
use super::stream_read_surrogates::Surrogates;
use super::usage;
use super::wire::PartIn;
use super::wire_stream::{CallDelta, ChoiceIn, ChunkIn, ContentIn, DeltaIn, Str, UsageField};
use super::{ID, content_read_assistant, error, marks, reasoning_details, reply_read};
use crate::ReplyReader;
use crate::frame::SseFrame;

/// Reads one stream.
pub(super) struct StreamReader {
    stage: Stage,
    head: HeadReader,
    /// The mark for the field that holds the open reasoning, unless it is `reasoning_content`.
    reasoning_mark: Option<&'static str>,
    reasoning_source: ReasoningSource,
    /// `reasoning_details` that belong to the open or the next reasoning block.
    details: Vec<Value>,
    sequencer: Sequencer<BlockKey>,
    calls: Calls,
    usage: Option<Usage>,
    /// Some hosts never send one, or send `""` (T14): then `[DONE]` ends the reply.
    stop: Option<StopReason>,
    refused: bool,
    done_marker: DoneMarker,
    choice_fields: Fields,
    message_fields: Fields,
    noted: Noted,
    losses: Losses,
    surrogates: Surrogates,
}

impl StreamReader {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Empty,
            head: HeadReader::new(),
            reasoning_mark: None,
            reasoning_source: ReasoningSource::Details,
            details: Vec::new(),
            sequencer: Sequencer::new(BlockClosing::OnNextStart),
            calls: Calls::default(),
            usage: None,
            stop: None,
            refused: false,
            done_marker: DoneMarker::Optional,
            choice_fields: Fields::new(),
            message_fields: Fields::new(),
            noted: Noted::No,
            losses: Losses::default(),
            surrogates: Surrogates::default(),
        }
    }
}

impl ReplyReader for StreamReader {
    fn frame(&mut self, frame: SseFrame<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let data = frame.data.trim();
        if self.stage == Stage::Done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.conclude(out);
        }
        if frame.event == "error" {
            return Err(error::read_in_band(data));
        }
        let repaired;
        let chunk: ChunkIn<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(cause) => {
                repaired = self.surrogates.repair(data).ok_or_else(|| unreadable_chunk(data, cause))?;
                serde_json::from_str(&repaired).map_err(|cause| unreadable_chunk(data, cause))?
            }
        };
        if chunk.has_error() {
            return Err(error::read_in_band(data));
        }
        if chunk.choices.is_none() && matches!(chunk.usage, UsageField::Absent) && chunk.id.is_none() {
            return Err(error::find(data).unwrap_or_else(|| {
                TurnError::upstream("the host's stream contains JSON that is not a chat completion chunk")
            }));
        }
        self.chunk(chunk, out)
    }

    fn end(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        match (&self.stage, &self.stop, &self.done_marker) {
            (Stage::Done, _, _) => Ok(()),
            (_, Some(_), DoneMarker::Optional) => self.conclude(out),
            (_, Some(_), DoneMarker::Required) | (_, None, _) => Err(truncated()),
        }
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

impl StreamReader {
    fn chunk(&mut self, chunk: ChunkIn<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        self.head.chunk(&chunk);
        let ChunkIn { choices, usage, extra, .. } = chunk;
        let groq = |name: &str| extra.get("x_groq").and_then(|groq| groq.get(name));
        if let Some(error) = groq("error").filter(|error| !error.is_null()) {
            return Err(error::read_in_band(&error.to_string()));
        }
        let groq_usage = groq("usage").and_then(usage::from_value);
        self.head.unknown_fields(extra);
        for choice in choices.into_iter().flatten() {
            match choice.index.unwrap_or(0) {
                0 => {
                    self.choice(choice, out)?;
                    if self.head.is_complete() {
                        self.start(out);
                    }
                }
                other => self.losses.add(format!("choices[{other}]"), "only the first choice is read"),
            }
        }
        // T13
        let usage = match usage {
            UsageField::Absent => None,
            UsageField::Null => {
                self.done_marker = DoneMarker::Required;
                None
            }
            UsageField::Given(usage) => usage::from_text(usage.get()),
        };
        if let Some(usage) = usage.or(groq_usage) {
            self.done_marker = DoneMarker::Optional;
            if self.head.is_emitted() {
                out.push(TurnEvent::Usage(usage.clone()));
            }
            self.usage = Some(usage);
        }
        Ok(())
    }

    fn choice(&mut self, choice: ChoiceIn<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let ChoiceIn { index: _, delta, message, finish_reason, logprobs, error, extra } = choice;
        if let Some(error) = error {
            return Err(error::read_in_band(error.get()));
        }
        merge(&mut self.choice_fields, extra);
        if let Some(logprobs) = logprobs {
            let value = serde_json::from_str(logprobs.get()).unwrap_or_default();
            merge(&mut self.choice_fields, Fields::from_iter([("logprobs".to_owned(), value)]));
        }
        match (delta, message) {
            (Some(delta), _) => self.delta(delta, out)?,
            (None, Some(message)) => {
                let message = serde_json::from_str(message.get());
                self.delta(message.map_err(|cause| unreadable_chunk("", cause))?, out)?;
            }
            (None, None) => {}
        }
        let reason = Str::text(finish_reason);
        if !reason.is_empty() {
            self.start(out);
            self.close_blocks(out);
            self.stop = Some(reply_read::read_stop(&reason)?);
        }
        Ok(())
    }

    /// T3: a chunk may carry every field at once; they are emitted in this order.
    fn delta(&mut self, delta: DeltaIn<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let DeltaIn {
            content,
            reasoning_content,
            reasoning,
            reasoning_text,
            reasoning_details,
            refusal,
            tool_calls,
            function_call,
            extra,
            ..
        } = delta;
        if !extra.is_empty() {
            merge(&mut self.message_fields, extra);
        }
        let (content_text, other_text) = (Str::text(reasoning_content), Str::text(reasoning));
        match (content_text.is_empty(), other_text.is_empty()) {
            (true, true) => self.reasoning(Str::text(reasoning_text), Some(marks::REASONING_TEXT), out),
            (false, true) => self.reasoning(content_text, None, out),
            (true, false) => self.reasoning(other_text, Some(marks::REASONING), out),
            (false, false) => self.reasoning(content_text, Some(marks::REASONING_BOTH), out),
        }
        self.reasoning_details(reasoning_details.unwrap_or_default(), out);
        match content {
            None => {}
            Some(ContentIn::Text(text)) => self.text(BlockKey::Text, text, out),
            Some(ContentIn::Parts(parts)) => parts.into_iter().for_each(|part| self.part(part, out)),
        }
        self.text(BlockKey::Refusal, Str::text(refusal), out);
        let legacy = function_call.filter(|call| !call.is_empty()).map(CallDelta::legacy);
        // T11: an empty array is no call.
        for call in tool_calls.into_iter().flatten().chain(legacy) {
            self.start_content(out);
            self.end_reasoning(out);
            self.calls.delta(call, self.head.reply_id(), &mut self.sequencer, out)?;
        }
        Ok(())
    }

    fn reasoning(&mut self, text: Cow<'_, str>, mark: Option<&'static str>, out: &mut Vec<TurnEvent>) {
        if text.is_empty() {
            return;
        }
        if mark != Some(marks::REASONING_DETAILS) {
            self.reasoning_source = ReasoningSource::Field;
        }
        if reasoning_details::foreign_seals(&self.details).is_some() {
            self.end_reasoning(out);
        }
        if !self.sequencer.is_open(BlockKey::Reasoning) {
            self.reasoning_mark = mark;
        }
        self.append(BlockKey::Reasoning, BlockStart::Reasoning(self.reasoning_extras()), text, out);
    }

    fn reasoning_details(&mut self, details: Vec<Value>, out: &mut Vec<TurnEvent>) {
        if self.reasoning_source == ReasoningSource::Details {
            let text = reasoning_details::text(&details);
            self.reasoning(Cow::Owned(text), Some(marks::REASONING_DETAILS), out);
        }
        reasoning_details::append(&mut self.details, details);
    }

    fn text(&mut self, key: BlockKey, text: Cow<'_, str>, out: &mut Vec<TurnEvent>) {
        if !text.is_empty() {
            self.end_reasoning(out);
            self.refused |= key == BlockKey::Refusal;
            let start = if key == BlockKey::Refusal { BlockStart::Refusal } else { BlockStart::Text };
            self.append(key, start, text, out);
        }
    }

    fn part(&mut self, part: PartIn, out: &mut Vec<TurnEvent>) {
        match content_read_assistant::read_part(part) {
            Block::Text(text) => self.text(BlockKey::Text, Cow::Owned(text.text), out),
            Block::Refusal(text) => self.text(BlockKey::Refusal, Cow::Owned(text.text), out),
            Block::Reasoning(reasoning) => {
                self.reasoning(Cow::Owned(reasoning.text()), Some(marks::REASONING_PART), out);
            }
            Block::Opaque(opaque) => {
                self.start_content(out);
                self.end_reasoning(out);
                self.sequencer.start(BlockKey::Opaque, BlockStart::Opaque(opaque), out);
                self.sequencer.finish(BlockKey::Opaque, BlockEnd::default(), out);
            }
            // A content part is never a call.
            Block::ToolCall(_) => {}
        }
    }

    /// Appends to a block. It opens with its final kind when its first text arrives (T1, T2); empty text opens
    /// none (T12).
    fn append(&mut self, key: BlockKey, start: BlockStart, text: Cow<'_, str>, out: &mut Vec<TurnEvent>) {
        if text.is_empty() {
            return;
        }
        self.start_content(out);
        if !self.sequencer.is_open(key) {
            self.sequencer.start(key, start, out);
        }
        self.sequencer.delta(key, Delta::Text(text.into_owned()), out);
    }

    /// Ends the reasoning. Details without a text are a block of their own.
    fn end_reasoning(&mut self, out: &mut Vec<TurnEvent>) {
        let is_open = self.sequencer.is_open(BlockKey::Reasoning);
        if !is_open && self.details.is_empty() {
            return;
        }
        if !is_open {
            self.reasoning_mark = Some(marks::REASONING_DETAILS);
            self.start(out);
            let start = BlockStart::Reasoning(self.reasoning_extras());
            self.sequencer.start(BlockKey::Reasoning, start, out);
        }
        let seal = reasoning_details::seal(std::mem::take(&mut self.details));
        let extras = self.reasoning_extras();
        self.sequencer.finish(BlockKey::Reasoning, BlockEnd { seal, extras }, out);
    }

    fn reasoning_extras(&self) -> Extras {
        let mut extras = Extras::NONE;
        if let Some(mark) = self.reasoning_mark {
            extras.mark(ID, mark);
        }
        extras
    }

    fn start_content(&mut self, out: &mut Vec<TurnEvent>) {
        self.start(out);
        self.stage = Stage::HasContent;
    }

    fn start(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(head) = self.head.emit() {
            out.push(TurnEvent::Started(head));
            // A host may send usage before the head is complete.
            out.extend(self.usage.clone().map(TurnEvent::Usage));
        }
    }

    fn close_blocks(&mut self, out: &mut Vec<TurnEvent>) {
        self.end_reasoning(out);
        self.calls.end(self.head.reply_id(), &mut self.sequencer, &mut self.losses, out);
        if self.sequencer.is_open(BlockKey::Text) {
            let extras = reply_read::text_notes(&self.choice_fields, &self.message_fields);
            self.noted = if extras.is_empty() { Noted::No } else { Noted::Yes };
            self.sequencer.finish(BlockKey::Text, BlockEnd { seal: None, extras }, out);
        }
        self.sequencer.finish_all(out);
    }

    /// Ends the reply. Without a finish reason something must have been said, and no call may be cut (T17).
    fn conclude(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let is_cut = self.stage == Stage::Empty || self.calls.is_cut(&self.sequencer);
        if self.stop.is_none() && is_cut {
            return Err(truncated());
        }
        self.start(out);
        self.close_blocks(out);
        let stop = reply_read::stop_of(self.stop.take(), self.calls.any(), self.refused);
        self.stage = Stage::Done;
        let message = std::mem::take(&mut self.message_fields);
        let choice = std::mem::take(&mut self.choice_fields);
        let extras = reply_read::finish_extras(choice, message, self.head.take_late_fields(), self.noted);
        out.push(TurnEvent::Finished(Finish { stop, stop_sequence: None, usage: self.usage.take(), extras }));
        Ok(())
    }
}

/// The error for a frame that is not a chunk: the host's own error, if the frame contains one.
fn unreadable_chunk(data: &str, cause: serde_json::Error) -> TurnError {
    error::find(data).unwrap_or_else(|| {
        TurnError::upstream("a chunk of the host's stream cannot be read as a chat completion chunk")
            .caused_by(cause)
    })
}

fn truncated() -> TurnError {
    TurnError::upstream("the host's stream ended before the reply was complete; send the request again")
}
