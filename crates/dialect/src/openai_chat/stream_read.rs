//! Reads a host's stream. The reply begins with the first chunk of an answer if all of its head is known by then, so
//! that a client hears of it at once; where something is missing (Azure names the reply only in its second chunk), it
//! begins when there is something to say.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_model::sequencer::{BlockClosing, Sequencer};
use toolgate_model::{
    Block, BlockEnd, BlockStart, Delta, Extras, Fields, Finish, Losses, ReplyHead, StopReason, TurnError,
    TurnEvent, Usage,
};

use super::calls::Calls;
use super::fields::{extras, merge};
use super::stream_wire::{CallDelta, ChoiceIn, ChunkIn, ContentIn, DeltaIn, Str, UsageField};
use super::surrogates::Surrogates;
use super::usage::UsageIn;
use super::wire::PartIn;
use super::{ID, assistant, error, marks, reply};
use crate::ReplyReader;
use crate::frame::SseFrame;

/// Names a block of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Key {
    Text,
    Refusal,
    Reasoning,
    Opaque,
    Call(usize),
}

/// Where a reply stands.
#[derive(PartialEq)]
enum Stage {
    /// `Started` is not out yet.
    Waiting,
    /// Nothing was said yet.
    Begun,
    Speaking,
    /// `Finished` is out; what follows is dropped (T22).
    Done,
}

/// Why the host says it ended.
enum Ending {
    NotYet,
    /// Some hosts end with `""`: then `[DONE]` decides (T14).
    Empty,
    Told(StopReason),
}

/// Whether the stream must end with `[DONE]`. Some hosts send none; one that says `"usage": null` announces more
/// chunks after the last word and goes by the book.
enum EndMark {
    Optional,
    Demanded,
}

/// Reads one stream.
pub(super) struct ChatReader {
    stage: Stage,
    head: ReplyHead,
    head_fields: Fields,
    /// Fields most hosts repeat in every chunk, as last seen.
    repeated: [(&'static str, Option<String>); 2],
    /// Where the open thought stands, if not in `reasoning_content`.
    reasoning_mark: Option<&'static str>,
    sequencer: Sequencer<Key>,
    calls: Calls,
    usage: Option<Usage>,
    ending: Ending,
    end_mark: EndMark,
    reply_fields: Fields,
    choice_fields: Fields,
    message_fields: Fields,
    losses: Losses,
    surrogates: Surrogates,
}

impl ChatReader {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Waiting,
            head: ReplyHead::default(),
            head_fields: Fields::new(),
            repeated: [("system_fingerprint", None), ("service_tier", None)],
            reasoning_mark: None,
            sequencer: Sequencer::new(BlockClosing::OnNextStart),
            calls: Calls::default(),
            usage: None,
            ending: Ending::NotYet,
            end_mark: EndMark::Optional,
            reply_fields: Fields::new(),
            choice_fields: Fields::new(),
            message_fields: Fields::new(),
            losses: Losses::default(),
            surrogates: Surrogates::default(),
        }
    }

    fn chunk(&mut self, chunk: ChunkIn<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        self.top_level(&chunk);
        let ChunkIn { choices, usage, extra, .. } = chunk;
        let beside = extra.get("x_groq").and_then(|beside| beside.get("usage")).and_then(usage_of_value);
        let into = if self.stage == Stage::Waiting { &mut self.head_fields } else { &mut self.reply_fields };
        merge(into, extra);
        for choice in choices.into_iter().flatten() {
            match choice.index.unwrap_or(0) {
                0 => {
                    self.choice(choice, out)?;
                    if self.head_is_whole() {
                        self.begin(out);
                    }
                }
                other => self.losses.add(format!("choices[{other}]"), "one answer is read from a stream"),
            }
        }
        // T13
        let usage = match usage {
            UsageField::Absent => None,
            UsageField::Null => {
                self.end_mark = EndMark::Demanded;
                None
            }
            UsageField::Given(usage) => read_usage(usage.get()),
        };
        if let Some(usage) = usage.or(beside) {
            if self.stage != Stage::Waiting {
                out.push(TurnEvent::Usage(usage.clone()));
            }
            self.usage = Some(usage);
        }
        Ok(())
    }

    fn top_level(&mut self, chunk: &ChunkIn<'_>) {
        let values = [chunk.system_fingerprint, chunk.service_tier];
        for ((name, last), value) in self.repeated.iter_mut().zip(values) {
            let Some(value) = value.map(RawValue::get).filter(|value| last.as_deref() != Some(*value)) else {
                continue;
            };
            *last = Some(value.to_owned());
            let into =
                if self.stage == Stage::Waiting { &mut self.head_fields } else { &mut self.reply_fields };
            into.insert((*name).to_owned(), serde_json::from_str(value).unwrap_or_default());
        }
        if self.stage != Stage::Waiting {
            return;
        }
        let told = |text: &Option<Str<'_>>| {
            text.as_ref().map(|text| text.0.to_string()).filter(|text| !text.is_empty())
        };
        if let (None, Some(id)) = (&self.head.id, told(&chunk.id)) {
            self.head.id = Some(id.into());
        }
        if self.head.created.is_none() {
            let told = chunk.created.and_then(|number| reply::seconds(number.get()));
            self.head.created = told.filter(|seconds| *seconds > 0);
        }
        if let (None, Some(model)) = (&self.head.model, told(&chunk.model)) {
            self.head.model = Some(model.into());
        }
    }

    fn choice(&mut self, choice: ChoiceIn<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let ChoiceIn { index: _, delta, finish_reason, logprobs, extra } = choice;
        merge(&mut self.choice_fields, extra);
        if let Some(logprobs) = logprobs {
            let value = serde_json::from_str(logprobs.get()).unwrap_or_default();
            merge(&mut self.choice_fields, Fields::from_iter([("logprobs".to_owned(), value)]));
        }
        if let Some(delta) = delta {
            self.delta(delta, out)?;
        }
        match finish_reason {
            None => {}
            Some(word) if word.0.is_empty() => {
                if matches!(self.ending, Ending::NotYet) {
                    self.ending = Ending::Empty;
                }
            }
            Some(word) => {
                self.speak(out);
                self.close(out);
                self.ending = Ending::Told(reply::read_stop(&word.0));
            }
        }
        Ok(())
    }

    /// T3: a chunk may hold everything at once; it is told in this order.
    fn delta(&mut self, delta: DeltaIn<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let DeltaIn {
            content, reasoning_content, reasoning, refusal, tool_calls, function_call, extra, ..
        } = delta;
        if !extra.is_empty() {
            merge(&mut self.message_fields, extra);
        }
        let (content_text, other) = (Str::text(reasoning_content), Str::text(reasoning));
        match (content_text.is_empty(), other.is_empty()) {
            (true, true) => {}
            (false, true) => self.think(content_text, None, out),
            (true, false) => self.think(other, Some(marks::REASONING), out),
            (false, false) => self.think(content_text, Some(marks::REASONING_BOTH), out),
        }
        match content {
            None => {}
            Some(ContentIn::Text(text)) => self.say(Key::Text, text, out),
            Some(ContentIn::Parts(parts)) => parts.into_iter().for_each(|part| self.part(part, out)),
        }
        self.say(Key::Refusal, Str::text(refusal), out);
        let legacy = function_call.map(CallDelta::legacy);
        // T11: an empty array is no call.
        for call in tool_calls.into_iter().flatten().chain(legacy) {
            self.speak(out);
            self.end_thought(out);
            let reply_id = self.head.id.as_ref().map_or("", |id| id.as_str());
            self.calls.delta(call, reply_id, &mut self.sequencer, out)?;
        }
        Ok(())
    }

    fn think(&mut self, text: Cow<'_, str>, mark: Option<&'static str>, out: &mut Vec<TurnEvent>) {
        if !self.sequencer.is_open(Key::Reasoning) {
            self.reasoning_mark = mark;
        }
        self.grow(Key::Reasoning, BlockStart::Reasoning(self.thought_extras()), text, out);
    }

    fn say(&mut self, key: Key, text: Cow<'_, str>, out: &mut Vec<TurnEvent>) {
        if !text.is_empty() {
            self.end_thought(out);
            let start = if key == Key::Refusal { BlockStart::Refusal } else { BlockStart::Text };
            self.grow(key, start, text, out);
        }
    }

    fn part(&mut self, part: PartIn, out: &mut Vec<TurnEvent>) {
        match assistant::read_part(part) {
            Block::Text(text) => self.say(Key::Text, Cow::Owned(text.text), out),
            Block::Refusal(text) => self.say(Key::Refusal, Cow::Owned(text.text), out),
            Block::Reasoning(thought) => {
                self.think(Cow::Owned(thought.text()), Some(marks::REASONING_PART), out);
            }
            Block::Opaque(opaque) => {
                self.speak(out);
                self.end_thought(out);
                self.sequencer.start(Key::Opaque, BlockStart::Opaque(opaque), out);
                self.sequencer.finish(Key::Opaque, BlockEnd::default(), out);
            }
            // A content part is never a call.
            Block::ToolCall(_) => {}
        }
    }

    /// T1, T2: a block opens with its true kind when its first text comes. T12: empty text opens none.
    fn grow(&mut self, key: Key, start: BlockStart, text: Cow<'_, str>, out: &mut Vec<TurnEvent>) {
        if text.is_empty() {
            return;
        }
        self.speak(out);
        if !self.sequencer.is_open(key) {
            self.sequencer.start(key, start, out);
        }
        self.sequencer.delta(key, Delta::Text(text.into_owned()), out);
    }

    fn end_thought(&mut self, out: &mut Vec<TurnEvent>) {
        if self.sequencer.is_open(Key::Reasoning) {
            let extras = self.thought_extras();
            self.sequencer.finish(Key::Reasoning, BlockEnd { seal: None, extras }, out);
        }
    }

    fn thought_extras(&self) -> Extras {
        let mut extras = Extras::NONE;
        if let Some(mark) = self.reasoning_mark {
            extras.mark(ID, mark);
        }
        extras
    }

    fn head_is_whole(&self) -> bool {
        let ReplyHead { id, model, created, extras: _ } = &self.head;
        id.is_some() && model.is_some() && created.is_some()
    }

    /// Something is said.
    fn speak(&mut self, out: &mut Vec<TurnEvent>) {
        self.begin(out);
        self.stage = Stage::Speaking;
    }

    fn begin(&mut self, out: &mut Vec<TurnEvent>) {
        if self.stage != Stage::Waiting {
            return;
        }
        self.stage = Stage::Begun;
        let mut head = self.head.clone();
        head.extras = extras(std::mem::take(&mut self.head_fields));
        reply::mark_head(&mut head);
        out.push(TurnEvent::Started(head));
        // A host may count before it speaks.
        out.extend(self.usage.clone().map(TurnEvent::Usage));
    }

    fn close(&mut self, out: &mut Vec<TurnEvent>) {
        self.end_thought(out);
        let reply_id = self.head.id.as_ref().map_or("", |id| id.as_str());
        self.calls.end(reply_id, &mut self.sequencer, &mut self.losses, out);
        self.sequencer.finish_all(out);
    }

    fn finish(&mut self, stop: StopReason, out: &mut Vec<TurnEvent>) {
        self.close(out);
        self.stage = Stage::Done;
        let message = std::mem::take(&mut self.message_fields);
        let reply = std::mem::take(&mut self.reply_fields);
        let extras = reply::finish_extras(std::mem::take(&mut self.choice_fields), message, reply);
        out.push(TurnEvent::Finished(Finish { stop, stop_sequence: None, usage: self.usage.take(), extras }));
    }

    /// T17: a stream that does not say why it ended was cut.
    fn conclude(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let stop = match std::mem::replace(&mut self.ending, Ending::NotYet) {
            Ending::Told(stop) => stop,
            Ending::Empty if self.calls.any() => StopReason::ToolUse,
            Ending::Empty if self.stage == Stage::Speaking => StopReason::EndTurn,
            Ending::Empty | Ending::NotYet => return Err(cut()),
        };
        self.finish(stop, out);
        Ok(())
    }
}

impl ReplyReader for ChatReader {
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
        let mended;
        let chunk: ChunkIn<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(cause) => {
                mended = self.surrogates.mend(data).ok_or_else(|| no_chunk(cause))?;
                serde_json::from_str(&mended).map_err(no_chunk)?
            }
        };
        if chunk.error.is_some() {
            return Err(error::read_in_band(data));
        }
        if chunk.choices.is_none() && matches!(chunk.usage, UsageField::Absent) && chunk.id.is_none() {
            return Err(TurnError::upstream("the host's stream holds JSON that is no chat completion chunk"));
        }
        self.chunk(chunk, out)
    }

    fn end(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        match (&self.stage, &self.ending, &self.end_mark) {
            (Stage::Done, _, _) => Ok(()),
            (_, Ending::Told(_), EndMark::Optional) => self.conclude(out),
            (_, Ending::Told(_), EndMark::Demanded) | (_, Ending::NotYet | Ending::Empty, _) => Err(cut()),
        }
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

fn no_chunk(cause: serde_json::Error) -> TurnError {
    TurnError::upstream("a chunk of the host's stream cannot be read as a chat completion chunk")
        .caused_by(cause)
}

fn cut() -> TurnError {
    TurnError::upstream("the host's stream ended before the reply was complete; send the request again")
}

/// Token counts; figures that cannot be read are no reason to lose the reply.
pub(super) fn read_usage(usage: &str) -> Option<Usage> {
    serde_json::from_str::<UsageIn>(usage).ok().map(UsageIn::into_usage)
}

fn usage_of_value(usage: &Value) -> Option<Usage> {
    serde_json::from_value::<UsageIn>(usage.clone()).ok().map(UsageIn::into_usage)
}
