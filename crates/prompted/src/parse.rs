//! The one-pass reader: text of a model in, prose, reasoning and calls out.
//!
//! ```text
//! Text ──trigger──▶ Calls ──<invoke>──▶ Invoke ⇄ Value
//!  │ ▲                ▲                    │
//!  ▼ │                └─────</invoke>──────┘──prose──▶ Tail
//! Think, Fenced
//! ```
//!
//! Each state decides on what is visible or waits; nothing is changed before a decision, so the result does not depend
//! on how the text was cut. What waits is bounded, and every byte is looked at a bounded number of times.

mod call;
mod complete;
mod json_call;
pub(crate) mod judge;
pub(crate) mod lex;
mod promote;
mod start;
mod text;
mod value;

use std::sync::Arc;

use toolgate_model::CallKind;

use crate::fault::Fault;
use crate::plan::Rules;
use crate::recovery::{Recovery, Truncation};
use crate::schema::Parameter;
pub(crate) use json_call::members as json_members;

use call::Call;
use json_call::JsonCall;
use lex::End;
use text::Prose;
use value::Value;

/// How many recoveries are remembered for one reply.
const MAX_RECOVERIES: usize = 256;
/// How much is held where a call is only known at its end: all of a strict call, a fenced one.
const MAX_STAGED: usize = 8 * 1024 * 1024;

/// A piece of what the model said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Reasoning(String),
    CallStarted(String, CallKind),
    Arguments(String),
    CallFinished,
    /// The call stays unfinished.
    CallCut,
    /// The text that follows is a call that cannot be understood.
    Refused,
}

/// Reads one reply.
#[derive(Clone, Debug)]
pub(crate) struct Parser {
    rules: Arc<Rules>,
    buffer: String,
    position: usize,
    state: State,
    prose: Prose,
    /// How many calls are complete.
    calls: usize,
    /// How many were when the last trigger came.
    calls_before: usize,
    /// Whether anything but spaces has come out.
    produced: bool,
    recoveries: Vec<Recovery>,
    truncation: Option<Truncation>,
    /// Why the first call that cannot be understood cannot.
    fault: Option<Fault>,
    /// Reasoning so far, in case the answer is in it (P3); `None` once that cannot be.
    thought: Option<String>,
    stage: Option<Stage>,
    #[cfg(test)]
    pub(crate) scanned: usize,
}

#[derive(Clone, Debug)]
enum State {
    Text,
    /// Reasoning, up to this closing tag.
    Think(String),
    /// A fence whose first content is the trigger: a call if it ends the answer.
    Fenced(String),
    /// Where a call may begin.
    Calls,
    Invoke(Box<Call>),
    Value(Box<Call>, Box<Value>),
    Json(Box<JsonCall>),
    /// A call that waits for values that only the model can give.
    Paused(Box<Call>, Vec<Wanted>),
    /// Everything that follows is dropped.
    Tail,
    /// Everything that follows is text.
    Inert,
}

/// A value that a call lacks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) parameter: Parameter,
    /// What the model wrote, where it could not be read.
    pub(crate) written: Option<String>,
}

/// A call that is not sent before it is known to be written as taught (strict mode).
#[derive(Clone, Debug, Default)]
struct Stage {
    raw: String,
    pieces: Vec<Piece>,
    broken: bool,
}

/// Whether a state can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Again,
    /// More text is needed.
    Stop,
}

impl Parser {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        let in_reasoning = rules.options.starts_in_reasoning.is_on();
        let first_tag = rules.options.reasoning_tags.first().filter(|_| in_reasoning);
        let state = match first_tag {
            Some(tag) => State::Think(tag.close.clone()),
            None => State::Text,
        };
        Self {
            rules,
            buffer: String::new(),
            position: 0,
            state,
            prose: Prose::default(),
            calls: 0,
            calls_before: 0,
            produced: false,
            recoveries: Vec::new(),
            truncation: None,
            fault: None,
            thought: Some(String::new()),
            stage: None,
            #[cfg(test)]
            scanned: 0,
        }
    }

    /// Takes more text.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Piece>) {
        self.buffer.push_str(text);
        self.run(End::More, out);
    }

    /// The text is over. Without effect while a call waits for a value.
    pub(crate) fn finish(&mut self, end: End, out: &mut Vec<Piece>) {
        self.run(end, out);
        if self.wanted().is_none() {
            self.settle(end, out);
        }
    }

    /// True once nothing more is wanted (P27).
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Tail)
    }

    /// How many bytes wait for what follows.
    pub(crate) fn waiting(&self) -> usize {
        let value = match &self.state {
            State::Value(_, value) => value.waiting(),
            State::Text
            | State::Think(_)
            | State::Fenced(_)
            | State::Calls
            | State::Invoke(_)
            | State::Json(_)
            | State::Paused(..)
            | State::Tail
            | State::Inert => 0,
        };
        self.rest().len() + value
    }

    pub(crate) fn recoveries(&self) -> &[Recovery] {
        &self.recoveries
    }

    pub(crate) fn truncation(&self) -> Option<Truncation> {
        self.truncation
    }

    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// Reasoning that the host told apart by itself. It may hold the answer too (P3).
    pub(crate) fn native_reasoning(&mut self, text: &str) {
        self.remember_thought(text);
    }

    /// The value the open call lacks first, and the tool it belongs to.
    pub(crate) fn wanted(&self) -> Option<(&str, &Wanted)> {
        match &self.state {
            State::Paused(call, wanted) => Some((call.name(), wanted.first()?)),
            State::Text
            | State::Think(_)
            | State::Fenced(_)
            | State::Calls
            | State::Invoke(_)
            | State::Value(..)
            | State::Json(_)
            | State::Tail
            | State::Inert => None,
        }
    }

    fn run(&mut self, end: End, out: &mut Vec<Piece>) {
        loop {
            #[cfg(test)]
            {
                self.scanned += self.rest().len().min(judge::MAX_LOOKAHEAD);
            }
            let step = self.step(end, out);
            self.check_stage(out);
            if step == Step::Stop {
                break;
            }
        }
        self.buffer.drain(..self.position);
        self.position = 0;
    }

    fn step(&mut self, end: End, out: &mut Vec<Piece>) -> Step {
        match std::mem::replace(&mut self.state, State::Tail) {
            State::Text => self.step_text(end, out),
            State::Think(close) => self.step_think(close, end, out),
            State::Fenced(held) => self.step_fenced(held, out),
            State::Calls => self.step_calls(end, out),
            State::Invoke(call) => self.step_invoke(call, out),
            State::Value(call, value) => self.step_value(call, value, end, out),
            State::Json(call) => self.step_json(call, out),
            State::Paused(call, wanted) => {
                self.state = State::Paused(call, wanted);
                Step::Stop
            }
            State::Tail => self.step_tail(),
            State::Inert => {
                self.state = State::Inert;
                let len = self.rest().len();
                self.text(len, out);
                Step::Stop
            }
        }
    }

    fn step_tail(&mut self) -> Step {
        if !self.rest().trim_start().is_empty() && self.truncation.is_none() && self.calls > 0 {
            self.note_tail();
        }
        self.consume(self.rest().len());
        Step::Stop
    }

    fn note_tail(&mut self) {
        if !self.recoveries.contains(&Recovery::TailDropped) {
            self.recover(Recovery::TailDropped);
        }
    }

    fn rest(&self) -> &str {
        &self.buffer[self.position..]
    }

    /// Passes over so many bytes.
    fn consume(&mut self, len: usize) {
        if let Some(stage) = &mut self.stage {
            stage.raw.push_str(&self.buffer[self.position..self.position + len]);
        }
        self.position += len;
    }

    /// Passes so many bytes on as prose.
    fn text(&mut self, len: usize, out: &mut Vec<Piece>) {
        let text = &self.buffer[self.position..self.position + len];
        self.produced |= !text.trim_start().is_empty();
        push_text(text, out);
        self.position += len;
    }

    /// Notes a heuristic. In strict mode it breaks the call it was used on.
    fn recover(&mut self, recovery: Recovery) {
        // A wrapper opens and closes, a sentence has several lines: that is one use.
        let repeats = matches!(recovery, Recovery::ForeignSyntax | Recovery::ProseAfterTrigger)
            && self.recoveries.last() == Some(&recovery);
        if let Some(stage) = &mut self.stage {
            stage.broken = true;
        } else if !repeats && self.recoveries.len() < MAX_RECOVERIES {
            self.recoveries.push(recovery);
        }
    }

    /// Notes why a call cannot be understood; what went wrong first is what the model can mend.
    fn blame(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Passes a call's piece on, or keeps it until the call is known to be sound.
    fn emit(&mut self, piece: Piece, out: &mut Vec<Piece>) {
        self.produced = true;
        self.thought = None;
        match &mut self.stage {
            Some(stage) => stage.pieces.push(piece),
            None => push_piece(piece, out),
        }
    }

    /// From here on everything may turn out to be no call.
    fn begin_stage(&mut self) {
        if self.rules.is_strict() {
            self.stage = Some(Stage::default());
        }
    }

    /// What was staged is sound: send it.
    fn commit_stage(&mut self, out: &mut Vec<Piece>) {
        if let Some(stage) = &mut self.stage
            && !stage.broken
        {
            out.append(&mut stage.pieces);
            stage.raw.clear();
        }
    }

    fn check_stage(&mut self, out: &mut Vec<Piece>) {
        if self.stage.as_ref().is_some_and(|stage| stage.broken || stage.raw.len() > MAX_STAGED) {
            self.state = State::Text;
            self.truncation = None;
            self.unstage(out);
        }
    }

    /// What was staged is no call: it comes out as the text it is.
    fn unstage(&mut self, out: &mut Vec<Piece>) {
        if let Some(stage) = self.stage.take() {
            self.produced |= !stage.raw.trim_start().is_empty();
            self.prose.at_line_start = stage.raw.ends_with('\n');
            self.blame(Fault::NotAsTaught);
            out.push(Piece::Refused);
            push_text(&stage.raw, out);
        }
    }
}

/// Appends to the last piece where it is prose too, so that held text does not come out in crumbs.
fn push_text(text: &str, out: &mut Vec<Piece>) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(last)) => last.push_str(text),
        _ => out.push(Piece::Text(text.to_owned())),
    }
}

fn push_piece(piece: Piece, out: &mut Vec<Piece>) {
    match (out.last_mut(), piece) {
        (Some(Piece::Arguments(last)), Piece::Arguments(more)) => last.push_str(&more),
        (_, Piece::Arguments(empty)) if empty.is_empty() => {}
        (_, piece) => out.push(piece),
    }
}
