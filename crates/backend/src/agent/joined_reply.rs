//! The reply of one turn, joined from all messages the model wrote for it: what the client may see of them, in the
//! client's words.

use toolgate_dialect::claude_stream_json::AgentTools;
use toolgate_dialect::frame::SseFrame;
use toolgate_dialect::{ReplyReader, UpstreamDialect};
use toolgate_model::{
    BlockEnd, BlockStart, Delta, Extras, Finish, ReplyHead, StopReason, TurnError, TurnEvent, Usage,
};

use crate::http::ClientCalls;
use crate::turn::Batch;

/// Joins the messages of a turn.
pub(super) struct JoinedReply {
    dialect: &'static dyn UpstreamDialect,
    tools: AgentTools,
    client_calls: ClientCalls,
    /// Reads the message that is open.
    reader: Option<Box<dyn ReplyReader>>,
    progress: Progress,
    /// What the open message has shown to the client.
    shown: Shown,
    /// The open block is a call of the program's own tools, which the client does not see (A6).
    hidden: bool,
    prose: Prose,
    /// What was said of this reply before it was cut short: the client gets all of it from the start.
    earlier_texts: Vec<String>,
    /// Calls of the client's tools in the open message.
    calls: Vec<String>,
    usage: Option<Usage>,
    last: Finish,
}

/// Whether the model's own words are part of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prose {
    /// They are.
    Shown,
    /// The answer is an object by a schema, and words around it would spoil it.
    Hidden,
}

#[derive(PartialEq)]
enum Progress {
    Before,
    Started,
}

#[derive(PartialEq)]
enum Shown {
    Nothing,
    Something,
}

/// The end of a message. 2.1.197 leaves it out where the message has used up the budget.
const MESSAGE_STOP: &str = r#"{"type":"message_stop"}"#;

/// What an event means for the turn.
pub(super) enum ReplyStep {
    /// A message begins.
    MessageStarted,
    /// A call of the client's tools has begun.
    ClientCall(String),
    /// The message is complete, and it is the program's turn.
    MessageComplete,
    /// The message is complete and has calls for the client: the reply is complete too (B2).
    HandedOff,
}

impl JoinedReply {
    pub(super) fn new(
        dialect: &'static dyn UpstreamDialect,
        tools: AgentTools,
        client_calls: ClientCalls,
        prose: Prose,
        earlier_texts: Vec<String>,
    ) -> Self {
        Self {
            dialect,
            tools,
            client_calls,
            prose,
            earlier_texts,
            reader: None,
            progress: Progress::Before,
            shown: Shown::Nothing,
            hidden: false,
            calls: Vec::new(),
            usage: None,
            last: Finish::default(),
        }
    }

    /// Takes one event of the model's stream.
    pub(super) fn event(&mut self, event: &str, out: &mut Batch) -> Result<Vec<ReplyStep>, TurnError> {
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
            if let Some(step) = self.take(event, &mut shown) {
                steps.push(step);
            }
        }
        self.client_calls.restore(&mut shown);
        if !shown.is_empty() {
            self.shown = Shown::Something;
        }
        out.events.append(&mut shown);
        Ok(steps)
    }

    /// The program answered by itself, or nothing at all came: says so in a reply of its own.
    pub(super) fn push_text(&mut self, text: &str, out: &mut Batch) {
        self.start(ReplyHead::default(), &mut out.events);
        push_text_block(text.to_owned(), &mut out.events);
    }

    /// True before anything of the reply was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.progress == Progress::Before
    }

    /// What the turn costs in dollars, where that is known.
    pub(super) fn set_cost(&mut self, dollars: Option<f64>) {
        if let Some(usage) = &mut self.usage {
            usage.cost_usd = dollars;
        }
    }

    /// The end of the reply.
    pub(super) fn finish(&mut self, stop: Option<StopReason>) -> TurnEvent {
        if self.reader.is_some()
            && let Err(error) = self.event(MESSAGE_STOP, &mut Batch::default())
        {
            tracing::debug!(%error, "the last message of an agent's turn is not complete");
        }
        let mut finish = std::mem::take(&mut self.last);
        if let Some(stop) = stop {
            finish.stop = stop;
        }
        finish.usage = self.usage.take();
        TurnEvent::Finished(finish)
    }

    /// A message that begins before the one before it was complete: the model's host broke off and the program tries
    /// again. What the client has seen cannot be taken back.
    fn open_message(&mut self) -> Result<(), TurnError> {
        if self.reader.is_some() && self.shown == Shown::Something {
            return Err(TurnError::upstream(
                "the model's host broke off in the middle of the agent's answer; send the request again",
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
                // Extra fields are between the program and its host (`caller`): no client expects them.
                out.push(TurnEvent::BlockFinished(BlockEnd { seal, extras: Extras::NONE }));
            }
            // Sums are told at the end: clients take what comes here for the whole.
            TurnEvent::Usage(_) => {}
            TurnEvent::Finished(finish) => return Some(self.complete(finish)),
        }
        None
    }

    fn start(&mut self, head: ReplyHead, out: &mut Vec<TurnEvent>) {
        if self.progress == Progress::Before {
            self.progress = Progress::Started;
            out.push(TurnEvent::Started(ReplyHead { extras: Extras::NONE, ..head }));
            self.earlier_texts.drain(..).for_each(|text| push_text_block(text, out));
        }
    }

    fn complete(&mut self, finish: Finish) -> ReplyStep {
        self.reader = None;
        // A8: the sum over all messages.
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
    // Events are small objects that begin with their type; a longer look is taken only where that is not so.
    const USUAL: &str = r#"{"type":"message_start""#;
    if event.starts_with(USUAL) {
        return true;
    }
    !event.starts_with(r#"{"type":"#)
        && serde_json::from_str::<serde_json::Value>(event)
            .is_ok_and(|event| event["type"] == "message_start")
}
