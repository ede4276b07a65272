//! Writes a stream: `message_start`, blocks numbered without gaps, `message_delta`, `message_stop` (D7).

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{
    BlockEnd, BlockStart, CallKind, Delta, Fields, Finish, JsonText, Losses, ReplyHead, Seal, TurnError,
    TurnEvent, Usage,
};

use super::ID;
use super::citations::{self, CITATIONS};
use super::content_write::{redacted_data, report_refusal, signature_text, write_opaque};
use super::content_write_input::{CUSTOM_INPUT, escaped};
use super::error;
use super::reply_write::{MessageOut, opening, origin_seal, write_stop_reason};
use super::usage::UsageOut;
use super::wire::BlockOut;
use crate::frame::write_event;
use crate::{ReplyContext, ReplyWriter};

/// Fields of the end that belong beside `delta`, not in it.
const BESIDE_DELTA: [&str; 1] = ["context_management"];

/// Converts events to frames.
pub(super) struct StreamWriter {
    context: ReplyContext,
    /// Held back until the next event, which may be the host's usage for `message_start`.
    head: Option<ReplyHead>,
    /// For reasoning that its host did not seal.
    origin_seal: Option<Seal>,
    usage: Option<Usage>,
    /// The next block's number (T7).
    index: u64,
    open: OpenBlock,
    losses: Losses,
}

/// How much of a text is kept for citations that quote it.
const MAX_QUOTED_BYTES: usize = 256 * 1024;

/// The open block.
enum OpenBlock {
    None,
    /// With the beginning of its text, which citations quote.
    Text(String),
    /// Not written yet: its first text, or its end, decides whether it is thinking or redacted thinking.
    HeldReasoning,
    Reasoning,
    /// A call without input so far.
    EmptyCall,
    Call,
    /// A custom call: its text is streamed as one JSON string.
    CustomCall,
    /// Written completely at its start, or dropped because it belongs to another dialect.
    Opaque,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FrameOut<'a> {
    MessageStart {
        message: MessageOut<'a>,
    },
    ContentBlockStart {
        index: u64,
        content_block: StartOut<'a>,
    },
    ContentBlockDelta {
        index: u64,
        delta: DeltaOut<'a>,
    },
    ContentBlockStop {
        index: u64,
        /// Fields that were not known at the block's start; clients of this API ignore them.
        #[serde(flatten)]
        late: Fields,
    },
    MessageDelta {
        delta: StopOut<'a>,
        usage: UsageOut,
        #[serde(flatten)]
        extra: Fields,
    },
    MessageStop,
    Ping,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StartOut<'a> {
    Text {
        text: &'static str,
    },
    Thinking {
        thinking: &'static str,
        signature: &'static str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: JsonText,
    },
    #[serde(untagged)]
    Whole(BlockOut<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum DeltaOut<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
    #[serde(rename = "citations_delta")]
    Citations { citation: &'a Value },
}

#[derive(Serialize)]
struct StopOut<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
    #[serde(flatten)]
    extra: Fields,
}

impl StreamWriter {
    pub(super) fn new(context: ReplyContext) -> Self {
        Self {
            context,
            head: None,
            origin_seal: None,
            usage: None,
            index: 0,
            open: OpenBlock::None,
            losses: Losses::default(),
        }
    }
}

impl ReplyWriter for StreamWriter {
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        match event {
            TurnEvent::Started(head) => {
                self.origin_seal = origin_seal(&head);
                self.head = Some(head);
            }
            TurnEvent::Usage(usage) => {
                self.usage = Some(usage);
                self.begin(out);
            }
            TurnEvent::BlockStarted(start) => {
                self.begin(out);
                self.start_block(start, out);
            }
            TurnEvent::BlockDelta(delta) => self.delta(&delta, out),
            TurnEvent::BlockFinished(end) => self.finish_block(&end, out),
            TurnEvent::Finished(finish) => {
                self.begin(out);
                self.finish(finish, out);
            }
        }
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
    }

    fn error(&mut self, error: &TurnError, out: &mut Vec<u8>) {
        write_event("error", &error::write(error), out); // T17
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        put("ping", &FrameOut::Ping, out); // T19
    }

    fn losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

impl StreamWriter {
    /// Writes `message_start` once, with the host's usage if it has arrived, else with the estimate (T4, T18).
    fn begin(&mut self, out: &mut Vec<u8>) {
        let Some(head) = self.head.take() else { return };
        let usage = match &self.usage {
            Some(usage) => UsageOut::of(usage, &mut self.losses),
            None => UsageOut::estimate(self.context.estimated_input),
        };
        let message = opening(&head, &self.context, usage, &mut self.losses);
        put("message_start", &FrameOut::MessageStart { message }, out);
    }

    fn start_block(&mut self, start: BlockStart, out: &mut Vec<u8>) {
        self.open = match start {
            BlockStart::Text | BlockStart::Refusal => {
                if start == BlockStart::Refusal {
                    report_refusal(&mut self.losses);
                }
                self.put_start(StartOut::Text { text: "" }, out);
                OpenBlock::Text(String::new())
            }
            BlockStart::Reasoning(_) => OpenBlock::HeldReasoning,
            BlockStart::ToolCall { id, name, kind } => {
                let input = JsonText::empty_object();
                self.put_start(StartOut::ToolUse { id: id.as_str(), name: name.as_str(), input }, out);
                match kind {
                    CallKind::Function => OpenBlock::EmptyCall,
                    CallKind::Custom => {
                        self.put_delta(DeltaOut::InputJson { partial_json: &custom_opening() }, out);
                        OpenBlock::CustomCall
                    }
                }
            }
            BlockStart::Opaque(opaque) => {
                if let Some(block) = write_opaque(&opaque, &mut self.losses) {
                    self.put_start(StartOut::Whole(block), out);
                    self.put_stop(Fields::new(), out);
                }
                OpenBlock::Opaque
            }
        };
    }

    fn delta(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match (&mut self.open, delta) {
            (OpenBlock::Text(all), Delta::Text(text)) => {
                if all.len() < MAX_QUOTED_BYTES {
                    all.push_str(text);
                }
                self.put_delta(DeltaOut::Text { text }, out);
            }
            (OpenBlock::Reasoning, Delta::Text(thinking)) => {
                self.put_delta(DeltaOut::Thinking { thinking }, out);
            }
            (OpenBlock::HeldReasoning, Delta::Text(thinking)) => {
                self.start_reasoning(out);
                self.put_delta(DeltaOut::Thinking { thinking }, out);
            }
            (OpenBlock::HeldReasoning, Delta::Paragraph(_)) => self.start_reasoning(out),
            // Thinking has one text here, so paragraphs are separated by an empty line.
            (OpenBlock::Reasoning, Delta::Paragraph(_)) => {
                self.put_delta(DeltaOut::Thinking { thinking: "\n\n" }, out);
            }
            (OpenBlock::EmptyCall | OpenBlock::Call, Delta::Arguments(partial_json)) => {
                if !partial_json.is_empty() {
                    self.open = OpenBlock::Call;
                }
                self.put_delta(DeltaOut::InputJson { partial_json }, out);
            }
            (OpenBlock::CustomCall, Delta::Arguments(text)) => {
                self.put_delta(DeltaOut::InputJson { partial_json: &escaped(text) }, out);
            }
            // The grammar allows no other pair.
            (_, Delta::Text(_) | Delta::Paragraph(_) | Delta::Arguments(_)) => {}
        }
    }

    fn finish_block(&mut self, end: &BlockEnd, out: &mut Vec<u8>) {
        match std::mem::replace(&mut self.open, OpenBlock::None) {
            OpenBlock::None | OpenBlock::Opaque => {}
            OpenBlock::Text(text) => {
                let (mut late, notes) = end.extras.write_noted(ID, "text", &mut self.losses);
                let mut citations = match late.shift_remove(CITATIONS) {
                    Some(Value::Array(citations)) => citations,
                    Some(_) | None => Vec::new(),
                };
                if let Some(notes) = notes {
                    citations.extend(citations::write(notes, &text, &mut self.losses));
                }
                for citation in &citations {
                    self.put_delta(DeltaOut::Citations { citation }, out);
                }
                self.put_stop(late, out);
            }
            OpenBlock::HeldReasoning => {
                if let Some(data) = redacted_data(end.seal.as_ref()) {
                    let extra = end.extras.write(ID, "thinking", &mut self.losses);
                    self.put_start(StartOut::Whole(BlockOut::RedactedThinking { data, extra }), out);
                    self.put_stop(Fields::new(), out);
                    return;
                }
                self.start_reasoning(out);
                self.finish_reasoning(end, out);
            }
            OpenBlock::Reasoning => self.finish_reasoning(end, out),
            OpenBlock::EmptyCall => {
                // Clients join the deltas and parse the result, and an empty text is not JSON (T9).
                self.put_delta(DeltaOut::InputJson { partial_json: "{}" }, out);
                let late = end.extras.write(ID, "tool_use", &mut self.losses);
                self.put_stop(late, out);
            }
            OpenBlock::Call => {
                let late = end.extras.write(ID, "tool_use", &mut self.losses);
                self.put_stop(late, out);
            }
            OpenBlock::CustomCall => {
                self.put_delta(DeltaOut::InputJson { partial_json: "\"}" }, out);
                let late = end.extras.write(ID, "tool_use", &mut self.losses);
                self.put_stop(late, out);
            }
        }
    }

    fn start_reasoning(&mut self, out: &mut Vec<u8>) {
        self.put_start(StartOut::Thinking { thinking: "", signature: "" }, out);
        self.open = OpenBlock::Reasoning;
    }

    fn finish_reasoning(&mut self, end: &BlockEnd, out: &mut Vec<u8>) {
        if let Some(seal) = end.seal.as_ref().or(self.origin_seal.as_ref()) {
            self.put_delta(DeltaOut::Signature { signature: &signature_text(seal) }, out);
        }
        let late = end.extras.write(ID, "thinking", &mut self.losses);
        self.put_stop(late, out);
        self.open = OpenBlock::None;
    }

    fn finish(&mut self, finish: Finish, out: &mut Vec<u8>) {
        let Finish { stop, stop_sequence, usage, extras } = finish;
        let usage = match usage.or(self.usage.take()) {
            Some(usage) => UsageOut::of(&usage, &mut self.losses),
            None => UsageOut::uncounted(self.context.estimated_input, &mut self.losses),
        };
        let mut inside = extras.write(ID, "reply", &mut self.losses);
        let mut beside = Fields::new();
        for name in BESIDE_DELTA {
            if let Some(value) = inside.shift_remove(name) {
                beside.insert(name.to_owned(), value);
            }
        }
        let delta = StopOut {
            stop_reason: write_stop_reason(&stop, &mut self.losses),
            stop_sequence: stop_sequence.as_deref(),
            extra: inside,
        };
        put("message_delta", &FrameOut::MessageDelta { delta, usage, extra: beside }, out);
        put("message_stop", &FrameOut::MessageStop, out); // T22
    }

    fn put_start(&self, content_block: StartOut<'_>, out: &mut Vec<u8>) {
        put("content_block_start", &FrameOut::ContentBlockStart { index: self.index, content_block }, out);
    }

    fn put_delta(&self, delta: DeltaOut<'_>, out: &mut Vec<u8>) {
        put("content_block_delta", &FrameOut::ContentBlockDelta { index: self.index, delta }, out);
    }

    fn put_stop(&mut self, late: Fields, out: &mut Vec<u8>) {
        put("content_block_stop", &FrameOut::ContentBlockStop { index: self.index, late }, out);
        self.index += 1;
    }
}

/// Writes one frame. Serialized JSON contains no line breaks.
fn put(event: &str, frame: &FrameOut<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    if serde_json::to_writer(&mut *out, frame).is_err() {
        // Cannot happen: writing to a vector does not fail, and keys are strings. Drops the partial frame.
        out.truncate(start);
        return;
    }
    out.extend_from_slice(b"\n\n");
}

fn custom_opening() -> String {
    format!("{{\"{CUSTOM_INPUT}\":\"")
}
