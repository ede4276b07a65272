//! Reads a stream: decides what each event means. [`ItemReader`] turns the items into blocks.

use serde_json::Value;
use toolgate_model::{BlockStart, Extras, Fields, Losses, ReasoningKind, ReplyHead, TurnError, TurnEvent};

use super::ID;
use super::error;
use super::reply_read::{self, ReplyTail};
use super::stream_read_items::{ItemReader, Out};
use super::stream_read_lookup::ItemRef;
use super::wire_stream::{DeltaEvent, ItemEvent, Named, ResponseEvent, SummaryEvent, read};
use crate::ReplyReader;
use crate::frame::SseFrame;

/// Reads the events of one stream.
pub(super) struct StreamReader {
    phase: Phase,
    /// The extra fields of the response as it was first announced.
    head_fields: Fields,
    items: ItemReader,
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
        Self { phase: Phase::Before, head_fields: Fields::new(), items: ItemReader::new() }
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
        // Some hosts omit the event name; the data repeats it.
        let kind = match read::<Named<'_>>(frame.data) {
            Ok(named) => named.kind,
            Err(error) => return Err(find_error(frame.data).unwrap_or(error)),
        };
        match (kind.as_ref(), frame.event) {
            ("" | "error", _) | (_, "error") => Err(read_error(frame.data)),
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

fn read_error(data: &str) -> TurnError {
    find_error(data)
        .unwrap_or_else(|| TurnError::upstream(format!("the host sent an error that cannot be read: {data}")))
}

fn find_error(data: &str) -> Option<TurnError> {
    error::find(&serde_json::from_str(data).ok()?)
}

impl StreamReader {
    fn event(&mut self, kind: &str, data: &str, out: Out<'_>) -> Result<(), TurnError> {
        if self.phase == Phase::Before && is_content(kind) {
            self.start(unknown_head(), out);
        }
        match kind {
            "response.output_text.delta" => self.items.text_delta(BlockStart::Text, read(data)?, out),
            "response.refusal.delta" => self.items.text_delta(BlockStart::Refusal, read(data)?, out),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let event: DeltaEvent<'_> = read(data)?;
                if let Some(item) = self.items.find(event.item()) {
                    self.items.arguments_delta(item, &event.delta, out);
                }
            }
            "response.reasoning_summary_text.delta" => {
                let event: DeltaEvent<'_> = read(data)?;
                let (kind, index) = (ReasoningKind::Summary, event.summary_index);
                self.items.paragraph_delta(event.item(), (kind, index), &event.delta, out);
            }
            "response.reasoning_text.delta" => {
                let event: DeltaEvent<'_> = read(data)?;
                let (kind, index) = (ReasoningKind::Full, event.content_index);
                self.items.paragraph_delta(event.item(), (kind, index), &event.delta, out);
            }
            "response.created" | "response.queued" | "response.in_progress"
                if self.phase == Phase::Before =>
            {
                let event: ResponseEvent = read(data)?;
                self.start(reply_read::split(event.response).0, out);
            }
            "response.output_item.added" => {
                if let ItemEvent { output_index, item: Some(item) } = read(data)? {
                    self.items.added(output_index, item, out);
                }
            }
            "response.content_part.added" => self.items.part_added(&read(data)?, out),
            "response.content_part.done" => self.items.part_done(read(data)?),
            "response.reasoning_summary_part.added" => {
                let SummaryEvent { output_index: index, item_id, summary_index } = read(data)?;
                let item = ItemRef { index, id: item_id.as_deref() };
                self.items.paragraph_delta(item, (ReasoningKind::Summary, summary_index), "", out);
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                self.items.arguments_done(&read(data)?, out);
            }
            "response.output_item.done" => {
                if let ItemEvent { output_index, item: Some(item) } = read(data)? {
                    self.items.done(output_index, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.finish(read(data)?, out)?;
            }
            // Repeated heads, and progress of the provider's own tools, whose completed items repeat all of it.
            _ => {}
        }
        self.items.check_queue()
    }

    /// Emits `Started` once, whatever the host sends first (T4).
    fn start(&mut self, head: ReplyHead, out: Out<'_>) {
        if self.phase == Phase::Before {
            self.phase = Phase::Running;
            self.head_fields = head.extras.known_to(ID).cloned().unwrap_or_default();
            out.push(TurnEvent::Started(head));
        }
    }

    fn finish(&mut self, event: ResponseEvent, out: Out<'_>) -> Result<(), TurnError> {
        if let Some(error) = reply_read::failure(&event.response) {
            return Err(error);
        }
        let (head, tail) = reply_read::split(event.response);
        let last_fields = head.extras.known_to(ID).cloned().unwrap_or_default();
        self.start(head, out);
        let ReplyTail { items, status, reason, usage } = tail;
        self.items.complete_from_output(items, out);
        let mut finish = reply_read::finish(status, reason, usage, self.items.seen);
        for (name, value) in changed_fields(&self.head_fields, last_fields) {
            finish.extras.insert(ID, name, value);
        }
        self.phase = Phase::Finished;
        out.push(TurnEvent::Finished(finish));
        Ok(())
    }
}

/// Whether an event carries content: some hosts start with one.
fn is_content(kind: &str) -> bool {
    let families =
        ["output_", "content_part.", "reasoning_", "refusal.", "function_call_", "custom_tool_call_"];
    let rest = kind.strip_prefix("response.").unwrap_or_default();
    families.iter().any(|family| rest.starts_with(family))
}

/// The head for a host that starts with content.
fn unknown_head() -> ReplyHead {
    ReplyHead { extras: Extras::marked(ID, Fields::new()), ..ReplyHead::default() }
}

/// The response fields whose value at the end differs from the one at the start; removed fields become `null`.
fn changed_fields(first: &Fields, last: Fields) -> Fields {
    let removed: Vec<String> = first.keys().filter(|name| !last.contains_key(*name)).cloned().collect();
    let mut changed: Fields =
        last.into_iter().filter(|(name, value)| first.get(name) != Some(value)).collect();
    changed.extend(removed.into_iter().map(|name| (name, Value::Null)));
    changed
}
