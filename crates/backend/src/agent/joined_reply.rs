//! The reply of one turn, joined from all messages the model wrote in it. It contains only what the client may see,
//! with tools under the client's names.

use toolgate_dialect::claude_stream_json::{AgentTools, TurnOutcome};
use toolgate_dialect::frame::SseFrame;
use toolgate_dialect::{ReplyReader, UpstreamDialect};
use toolgate_model::{
    BlockEnd, BlockStart, Delta, Extras, Finish, ReplyHead, StopReason, TurnError, TurnEvent, Usage,
};

use super::errors::{self, Completion};
use super::observer::TurnWatch;
use crate::turn::Batch;
use toolgate_dialect::Translation;

/// Joins the messages of a turn into one reply.
pub(super) struct JoinedReply {
    dialect: &'static dyn UpstreamDialect,
    tools: AgentTools,
    translation: Translation,
    /// The reader of the open message.
    reader: Option<Box<dyn ReplyReader>>,
    state: ReplyState,
    /// Whether the client has seen something of the open message.
    shown: Shown,
    /// True while the open block is a built-in tool call, which the client does not see (A6).
    hidden: bool,
    prose: Prose,
    /// The texts of an earlier, interrupted run of this turn. The client gets them again at the start.
    earlier_texts: Vec<String>,
    /// The client calls in the open message.
    calls: Vec<String>,
    usage: Option<Usage>,
    last: Finish,
}

/// Whether the model's text is part of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prose {
    /// It is.
    Shown,
    /// The answer must be a JSON object that matches a schema, and text around it would break it.
    Hidden,
}

#[derive(PartialEq)]
enum ReplyState {
    Before,
    Started,
}

#[derive(PartialEq)]
enum Shown {
    Nothing,
    Something,
}

/// The end of a message. 2.1.197 leaves it out when the message has used up the budget.
const MESSAGE_STOP: &str = r#"{"type":"message_stop"}"#;

/// What an event means for the turn.
pub(super) enum ReplyStep {
    /// The model starts a message.
    MessageStarted,
    /// The model starts a call of a client tool.
    ClientCall(String),
    /// The message is complete, and the program continues.
    MessageComplete,
    /// The message is complete and has calls for the client, so the reply is complete too (B2).
    HandedOff,
}

impl JoinedReply {
    pub(super) fn new(
        dialect: &'static dyn UpstreamDialect,
        tools: AgentTools,
        translation: Translation,
        prose: Prose,
        earlier_texts: Vec<String>,
    ) -> Self {
        Self {
            dialect,
            tools,
            translation,
            prose,
            earlier_texts,
            reader: None,
            state: ReplyState::Before,
            shown: Shown::Nothing,
            hidden: false,
            calls: Vec::new(),
            usage: None,
            last: Finish::default(),
        }
    }

    /// Handles one event of the model's stream.
    pub(super) fn event(
        &mut self,
        event: &str,
        watch: &mut TurnWatch,
        out: &mut Batch,
    ) -> Result<Vec<ReplyStep>, TurnError> {
        let frame = SseFrame { event: "", data: event };
        let mut steps = Vec::new();
        if is_message_start(event) {
            self.open_message()?;
            steps.push(ReplyStep::MessageStarted);
        }
        let Some(reader) = &mut self.reader else { return Ok(steps) };
        let mut read = Vec::new();
        reader.frame(frame, &mut read)?;
        out.losses.append(reader.losses());
        let mut shown = Vec::new();
        for event in read {
            watch.event(&event, &self.tools);
            if let Some(step) = self.take(event, &mut shown) {
                steps.push(step);
            }
        }
        self.translation.restore(&mut shown);
        if !shown.is_empty() {
            self.shown = Shown::Something;
        }
        out.events.append(&mut shown);
        Ok(steps)
    }

    /// Adds the part of the answer that only the program's result has: the object that was asked for, or an answer of
    /// the program itself.
    pub(super) fn add_outcome(
        &mut self,
        outcome: &TurnOutcome,
        completion: Completion,
        out: &mut Batch,
    ) -> Result<(), TurnError> {
        let text = outcome.text.as_deref().unwrap_or_default();
        match (&outcome.structured, self.prose) {
            (Some(object), _) => self.push_text(object.to_string(), out),
            (None, Prose::Hidden) if text.is_empty() && completion == Completion::Complete => {
                return Err(errors::no_structured_answer());
            }
            // Asked for an object, a model may answer in text all the same.
            (None, Prose::Hidden) => self.push_text(text.to_owned(), out),
            (None, Prose::Shown) if self.is_empty() => self.push_text(text.to_owned(), out),
            (None, Prose::Shown) => {}
        }
        Ok(())
    }

    /// Adds a text block that did not come from the model's stream.
    fn push_text(&mut self, text: String, out: &mut Batch) {
        self.start(ReplyHead::default(), &mut out.events);
        push_text_block(text, &mut out.events);
    }

    /// True before the reply has started.
    pub(super) fn is_empty(&self) -> bool {
        self.state == ReplyState::Before
    }

    /// The usage of the complete messages so far.
    pub(super) fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Sets the cost of the turn in dollars, if known.
    pub(super) fn set_cost(&mut self, dollars: Option<f64>) {
        if let Some(usage) = &mut self.usage {
            usage.cost_usd = dollars;
        }
    }

    /// Completes the reply.
    pub(super) fn finish(&mut self, stop: Option<StopReason>, watch: &mut TurnWatch) -> TurnEvent {
        if self.reader.is_some()
            && let Err(error) = self.event(MESSAGE_STOP, watch, &mut Batch::default())
        {
            tracing::debug!(%error, "the last message of an agent's turn is incomplete");
        }
        let mut finish = std::mem::take(&mut self.last);
        if let Some(stop) = stop {
            finish.stop = stop;
        }
        finish.usage = self.usage.take();
        TurnEvent::Finished(finish)
    }

    /// Starts a message. If the previous one is incomplete, the API connection broke and the program is retrying; what
    /// the client has already seen cannot be taken back.
    fn open_message(&mut self) -> Result<(), TurnError> {
        if self.reader.is_some() && self.shown == Shown::Something {
            return Err(TurnError::upstream(
                "the connection to the model's API broke during the agent's answer; send the request again",
            ));
        }
        self.reader = Some(self.dialect.reply_reader());
        self.shown = Shown::Nothing;
        self.hidden = false;
        self.calls.clear();
        Ok(())
    }

    fn take(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) -> Option<ReplyStep> {
        match event {
            TurnEvent::Started(head) => self.start(head, out),
            TurnEvent::BlockStarted(BlockStart::ToolCall { id, name, kind }) => {
                let client_name = self.tools.client_name(name.as_str()).map(str::to_owned);
                self.hidden = client_name.is_none();
                if let Some(client_name) = client_name {
                    let call = id.as_str().to_owned();
                    self.calls.push(call.clone());
                    out.push(TurnEvent::BlockStarted(BlockStart::ToolCall {
                        id,
                        name: client_name.into(),
                        kind,
                    }));
                    return Some(ReplyStep::ClientCall(call));
                }
            }
            TurnEvent::BlockStarted(start) => {
                self.hidden = self.prose == Prose::Hidden && start == BlockStart::Text;
                if !self.hidden {
                    out.push(TurnEvent::BlockStarted(start));
                }
            }
            TurnEvent::BlockDelta(_) | TurnEvent::BlockFinished(_) if self.hidden => {}
            TurnEvent::BlockDelta(delta) => out.push(TurnEvent::BlockDelta(delta)),
            TurnEvent::BlockFinished(BlockEnd { seal, extras: _ }) => {
                // Extra fields such as `caller` are meant for the program; no client expects them.
                out.push(TurnEvent::BlockFinished(BlockEnd { seal, extras: Extras::NONE }));
            }
            // Usage is reported once, summed up, at the end: clients take a value here for the total.
            TurnEvent::Usage(_) => {}
            TurnEvent::Finished(finish) => return Some(self.complete(finish)),
        }
        None
    }

    fn start(&mut self, head: ReplyHead, out: &mut Vec<TurnEvent>) {
        if self.state == ReplyState::Before {
            self.state = ReplyState::Started;
            out.push(TurnEvent::Started(ReplyHead { extras: Extras::NONE, ..head }));
            self.earlier_texts.drain(..).for_each(|text| push_text_block(text, out));
        }
    }

    fn complete(&mut self, finish: Finish) -> ReplyStep {
        self.reader = None;
        // A8: usage is the sum over all messages.
        let spent = finish.usage.map(|usage| Usage { extras: Extras::NONE, ..usage });
        self.usage = match (self.usage.take(), spent) {
            (Some(before), Some(spent)) => Some(before.plus(&spent)),
            (before, spent) => before.or(spent),
        };
        self.last = Finish { stop: finish.stop, stop_sequence: finish.stop_sequence, ..Finish::default() };
        if self.calls.is_empty() { ReplyStep::MessageComplete } else { ReplyStep::HandedOff }
    }
}

fn push_text_block(text: String, out: &mut Vec<TurnEvent>) {
    if !text.is_empty() {
        out.push(TurnEvent::BlockStarted(BlockStart::Text));
        out.push(TurnEvent::BlockDelta(Delta::Text(text)));
        out.push(TurnEvent::BlockFinished(BlockEnd::default()));
    }
}

fn is_message_start(event: &str) -> bool {
    // Almost every event starts with its type; only the others are parsed.
    const USUAL: &str = r#"{"type":"message_start""#;
    if event.starts_with(USUAL) {
        return true;
    }
    !event.starts_with(r#"{"type":"#)
        && serde_json::from_str::<serde_json::Value>(event)
            .is_ok_and(|event| event["type"] == "message_start")
}
