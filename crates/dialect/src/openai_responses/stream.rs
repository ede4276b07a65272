//! Reads a reply as it comes: which event means what. The items themselves are told by [`ItemTeller`].

use serde_json::Value;
use toolgate_model::{BlockStart, Extras, Fields, Losses, ReasoningKind, ReplyHead, TurnError, TurnEvent};

use super::ID;
use super::error;
use super::reply::{self, Ending};
use super::stream_frames::{DeltaEvent, ItemEvent, Named, ResponseEvent, SummaryEvent, read};
use super::stream_items::{ItemTeller, Out};
use crate::ReplyReader;
use crate::frame::SseFrame;

/// Reads the events of one stream.
pub(super) struct StreamReader {
    phase: Phase,
    head: Fields,
    items: ItemTeller,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    Finished,
}

impl StreamReader {
    /// Before the first frame.
    pub(super) fn new() -> Self {
        Self { phase: Phase::Before, head: Fields::new(), items: ItemTeller::default() }
    }
}

impl ReplyReader for StreamReader {
    fn frame(&mut self, frame: SseFrame<'_>, out: Out<'_>) -> Result<(), TurnError> {
        if self.phase == Phase::Finished || frame.data == "[DONE]" {
            return Ok(());
        }
        if frame.event.starts_with("response.") {
            return self.event(frame.event, frame.data, out);
        }
        // Some hosts leave the event's name out: it also stands in the data.
        let kind = read::<Named<'_>>(frame.data)?.kind;
        match (kind.as_ref(), frame.event) {
            ("" | "error", _) | (_, "error") => Err(told_error(frame.data)),
            (kind, _) => self.event(kind, frame.data, out),
        }
    }

    fn end(&mut self, _out: Out<'_>) -> Result<(), TurnError> {
        // T17
        if self.phase == Phase::Finished {
            return Ok(());
        }
        Err(TurnError::upstream(
            "the host closed the stream before the response was complete: send the request again",
        ))
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.items.losses)
    }
}

fn told_error(data: &str) -> TurnError {
    match serde_json::from_str::<Value>(data) {
        Ok(told) => {
            error::from_value(told.get("error").filter(|error| !error.is_null()).unwrap_or(&told), None)
        }
        Err(_) => TurnError::upstream(format!("the host sent an error that cannot be read: {data}")),
    }
}

impl StreamReader {
    fn event(&mut self, kind: &str, data: &str, out: Out<'_>) -> Result<(), TurnError> {
        if self.phase == Phase::Before && is_content(kind) {
            self.start(unknown_head(), out);
        }
        match kind {
            "response.output_text.delta" => self.items.prose(BlockStart::Text, read(data)?, out),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let event: DeltaEvent<'_> = read(data)?;
                self.items.arguments(event.output_index, &event.delta, out)
            }
            "response.reasoning_summary_text.delta" => {
                let event: DeltaEvent<'_> = read(data)?;
                let place = (event.output_index, ReasoningKind::Summary, event.summary_index);
                self.items.thought(place, &event.delta, out)
            }
            "response.reasoning_text.delta" => {
                let event: DeltaEvent<'_> = read(data)?;
                let place = (event.output_index, ReasoningKind::Full, event.content_index);
                self.items.thought(place, &event.delta, out)
            }
            "response.refusal.delta" => self.items.prose(BlockStart::Refusal, read(data)?, out),
            "response.created" | "response.queued" | "response.in_progress" => {
                if self.phase == Phase::Before {
                    let event: ResponseEvent = read(data)?;
                    self.start(reply::take_apart(event.response).0, out);
                }
                Ok(())
            }
            "response.output_item.added" => {
                let event: ItemEvent = read(data)?;
                event.item.map_or(Ok(()), |item| self.items.announced(event.output_index, item, out))
            }
            "response.content_part.added" => self.items.part_added(read(data)?, out),
            "response.content_part.done" => {
                self.items.part_done(read(data)?);
                Ok(())
            }
            "response.reasoning_summary_part.added" => {
                let event: SummaryEvent = read(data)?;
                self.items.thought((event.output_index, ReasoningKind::Summary, event.summary_index), "", out)
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                self.items.arguments_done(&read(data)?, out)
            }
            "response.output_item.done" => {
                let event: ItemEvent = read(data)?;
                event.item.map_or(Ok(()), |item| self.items.complete(event.output_index, item, out))
            }
            "response.completed" | "response.incomplete" | "response.failed" => self.finish(read(data)?, out),
            // How a provider's own tools get on: their items tell all of it when they are complete.
            _ => Ok(()),
        }
    }

    /// Once, whatever the host sends first (T4).
    fn start(&mut self, head: ReplyHead, out: Out<'_>) {
        if self.phase == Phase::Before {
            self.phase = Phase::Running;
            self.head = head.extras.known_to(ID).cloned().unwrap_or_default();
            out.push(TurnEvent::Started(head));
        }
    }

    fn finish(&mut self, event: ResponseEvent, out: Out<'_>) -> Result<(), TurnError> {
        if let Some(error) = reply::failure(&event.response) {
            return Err(error);
        }
        let (head, ending) = reply::take_apart(event.response);
        let last = head.extras.known_to(ID).cloned().unwrap_or_default();
        self.start(head, out);
        let Ending { items, status, reason, usage } = ending;
        self.items.tell_unfinished(items, out)?;
        let mut finish = reply::finish(status, reason, usage, self.items.said);
        for (name, value) in changes(&self.head, last) {
            finish.extras.insert(ID, name, value);
        }
        self.phase = Phase::Finished;
        out.push(TurnEvent::Finished(finish));
        Ok(())
    }
}

/// Whether an event tells a part of the reply: some hosts begin with one.
fn is_content(kind: &str) -> bool {
    let families =
        ["output_", "content_part.", "reasoning_", "refusal.", "function_call_", "custom_tool_call_"];
    let rest = kind.strip_prefix("response.").unwrap_or_default();
    families.iter().any(|family| rest.starts_with(family))
}

/// Of a host that begins with content.
fn unknown_head() -> ReplyHead {
    ReplyHead { extras: Extras::marked(ID, Fields::new()), ..ReplyHead::default() }
}

/// The fields of a response that are other at its end than at its start.
fn changes(first: &Fields, last: Fields) -> Fields {
    let gone: Vec<String> = first.keys().filter(|name| !last.contains_key(*name)).cloned().collect();
    let mut changes: Fields =
        last.into_iter().filter(|(name, value)| first.get(name) != Some(value)).collect();
    changes.extend(gone.into_iter().map(|name| (name, Value::Null)));
    changes
}
