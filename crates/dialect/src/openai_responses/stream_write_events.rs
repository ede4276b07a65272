//! Writes single events, each with its name, sequence number and position in the reply.

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_model::{Fields, ReasoningKind, ReasoningPart};

use super::content_write::paragraph;

/// The position of an event in the reply.
#[derive(Clone, Copy)]
pub(super) struct EventPosition<'a> {
    /// `output_index`.
    pub(super) index: usize,
    /// `item_id`.
    pub(super) id: &'a str,
    /// `content_index` or `summary_index`.
    pub(super) part: usize,
}

/// A delta event, the most frequent one.
#[derive(Serialize)]
pub(super) struct DeltaFrame<'a> {
    r#type: &'static str,
    sequence_number: u64,
    item_id: &'a str,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
    delta: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<[(); 0]>,
}

impl<'a> DeltaFrame<'a> {
    /// A delta event of this type.
    pub(super) fn new(kind: &'static str, position: EventPosition<'a>, delta: &'a str) -> Self {
        Self {
            r#type: kind,
            sequence_number: 0,
            item_id: position.id,
            output_index: position.index,
            content_index: None,
            summary_index: None,
            delta,
            logprobs: None,
        }
    }

    /// Sets `content_index`.
    pub(super) fn content(mut self, index: usize) -> Self {
        self.content_index = Some(index);
        self
    }

    /// Sets `summary_index`.
    fn summary(mut self, index: usize) -> Self {
        self.summary_index = Some(index);
        self
    }

    /// Adds `logprobs`, which text deltas require.
    pub(super) fn logprobs(mut self) -> Self {
        self.logprobs = Some([]);
        self
    }
}

/// Writes numbered events.
#[derive(Default)]
pub(super) struct EventWriter {
    sequence: u64,
}

impl EventWriter {
    /// Writes a delta event.
    pub(super) fn delta(&mut self, mut frame: DeltaFrame<'_>, out: &mut Vec<u8>) {
        frame.sequence_number = self.next();
        write_frame(frame.r#type, &frame, out);
    }

    /// Writes an event with these fields.
    pub(super) fn write(&mut self, kind: &str, fields: Fields, out: &mut Vec<u8>) {
        let mut event = Fields::new();
        event.insert("type".to_owned(), Value::from(kind));
        event.insert("sequence_number".to_owned(), Value::from(self.next()));
        event.extend(fields);
        write_frame(kind, &event, out);
    }

    /// Writes an event with the response.
    pub(super) fn response(&mut self, kind: &str, response: Fields, out: &mut Vec<u8>) {
        let mut event = Fields::new();
        event.insert("response".to_owned(), Value::Object(response));
        self.write(kind, event, out);
    }

    /// Writes an event with an item.
    pub(super) fn item(&mut self, kind: &str, index: usize, item: Value, out: &mut Vec<u8>) {
        let mut event = Fields::new();
        event.insert("output_index".to_owned(), Value::from(index));
        event.insert("item".to_owned(), item);
        self.write(kind, event, out);
    }

    /// Writes an event about a whole item.
    pub(super) fn whole_item(
        &mut self,
        kind: &str,
        position: EventPosition<'_>,
        fields: Fields,
        out: &mut Vec<u8>,
    ) {
        let mut event = Fields::new();
        event.insert("item_id".to_owned(), Value::from(position.id));
        event.insert("output_index".to_owned(), Value::from(position.index));
        event.extend(fields);
        self.write(kind, event, out);
    }

    /// Writes an event about a content part.
    pub(super) fn content(
        &mut self,
        kind: &str,
        position: EventPosition<'_>,
        fields: Fields,
        out: &mut Vec<u8>,
    ) {
        let mut event = Fields::new();
        event.insert("content_index".to_owned(), Value::from(position.part));
        event.extend(fields);
        self.whole_item(kind, position, event, out);
    }

    /// Writes an event with a content part.
    pub(super) fn part(&mut self, kind: &str, position: EventPosition<'_>, part: Value, out: &mut Vec<u8>) {
        let mut event = Fields::new();
        event.insert("part".to_owned(), part);
        self.content(kind, position, event, out);
    }

    /// Writes an annotation of a text, such as a citation.
    pub(super) fn annotation(
        &mut self,
        position: EventPosition<'_>,
        at: usize,
        annotation: &Value,
        out: &mut Vec<u8>,
    ) {
        let mut event = Fields::new();
        event.insert("annotation_index".to_owned(), Value::from(at));
        event.insert("annotation".to_owned(), annotation.clone());
        self.content("response.output_text.annotation.added", position, event, out);
    }

    /// Starts a reasoning paragraph.
    pub(super) fn start_paragraph(
        &mut self,
        position: EventPosition<'_>,
        kind: ReasoningKind,
        parts: &mut Vec<ReasoningPart>,
        out: &mut Vec<u8>,
    ) {
        parts.push(ReasoningPart { kind, text: String::new() });
        let position = EventPosition { part: index_in_kind(parts), ..position };
        let part = Value::Object(paragraph(kind, ""));
        match kind {
            ReasoningKind::Full => self.part("response.content_part.added", position, part, out),
            ReasoningKind::Summary => {
                let event = summary_event(position, "part", part);
                self.whole_item("response.reasoning_summary_part.added", position, event, out);
            }
        }
    }

    /// Appends to the last paragraph.
    pub(super) fn append_to_paragraph(
        &mut self,
        position: EventPosition<'_>,
        text: &str,
        parts: &mut [ReasoningPart],
        out: &mut Vec<u8>,
    ) {
        let index = index_in_kind(parts);
        let Some(last) = parts.last_mut() else { return };
        last.text.push_str(text);
        let frame = match last.kind {
            ReasoningKind::Full => {
                DeltaFrame::new("response.reasoning_text.delta", position, text).content(index)
            }
            ReasoningKind::Summary => {
                DeltaFrame::new("response.reasoning_summary_text.delta", position, text).summary(index)
            }
        };
        self.delta(frame, out);
    }

    /// Ends the last paragraph, if there is one.
    pub(super) fn end_paragraph(
        &mut self,
        position: EventPosition<'_>,
        parts: &[ReasoningPart],
        out: &mut Vec<u8>,
    ) {
        let position = EventPosition { part: index_in_kind(parts), ..position };
        let Some(last) = parts.last() else { return };
        let text = Value::from(last.text.as_str());
        let part = Value::Object(paragraph(last.kind, &last.text));
        match last.kind {
            ReasoningKind::Full => {
                let mut done = Fields::new();
                done.insert("text".to_owned(), text);
                self.content("response.reasoning_text.done", position, done, out);
                self.part("response.content_part.done", position, part, out);
            }
            ReasoningKind::Summary => {
                let done = summary_event(position, "text", text);
                self.whole_item("response.reasoning_summary_text.done", position, done, out);
                let done = summary_event(position, "part", part);
                self.whole_item("response.reasoning_summary_part.done", position, done, out);
            }
        }
    }

    fn next(&mut self) -> u64 {
        let number = self.sequence;
        self.sequence += 1;
        number
    }
}

fn summary_event(position: EventPosition<'_>, name: &str, value: Value) -> Fields {
    let mut event = Fields::new();
    event.insert("summary_index".to_owned(), json!(position.part));
    event.insert(name.to_owned(), value);
    event
}

/// The last paragraph's index among those of its kind.
fn index_in_kind(parts: &[ReasoningPart]) -> usize {
    let Some(last) = parts.last() else { return 0 };
    parts.iter().filter(|part| part.kind == last.kind).count() - 1
}

/// Writes one frame. Serialized JSON contains no line breaks.
fn write_frame(kind: &str, event: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    match serde_json::to_writer(&mut *out, event) {
        Ok(()) => out.extend_from_slice(b"\n\n"),
        // Cannot happen: writing to a vector does not fail, and keys are strings.
        Err(_) => out.truncate(start),
    }
}
