//! What one process goes through: opened, fed with history, asked, waiting for the client, idle. Lines in, lines and
//! happenings out; nothing here waits for anything.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_dialect::claude_stream_json::write::{self, Opening};
use toolgate_dialect::claude_stream_json::{
    AgentTools, Ask, HistoryLine, Line, Outcome, RequestId, Script, ServerAnswer,
};
use toolgate_model::lineage::Lineage;
use toolgate_model::reply::Fold;
use toolgate_model::{AssistantMessage, Extras, GrammarError, Message, StopReason, TurnEvent};
use uuid::Uuid;

use super::charges::Charges;
use super::failure::{self, Ending};
use super::handoff::Handoff;
use super::job::{Beginning, Happening, Job, Kept, Notes, Settled, Work};
use super::opening::Opened;
use super::outbox::Outbox;
use super::records::{self, AgentRecord, Done};
use super::reply::{JoinedReply, Step};
use super::session::Talk;
use super::steps::{OwnWork, Steps, Told};
use crate::turn::Batch;

/// The state of a process.
#[derive(Default)]
pub(super) struct Core {
    tools: AgentTools,
    opened: Opened,
    history: VecDeque<HistoryLine>,
    /// A quiet line is on its way; the next must wait for it.
    unconfirmed: bool,
    last: Option<Value>,
    question: Question,
    turn: Option<OpenTurn>,
    /// The last turn's id and session.
    place: (Uuid, String),
    handoff: Handoff,
    charges: Charges,
    /// The turn that waits for its client, while built-in tools may still run.
    held: Option<(Steps, Done, Kept)>,
    lines: Vec<String>,
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
    talk: Talk,
    reply: JoinedReply,
    fold: Fold,
    lineage: Lineage,
    notes: Notes,
    steps: Steps,
    outbox: Outbox,
}

impl Core {
    pub(super) fn new(charges: Charges) -> Self {
        Self { charges, ..Self::default() }
    }

    /// Tells all that comes before the first line of a conversation, where it was not told ahead.
    pub(super) fn open(&mut self, opening: &Opening, tools: AgentTools) {
        self.lines.extend(self.opened.tell(opening, &tools));
        self.tools = tools;
    }

    /// Begins a turn.
    pub(super) fn begin(&mut self, job: Job) {
        let Job { turn, talk, work, reply, lineage, notes, outbox } = job;
        match work {
            Work::Fresh(beginning) => {
                let Beginning { opening, tools, script } = *beginning;
                self.open(&opening, tools);
                self.plan(script);
            }
            Work::Continue { script } => self.plan(script),
            Work::Results(results) => {
                self.lines.append(&mut self.handoff.deliver(results));
                self.question = Question::Sent;
            }
        }
        self.held = None;
        let steps = Steps::after(notes.earlier.clone());
        self.place = (turn, talk.session.clone());
        self.turn = Some(OpenTurn { talk, reply, fold: Fold::new(), lineage, notes, steps, outbox });
        self.advance();
    }

    /// Takes a line of the program.
    pub(super) fn line(&mut self, line: Line<'_>) -> Vec<Happening> {
        self.note_progress(&line);
        match line {
            Line::Event { event, parent: None } => return self.event(event),
            Line::Result(outcome) => return self.result(&outcome),
            Line::Request { id, ask } => return self.asked(id, ask).into_iter().collect(),
            Line::Response { id, outcome } => match self.opened.answered(id, outcome) {
                Ok(()) => self.advance(),
                Err(error) => return vec![Happening::Failed(error)],
            },
            Line::Withdrawn(id) => return vec![Happening::Withdrawn(id)],
            Line::Assistant { message, parent: None } => {
                if let Some(turn) = &mut self.turn {
                    let told = turn.steps.assistant(&message, &self.tools);
                    return turn.learned(told);
                }
            }
            Line::User { message, parent: None } => return self.results(&message),
            Line::Event { parent: Some(_), .. }
            | Line::Assistant { parent: Some(_), .. }
            | Line::User { parent: Some(_), .. }
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

    /// The last turn and its session: a question may come when the client has its reply already.
    pub(super) fn place(&self) -> (Uuid, String) {
        self.place.clone()
    }

    /// What the program still does by itself while it waits for the client.
    pub(super) fn own_work(&self) -> OwnWork {
        let held = self.held.as_ref();
        held.map_or(OwnWork::None, |(steps, ..)| steps.own_work(self.handoff.calls()))
    }

    /// What was done of a turn that ends too soon, where it must not be done again.
    pub(super) fn cut_short(&self) -> Option<Kept> {
        self.turn.as_ref()?.cut_short()
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

    /// Results of the program's own tools. Those of the client's are in the client's history.
    fn results(&mut self, message: &Value) -> Vec<Happening> {
        let theirs = self.handoff.calls();
        if let Some(turn) = &mut self.turn {
            let told = turn.steps.user(message, theirs);
            return turn.learned(told);
        }
        if let Some((steps, done, kept)) = &mut self.held
            && steps.user(message, theirs) == Told::OwnWork
        {
            done.steps = steps.unseen();
            kept.record.steps = done.write();
            return vec![Happening::Learned(kept.clone())];
        }
        Vec::new()
    }

    fn plan(&mut self, script: Script) {
        self.question = Question::Waiting;
        self.history = script.history.into();
        self.last = Some(script.last);
    }

    /// Sends what may be sent now: history line by line, then the question. The program asks for our tools before it
    /// asks its model, so nothing has to wait for that.
    fn advance(&mut self) {
        while self.opened.is_complete() && !self.unconfirmed {
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
        turn.reply.costs(self.charges.since_the_last(outcome.cost_usd));
        let mut batch = Batch::default();
        if let Some(structured) = &outcome.structured {
            turn.reply.say(&structured.to_string(), &mut batch);
        } else if turn.reply.is_silent() {
            turn.reply.say(outcome.text.as_deref().unwrap_or_default(), &mut batch);
        }
        let stop = match (ending, &outcome.structured) {
            (Ending::Paused, _) => Some(StopReason::PauseTurn),
            (Ending::Complete, Some(_)) => Some(StopReason::EndTurn),
            (Ending::Complete, None) => None,
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
        let said =
            Message::Assistant(AssistantMessage { content: reply.blocks.clone(), extras: Extras::NONE });
        let after = turn.lineage.then(&said);
        let OpenTurn { talk, notes, steps, outbox, .. } = turn;
        let written = records::write_reply(&reply, &notes.request);
        let done = Done { steps: steps.unseen() };
        let record = AgentRecord {
            key: notes.key,
            after: Some(after),
            session: talk.session.clone(),
            steps: done.write(),
            reply: Some(written.clone()),
        };
        let talk = talk.kept(&notes.caller, &written.to_value()["content"]);
        let kept = Kept { caller: notes.caller, record };
        self.held = Some((steps, done, kept.clone()));
        let standing = Settled { after, calls: self.handoff.calls().to_vec() };
        vec![Happening::Settled { standing, last: batch, outbox, record: kept, talk, alone: notes.alone }]
    }

    fn asked(&mut self, id: RequestId, ask: Ask) -> Option<Happening> {
        match ask {
            Ask::ToolServer { server: _, message } => match self.opened.server().answer(&message) {
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

    /// What is to be remembered of a message of the program.
    fn learned(&self, told: Told) -> Vec<Happening> {
        let record = match told {
            Told::OwnWork => self.cut_short(),
            Told::Nothing => None,
        };
        record.map(Happening::Learned).into_iter().collect()
    }

    /// The record of the turn as if it ended here.
    fn cut_short(&self) -> Option<Kept> {
        let steps = self.steps.unseen();
        if steps.is_empty() {
            return None;
        }
        let record = AgentRecord {
            key: self.notes.key,
            after: None,
            session: self.talk.session.clone(),
            steps: Done { steps }.write(),
            reply: None,
        };
        Some(Kept { caller: Arc::clone(&self.notes.caller), record })
    }
}

/// What history lines name as their model: the program wants some name, and no host ever sees it.
const HISTORY_MODEL: &str = "claude";

fn fresh_uuid() -> String {
    Uuid::now_v7().to_string()
}
