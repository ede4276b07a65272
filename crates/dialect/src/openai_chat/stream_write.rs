//! Writes a reply as chunks. What every chunk repeats is written once and copied.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{
    BlockEnd, BlockStart, CallKind, Delivery, Delta, Extras, Fields, Finish, Losses, ReplyHead, TurnError,
    TurnEvent, Usage, UsageReport,
};

use super::assistant_write::{CallForm, PARAGRAPH};
use super::chunk_text::{inner, json, push_fields, push_number, push_text, quoted};
use super::reply::{self, FinishFields};
use super::usage::UsageOut;
use super::{ID, Origin, error, marks};
use crate::frame::{write_comment, write_data};
use crate::{ReplyContext, ReplyWriter};

/// Writes one choice of a stream.
pub struct ChatWriter {
    context: ReplyContext,
    choice: u32,
    closing: Closing,
    calls: CallForm,
    origin: Origin,
    /// The fields before `choices`: `{"id":…,"object":…,"created":…,"model":…`.
    opening: Vec<u8>,
    reasoning: ReasoningForm,
    open: Open,
    /// How many calls have begun: their index is dense from 0 (T8).
    begun_calls: u32,
    /// A text is complete, and a call came since.
    said: Said,
    losses: Losses,
}

/// Whether the stream ends with this choice.
#[derive(Clone, Copy, PartialEq)]
enum Closing {
    WithChoice,
    Elsewhere,
}

/// What the client is being told.
#[derive(PartialEq)]
enum Open {
    Nothing,
    Text,
    Refusal,
    Reasoning {
        paragraphs: u32,
        wrote: Wrote,
    },
    Call {
        kind: CallKind,
        wrote: Wrote,
    },
    /// The legacy form has no room for this call.
    Unsaid,
}

#[derive(Clone, Copy, PartialEq)]
enum Wrote {
    Nothing,
    Something,
}

#[derive(PartialEq)]
enum Said {
    Nothing,
    Text,
    TextThenCall,
}

/// Where reasoning goes.
enum ReasoningForm {
    Content,
    Reasoning,
    Both,
    Part,
}

impl ReasoningForm {
    /// Where it stood, if it was said in this dialect.
    fn of(thought: &Extras) -> Self {
        if thought.is_marked(ID, marks::REASONING_PART) {
            Self::Part
        } else if thought.is_marked(ID, marks::REASONING_BOTH) {
            Self::Both
        } else if thought.is_marked(ID, marks::REASONING) {
            Self::Reasoning
        } else {
            Self::Content
        }
    }
}

impl ChatWriter {
    /// Writes the only choice.
    pub fn new(context: ReplyContext) -> Self {
        let calls = reply::call_form(&context);
        Self {
            context,
            choice: 0,
            closing: Closing::WithChoice,
            calls,
            origin: Origin::Foreign,
            opening: Vec::new(),
            reasoning: ReasoningForm::Content,
            open: Open::Nothing,
            begun_calls: 0,
            said: Said::Nothing,
            losses: Losses::default(),
        }
    }

    /// Writes this choice of several; neither token counts nor `[DONE]` follow it. When all are written, end the
    /// stream with [`ChatWriter::close`] of any of them.
    #[must_use]
    pub fn with_choice(mut self, choice: u32) -> Self {
        self.choice = choice;
        self.closing = Closing::Elsewhere;
        self
    }

    /// Ends a stream of several choices: the token counts of all together, if the client asked for them, then
    /// `[DONE]`.
    pub fn close(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        if let Some(usage) = usage.filter(|_| self.wants_usage() && !self.opening.is_empty()) {
            self.usage_chunk(usage, out);
        }
        write_data(b"[DONE]", out);
    }

    /// Asked for in a stream. Written for a request that was not for a stream, the stream has to tell everything.
    fn wants_usage(&self) -> bool {
        match self.context.request.delivery {
            Delivery::Whole | Delivery::Stream(UsageReport::Included) => true,
            Delivery::Stream(UsageReport::Default | UsageReport::Omitted) => false,
        }
    }

    fn start(&mut self, head: &ReplyHead, out: &mut Vec<u8>) {
        self.origin = Origin::of(&head.extras);
        let opening = Opening {
            id: reply::written_id(head, &self.context),
            object: "chat.completion.chunk",
            created: head.created.unwrap_or(self.context.now),
            model: head.model.as_ref().unwrap_or(&self.context.request.model).as_str(),
        };
        self.opening = json(&opening);
        self.opening.pop();
        // T22: the first chunk has the role.
        let extra = head.extras.write(ID, "", &mut self.losses);
        self.chunk(
            r#"{"role":"assistant","content":""}"#,
            &Ending { finish_reason: None, extra: Fields::new() },
            &extra,
            out,
        );
    }

    /// Any chunk with a choice; deltas of text take the shorter way of [`ChatWriter::text_delta`].
    fn chunk(&self, delta: &str, ending: &Ending<'_>, extra: &Fields, out: &mut Vec<u8>) {
        let mut data = self.opening.clone();
        data.extend_from_slice(b",\"choices\":[{\"index\":");
        data.extend_from_slice(self.choice.to_string().as_bytes());
        data.extend_from_slice(b",\"delta\":");
        data.extend_from_slice(delta.as_bytes());
        data.push(b',');
        data.extend_from_slice(inner(&json(ending)));
        data.extend_from_slice(b"}]");
        push_fields(extra, &mut data);
        data.push(b'}');
        write_data(&data, out);
    }

    /// The hot path: `before` text `after`, the text escaped straight into the frame.
    fn text_delta(&self, before: &str, text: &str, after: &str, out: &mut Vec<u8>) {
        out.reserve(self.opening.len() + text.len() + 128);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(b",\"choices\":[{\"index\":");
        push_number(self.choice, out);
        out.extend_from_slice(b",\"delta\":");
        out.extend_from_slice(before.as_bytes());
        push_text(text, out);
        out.extend_from_slice(after.as_bytes());
        out.extend_from_slice(b",\"finish_reason\":null}]}\n\n");
    }

    fn block(&mut self, start: BlockStart, out: &mut Vec<u8>) {
        self.open = match start {
            BlockStart::Text => {
                // Text after a call is another paragraph; a host of this dialect has said where it wants one.
                if self.said == Said::TextThenCall && self.origin == Origin::Foreign {
                    self.text_delta("{\"content\":", PARAGRAPH, "}", out);
                }
                self.said = Said::Text;
                Open::Text
            }
            BlockStart::Refusal => Open::Refusal,
            BlockStart::Reasoning(extras) => {
                self.reasoning = ReasoningForm::of(&extras);
                Open::Reasoning { paragraphs: 0, wrote: Wrote::Nothing }
            }
            BlockStart::ToolCall { id, name, kind } => {
                if self.said == Said::Text {
                    self.said = Said::TextThenCall;
                }
                self.begin_call(id.as_str(), name.as_str(), kind, out)
            }
            BlockStart::Opaque(opaque) => {
                if let Some(fields) = opaque.write(ID, "message", &mut self.losses) {
                    let part = String::from_utf8(json(fields)).unwrap_or_default();
                    self.plain_chunk(&format!("{{\"content\":[{part}]}}"), out);
                }
                Open::Nothing
            }
        };
    }

    fn begin_call(&mut self, id: &str, name: &str, kind: CallKind, out: &mut Vec<u8>) -> Open {
        let index = self.begun_calls;
        self.begun_calls += 1;
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
                return Open::Unsaid;
            }
        };
        self.plain_chunk(&delta, out);
        Open::Call { kind, wrote: Wrote::Nothing }
    }

    fn plain_chunk(&self, delta: &str, out: &mut Vec<u8>) {
        self.chunk(delta, &Ending { finish_reason: None, extra: Fields::new() }, &Fields::new(), out);
    }

    fn delta(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match (&mut self.open, delta) {
            (Open::Text, Delta::Text(text)) => self.text_delta("{\"content\":", text, "}", out),
            (Open::Refusal, Delta::Text(text)) => self.text_delta("{\"refusal\":", text, "}", out),
            (Open::Reasoning { wrote, .. }, Delta::Text(text)) => {
                *wrote = Wrote::Something;
                self.reasoning_delta(text, out);
            }
            (Open::Reasoning { paragraphs, wrote }, Delta::Paragraph(_)) => {
                *paragraphs += 1;
                if *wrote == Wrote::Something {
                    self.reasoning_delta(PARAGRAPH, out);
                }
            }
            (Open::Call { wrote, .. }, Delta::Arguments(text)) => {
                *wrote = Wrote::Something;
                self.input_delta(text, out);
            }
            // The grammar allows no other pairs; the unsaid call is reported.
            (_, Delta::Text(_) | Delta::Paragraph(_) | Delta::Arguments(_)) => {}
        }
    }

    fn reasoning_delta(&self, text: &str, out: &mut Vec<u8>) {
        match self.reasoning {
            ReasoningForm::Content => self.text_delta("{\"reasoning_content\":", text, "}", out),
            ReasoningForm::Reasoning => self.text_delta("{\"reasoning\":", text, "}", out),
            ReasoningForm::Both => {
                let before = format!("{{\"reasoning_content\":{},\"reasoning\":", quoted(text));
                self.text_delta(&before, text, "}", out);
            }
            ReasoningForm::Part => {
                let before =
                    "{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":";
                self.text_delta(before, text, "}]}]}", out);
            }
        }
    }

    fn input_delta(&self, text: &str, out: &mut Vec<u8>) {
        let Open::Call { kind, .. } = self.open else { return };
        let index = self.begun_calls.saturating_sub(1);
        let (before, after) = match (self.calls, kind) {
            (CallForm::Tools, CallKind::Function) => {
                (format!("{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":"), "}}]}")
            }
            (CallForm::Tools, CallKind::Custom) => {
                (format!("{{\"tool_calls\":[{{\"index\":{index},\"custom\":{{\"input\":"), "}}]}")
            }
            (CallForm::Legacy, _) => ("{\"function_call\":{\"arguments\":".to_owned(), "}}"),
        };
        self.text_delta(&before, text, after, out);
    }

    fn end_block(&mut self, end: &BlockEnd, out: &mut Vec<u8>) {
        if end.seal.is_some() {
            self.losses.add("message.reasoning.seal", "openai-chat has no place for a proof of reasoning");
        }
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        let fields = end.extras.write(ID, "message", &mut self.losses);
        let Open::Call { kind, wrote } = open else { return };
        // T9: a call without arguments is a call with none.
        if wrote == Wrote::Nothing && kind == CallKind::Function {
            self.open = Open::Call { kind, wrote };
            self.input_delta("{}", out);
            self.open = Open::Nothing;
        }
        if !fields.is_empty() && self.calls == CallForm::Tools {
            let mut call = Fields::from_iter([("index".to_owned(), Value::from(self.begun_calls - 1))]);
            call.extend(fields);
            let call = String::from_utf8(json(&call)).unwrap_or_default();
            self.plain_chunk(&format!("{{\"tool_calls\":[{call}]}}"), out);
        }
    }

    fn finish(&mut self, finish: &Finish, out: &mut Vec<u8>) {
        let FinishFields { choice, message, reply: mut late } =
            reply::finish_fields(&finish.extras, &mut self.losses);
        let word = reply::write_stop(finish, self.calls, &mut self.losses);
        let closes = self.closing == Closing::WithChoice;
        let usage = finish.usage.as_ref().filter(|_| closes);
        // A host that counts unasked does so in its last chunk, and so do we: a chunk without choices is only for
        // clients that asked for it.
        let is_unasked = !self.wants_usage()
            && self.origin == Origin::Native
            && self.context.request.delivery != Delivery::Stream(UsageReport::Omitted);
        if let Some(usage) = usage.filter(|_| is_unasked) {
            let usage = serde_json::to_value(UsageOut::new(usage, &mut self.losses)).unwrap_or_default();
            late.insert("usage".to_owned(), usage);
        }
        let delta = String::from_utf8(json(&message)).unwrap_or_default();
        self.chunk(&delta, &Ending { finish_reason: Some(word), extra: choice }, &late, out);
        if closes {
            self.close(usage, out);
        }
    }

    // T13
    fn usage_chunk(&mut self, usage: &Usage, out: &mut Vec<u8>) {
        let mut data = self.opening.clone();
        data.extend_from_slice(b",\"choices\":[],\"usage\":");
        data.extend_from_slice(&json(&UsageOut::new(usage, &mut self.losses)));
        data.push(b'}');
        write_data(&data, out);
    }
}

impl ReplyWriter for ChatWriter {
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        match event {
            TurnEvent::Started(head) => self.start(&head, out),
            TurnEvent::BlockStarted(start) => self.block(start, out),
            TurnEvent::BlockDelta(delta) => self.delta(&delta, out),
            TurnEvent::BlockFinished(end) => self.end_block(&end, out),
            // Told once, in the end.
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

/// What every chunk begins with.
#[derive(Serialize)]
struct Opening<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
}

/// What stands beside a delta.
#[derive(Serialize)]
struct Ending<'a> {
    finish_reason: Option<&'a str>,
    #[serde(flatten)]
    extra: Fields,
}
