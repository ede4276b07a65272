//! What one process goes through: opened, fed with history, asked, waiting for the client, idle. Lines in, lines and
//! happenings out; nothing here waits for anything.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolgate_dialect::claude_stream_json::write::{self, Opening};
use toolgate_dialect::claude_stream_json::{
    AgentTools, Ask, HistoryLine, Line, Outcome, PermissionAsk, RequestId, Script, ServerAnswer, ToolServer,
};
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::reply::Fold;
use toolgate_model::{AssistantMessage, Extras, GrammarError, Message, StopReason, TurnError, TurnEvent};
use uuid::Uuid;

use super::failure;
use super::handoff::{CallResult, Handoff};
use super::outbox::Outbox;
use super::reply::{JoinedReply, Step};
use crate::turn::Batch;

/// One turn for a process.
pub(super) struct Job {
    pub(super) turn: Uuid,
    pub(super) session: String,
    pub(super) work: Work,
    pub(super) reply: JoinedReply,
    pub(super) lineage: Lineage,
    pub(super) outbox: Outbox,
}

/// What there is to do.
pub(super) enum Work {
    /// Nothing is known yet: everything is told.
    Fresh(Box<Beginning>),
    /// The turn before is over: what is new is told.
    Continue { script: Script },
    /// The turn goes on with the client's results (A7).
    Results(Vec<(String, CallResult)>),
}

/// Everything a fresh process is told.
pub(super) struct Beginning {
    pub(super) opening: Opening,
    pub(super) model: Option<String>,
    pub(super) tools: AgentTools,
    pub(super) script: Script,
}

/// What the outside must know.
pub(super) enum Happening {
    /// The model answers.
    FirstEvent,
    /// The reply is complete; to be told to the client after it is noted where the process stands.
    Settled { standing: Settled, last: Batch, outbox: Outbox },
    /// The process is of no use any more; its turn has failed with this.
    Failed(TurnError),
    /// Somebody must decide.
    Asked { id: RequestId, ask: PermissionAsk },
    /// The decision is no longer wanted.
    Withdrawn(RequestId),
}

/// Where a process stands between two requests.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    /// What was said so far, the reply included.
    pub(super) after: PrefixHash,
    /// The calls it waits for; none where the turn is over.
    pub(super) calls: Vec<String>,
}

/// The state of a process.
#[derive(Default)]
pub(super) struct Core {
    server: ToolServer,
    opened: Opened,
    history: VecDeque<HistoryLine>,
    /// A quiet line is on its way; the next must wait for it.
    unconfirmed: bool,
    last: Option<Value>,
    question: Question,
    turn: Option<OpenTurn>,
    handoff: Handoff,
    lines: Vec<String>,
}

#[derive(Default, PartialEq)]
enum Opened {
    #[default]
    No,
    Asked(RequestId),
    Yes,
}

/// How far the question of the open turn has come.
#[derive(Default, PartialEq)]
enum Question {
    /// It waits for the history before it.
    #[default]
    Waiting,
    /// It is on its way.
    Sent,
    /// The program works on it.
    Taken,
}

struct OpenTurn {
    id: Uuid,
    session: String,
    reply: JoinedReply,
    fold: Fold,
    lineage: Lineage,
    outbox: Outbox,
}

impl Core {
    /// Begins a turn.
    pub(super) fn begin(&mut self, job: Job) {
        let Job { turn, session, work, reply, lineage, outbox } = job;
        match work {
            Work::Fresh(beginning) => {
                let Beginning { opening, model, tools, script } = *beginning;
                self.server = ToolServer::new(&tools);
                let id = fresh_id();
                self.lines.push(write::initialize(&id, &opening));
                self.opened = Opened::Asked(id);
                if let Some(model) = model {
                    self.lines.push(write::set_model(&fresh_id(), &model));
                }
                self.plan(script);
            }
            Work::Continue { script } => self.plan(script),
            Work::Results(results) => {
                self.lines.append(&mut self.handoff.deliver(results));
                self.question = Question::Sent;
            }
        }
        self.turn = Some(OpenTurn { id: turn, session, reply, fold: Fold::new(), lineage, outbox });
        self.advance();
    }

    /// Takes a line of the program.
    pub(super) fn line(&mut self, line: Line<'_>) -> Vec<Happening> {
        self.note_progress(&line);
        match line {
            Line::Event { event, parent: None } => return self.event(event),
            Line::Result(outcome) => return self.result(&outcome),
            Line::Request { id, ask } => return self.asked(id, ask).into_iter().collect(),
            Line::Response { id, outcome } => {
                if self.opened != Opened::Asked(id) {
                    return Vec::new();
                }
                if let Err(why) = outcome {
                    return vec![Happening::Failed(failure::refused_opening(&why))];
                }
                self.opened = Opened::Yes;
                self.advance();
            }
            Line::Withdrawn(id) => return vec![Happening::Withdrawn(id)],
            Line::Event { parent: Some(_), .. }
            | Line::Assistant { .. }
            | Line::User { .. }
            | Line::Init { .. }
            | Line::Other => {}
        }
        Vec::new()
    }

    /// Lines to write, in order.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Adds a line to write.
    pub(super) fn write(&mut self, line: String) {
        self.lines.push(line);
    }

    /// The client's end of the open turn.
    pub(super) fn outbox(&self) -> Option<&Outbox> {
        self.turn.as_ref().map(|turn| &turn.outbox)
    }

    /// Which turn is open, in which session.
    pub(super) fn place(&self) -> Option<(Uuid, String)> {
        self.turn.as_ref().map(|turn| (turn.id, turn.session.clone()))
    }

    /// Takes the open turn's end to tell a failure.
    pub(super) fn abandon(&mut self) -> Option<Outbox> {
        self.turn.take().map(|turn| turn.outbox)
    }

    /// The program tells what it does before it asks its model: until then, a turn that fails can be tried again
    /// elsewhere and the model is still asked once.
    fn note_progress(&mut self, line: &Line<'_>) {
        let works = matches!(
            line,
            Line::Init { .. }
                | Line::User { .. }
                | Line::Event { .. }
                | Line::Assistant { .. }
                | Line::Result(_)
        );
        if works && self.question == Question::Sent {
            self.question = Question::Taken;
            if let Some(turn) = &self.turn {
                turn.outbox.asking();
            }
        }
    }

    fn plan(&mut self, script: Script) {
        self.question = Question::Waiting;
        self.history = script.history.into();
        self.last = Some(script.last);
    }

    /// Sends what may be sent now: history line by line, then the question. The program asks for our tools before it
    /// asks its model, so nothing has to wait for that.
    fn advance(&mut self) {
        while self.opened == Opened::Yes && !self.unconfirmed {
            match self.history.pop_front() {
                Some(HistoryLine::Assistant(content)) => {
                    self.lines.push(write::assistant(&fresh_uuid(), HISTORY_MODEL, &content));
                }
                Some(HistoryLine::User(content)) => {
                    self.lines.push(write::quiet_user(&fresh_uuid(), &content));
                    self.unconfirmed = true;
                }
                None => {
                    let Some(last) = self.last.take() else { return };
                    self.lines.push(write::user(&fresh_uuid(), &last));
                    self.question = Question::Sent;
                    return;
                }
            }
        }
    }

    fn event(&mut self, event: &str) -> Vec<Happening> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        let mut batch = Batch::default();
        let was_silent = turn.reply.is_silent();
        let steps = match turn.reply.event(event, &mut batch) {
            Ok(steps) => steps,
            Err(error) => return vec![Happening::Failed(error)],
        };
        let mut handed_off = false;
        for step in steps {
            match step {
                Step::Begun => self.handoff.reset(),
                Step::Called(call) => self.handoff.called(&call),
                Step::Complete => {}
                Step::HandedOff => handed_off = true,
            }
        }
        let mut happenings = Vec::new();
        if was_silent && !turn.reply.is_silent() {
            happenings.push(Happening::FirstEvent);
        }
        if handed_off {
            happenings.extend(self.settle(batch, None));
        } else if let Err(error) = turn.note(&batch) {
            happenings.push(Happening::Failed(failure::out_of_order(error)));
        } else {
            turn.outbox.send(batch);
        }
        happenings
    }

    fn result(&mut self, outcome: &Outcome) -> Vec<Happening> {
        if self.unconfirmed && outcome.turns == 0 {
            self.unconfirmed = false;
            self.advance();
            return Vec::new();
        }
        let Some(turn) = &mut self.turn else {
            // The turn that waited for the client is over without it.
            return vec![Happening::Failed(failure::ended_early(outcome))];
        };
        let ending = match failure::of(outcome) {
            Ok(ending) => ending,
            Err(error) => return vec![Happening::Failed(error)],
        };
        let mut batch = Batch::default();
        if let Some(structured) = &outcome.structured {
            turn.reply.say(&structured.to_string(), &mut batch);
        } else if turn.reply.is_silent() {
            turn.reply.say(outcome.text.as_deref().unwrap_or_default(), &mut batch);
        }
        let stop = match (ending, &outcome.structured) {
            (failure::Ending::Paused, _) => Some(StopReason::PauseTurn),
            (failure::Ending::Complete, Some(_)) => Some(StopReason::EndTurn),
            (failure::Ending::Complete, None) => None,
        };
        self.settle(batch, stop)
    }

    /// The reply is complete.
    fn settle(&mut self, mut batch: Batch, stop: Option<StopReason>) -> Vec<Happening> {
        let Some(mut turn) = self.turn.take() else { return Vec::new() };
        let finish = turn.reply.finish(stop);
        batch.events.push(finish);
        let reply = turn.note(&batch).and_then(|()| turn.fold.end());
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let error = failure::out_of_order(error);
                turn.outbox.fail(error.clone());
                return vec![Happening::Failed(error)];
            }
        };
        let said = Message::Assistant(AssistantMessage { content: reply.blocks, extras: Extras::NONE });
        let standing = Settled { after: turn.lineage.then(&said), calls: self.handoff.calls().to_vec() };
        vec![Happening::Settled { standing, last: batch, outbox: turn.outbox }]
    }

    fn asked(&mut self, id: RequestId, ask: Ask) -> Option<Happening> {
        match ask {
            Ask::ToolServer { server: _, message } => match self.server.answer(&message) {
                ServerAnswer::Now(answer) => self.lines.push(write::answer_tool_server(&id, &answer)),
                ServerAnswer::Held(call) => self.lines.extend(self.handoff.asked(id, call)),
            },
            Ask::Permission(ask) => return Some(Happening::Asked { id, ask }),
            Ask::Elicitation => self.lines.push(write::answer(&id, &json!({ "action": "decline" }))),
            Ask::Hook => self.lines.push(write::answer(&id, &json!({}))),
            // The program asks for silence where a dialog is not known.
            Ask::Dialog => {}
            Ask::Unknown(name) => {
                self.lines.push(write::refuse(&id, &format!("toolgate does not know `{name}`")));
            }
        }
        None
    }
}

impl OpenTurn {
    fn note(&mut self, batch: &Batch) -> Result<(), GrammarError> {
        batch.events.iter().try_for_each(|event: &TurnEvent| self.fold.event(event.clone()))
    }
}

/// What history lines name as their model: the program wants some name, and no host ever sees it.
const HISTORY_MODEL: &str = "claude";

fn fresh_id() -> RequestId {
    RequestId::new(fresh_uuid())
}

fn fresh_uuid() -> String {
    Uuid::now_v7().to_string()
}
