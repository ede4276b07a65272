//! The one-pass parser: model text in; prose, reasoning and calls out.
//!
//! ```text
//! Text ──trigger──▶ Calls ──<invoke>──▶ Invoke ⇄ Value
//!  │ ▲                ▲                    │
//!  ▼ │                └─────</invoke>──────┘──prose──▶ Tail
//! Think, Fenced
//! ```
//!
//! Each state either decides on the visible text or waits. Nothing changes before a decision, so the result
//! does not depend on how the text is split into chunks. Buffers are bounded, and each byte is scanned a
//! bounded number of times.

mod call;
mod complete;
mod finish;
mod json_call;
pub(crate) mod judge;
pub(crate) mod lex;
mod start;
mod text;
mod value;

use std::sync::Arc;

use toolgate_model::CallKind;

use crate::fault::CallFault;
use crate::plan::ParseRules;
use crate::recovery::{Recovery, Truncation};
use crate::schema::Parameter;
pub(crate) use json_call::members as json_members;

use call::OpenCall;
use json_call::JsonCall;
use lex::InputEnd;
use text::ProseState;
use value::OpenValue;

/// The maximum number of recoveries recorded for one reply.
const MAX_RECOVERIES: usize = 256;
/// The maximum size of text that is buffered until it is known to be a call: a call in strict mode or in a code
/// fence.
const MAX_STAGED: usize = 8 * 1024 * 1024;

/// A piece of the parsed text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParsedPiece {
    Text(String),
    Reasoning(String),
    CallStarted(String, CallKind),
    Arguments(String),
    CallFinished,
    /// The call is left unfinished.
    CallCut,
    /// The text that follows is a call that could not be parsed.
    InvalidCall,
}

/// Parses one reply.
#[derive(Clone, Debug)]
pub(crate) struct Parser {
    rules: Arc<ParseRules>,
    buffer: String,
    position: usize,
    state: State,
    prose: ProseState,
    /// The number of complete calls.
    calls: usize,
    /// The value of `calls` at the last trigger.
    calls_at_trigger: usize,
    /// Whether anything other than whitespace has been emitted.
    has_output: bool,
    recoveries: Vec<Recovery>,
    truncation: Option<Truncation>,
    /// The first fault found in a call.
    fault: Option<CallFault>,
    /// The reasoning so far, in case it contains the answer (P3); `None` once that is impossible.
    reasoning_text: Option<String>,
    stage: Option<StagedCall>,
    #[cfg(test)]
    pub(crate) scanned: usize,
}

#[derive(Clone, Debug)]
enum State {
    Text,
    /// Reasoning, up to this closing tag.
    Think(String),
    /// A code fence that starts with the trigger: a call if the fence ends the answer.
    Fenced(String),
    /// Where a call may start.
    Calls,
    Invoke(Box<OpenCall>),
    Value(Box<OpenCall>, Box<OpenValue>),
    Json(Box<JsonCall>),
    /// A complete call that lacks values only the model can supply.
    Paused(Box<OpenCall>, Vec<MissingParameter>),
    /// The remaining text is dropped.
    Tail,
    /// The remaining text is prose.
    Inert,
}

/// A value that a call lacks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MissingParameter {
    pub(crate) parameter: Parameter,
    /// What the model wrote, if it could not be parsed.
    pub(crate) written: Option<String>,
}

/// A call in strict mode, held back until it is known to follow the format exactly.
#[derive(Clone, Debug, Default)]
struct StagedCall {
    raw: String,
    pieces: Vec<ParsedPiece>,
    is_rejected: bool,
}

/// Whether the parser can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Again,
    /// More text is needed.
    Stop,
}

impl Parser {
    pub(crate) fn new(rules: Arc<ParseRules>) -> Self {
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
            prose: ProseState::default(),
            calls: 0,
            calls_at_trigger: 0,
            has_output: false,
            recoveries: Vec::new(),
            truncation: None,
            fault: None,
            reasoning_text: Some(String::new()),
            stage: None,
            #[cfg(test)]
            scanned: 0,
        }
    }

    /// Parses more text.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<ParsedPiece>) {
        self.buffer.push_str(text);
        self.run(InputEnd::More, out);
    }

    /// Ends the text. Has no effect while a call waits for a missing value.
    pub(crate) fn finish(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) {
        self.run(end, out);
        if self.missing_parameter().is_none() {
            self.finish_state(end, out);
        }
    }

    /// True once the remaining text is not needed (P27).
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Tail)
    }

    /// The number of bytes held back until more text arrives.
    pub(crate) fn buffered_bytes(&self) -> usize {
        let value = if let State::Value(_, value) = &self.state { value.buffered_bytes() } else { 0 };
        self.rest().len() + value
    }

    pub(crate) fn recoveries(&self) -> &[Recovery] {
        &self.recoveries
    }

    pub(crate) fn truncation(&self) -> Option<Truncation> {
        self.truncation
    }

    pub(crate) fn fault(&self) -> Option<&CallFault> {
        self.fault.as_ref()
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// Records reasoning that the host itself separated from the text. It may contain the answer too (P3).
    pub(crate) fn host_reasoning(&mut self, text: &str) {
        self.remember_reasoning(text);
    }

    /// The first value that the open call lacks, with the name of its tool.
    pub(crate) fn missing_parameter(&self) -> Option<(&str, &MissingParameter)> {
        let State::Paused(call, missing) = &self.state else { return None };
        Some((call.name(), missing.first()?))
    }

    fn run(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) {
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

    fn step(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) -> Step {
        match std::mem::replace(&mut self.state, State::Tail) {
            State::Text => self.step_text(end, out),
            State::Think(close) => self.step_think(close, end, out),
            State::Fenced(buffered) => self.step_fenced(buffered, out),
            State::Calls => self.step_calls(end, out),
            State::Invoke(call) => self.step_invoke(call, out),
            State::Value(call, value) => self.step_value(call, value, end, out),
            State::Json(call) => self.step_json(call, out),
            State::Paused(call, missing) => {
                self.state = State::Paused(call, missing);
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

    /// Skips `len` bytes.
    fn consume(&mut self, len: usize) {
        if let Some(stage) = &mut self.stage {
            stage.raw.push_str(&self.buffer[self.position..self.position + len]);
        }
        self.position += len;
    }

    /// Emits `len` bytes as prose.
    fn text(&mut self, len: usize, out: &mut Vec<ParsedPiece>) {
        let text = &self.buffer[self.position..self.position + len];
        self.has_output |= !text.trim_start().is_empty();
        push_text(text, out);
        self.position += len;
    }

    /// Records a heuristic. In strict mode it rejects the call it was used on.
    fn recover(&mut self, recovery: Recovery) {
        // The opening and closing tag of a wrapper, or several lines of prose, count as one use.
        let repeats = matches!(recovery, Recovery::ForeignSyntax | Recovery::ProseAfterTrigger)
            && self.recoveries.last() == Some(&recovery);
        if let Some(stage) = &mut self.stage {
            stage.is_rejected = true;
        } else if !repeats && self.recoveries.len() < MAX_RECOVERIES {
            self.recoveries.push(recovery);
        }
    }

    /// Records why a call could not be parsed. Only the first fault is kept: later ones may be consequences.
    fn record_fault(&mut self, fault: CallFault) {
        self.fault.get_or_insert(fault);
    }

    /// Emits a piece of a call, or stages it in strict mode.
    fn emit(&mut self, piece: ParsedPiece, out: &mut Vec<ParsedPiece>) {
        self.has_output = true;
        self.reasoning_text = None;
        match &mut self.stage {
            Some(stage) => stage.pieces.push(piece),
            None => push_piece(piece, out),
        }
    }

    /// In strict mode, stages everything from here on.
    fn begin_stage(&mut self) {
        if self.rules.is_strict() {
            self.stage = Some(StagedCall::default());
        }
    }

    /// Emits the staged call, which is valid.
    fn commit_stage(&mut self, out: &mut Vec<ParsedPiece>) {
        if let Some(stage) = &mut self.stage
            && !stage.is_rejected
        {
            out.append(&mut stage.pieces);
            stage.raw.clear();
        }
    }

    fn check_stage(&mut self, out: &mut Vec<ParsedPiece>) {
        if self.stage.as_ref().is_some_and(|stage| stage.is_rejected || stage.raw.len() > MAX_STAGED) {
            self.state = State::Text;
            self.truncation = None;
            self.emit_stage_as_text(out);
        }
    }

    /// Emits the staged text as prose, because it is not a valid call.
    fn emit_stage_as_text(&mut self, out: &mut Vec<ParsedPiece>) {
        if let Some(stage) = self.stage.take() {
            self.has_output |= !stage.raw.trim_start().is_empty();
            self.prose.at_line_start = stage.raw.ends_with('\n');
            self.record_fault(CallFault::NotExact);
            out.push(ParsedPiece::InvalidCall);
            push_text(&self.without_trigger(&stage.raw), out);
        }
    }

    /// The text of a refused call without trigger lines: if the client sent the trigger back, the next prompt would need
    /// another one.
    fn without_trigger(&self, text: &str) -> String {
        match &self.rules.trigger {
            Some(trigger) => text.replace(&format!("{trigger}\n"), "").replace(trigger, ""),
            None => text.to_owned(),
        }
    }
}

/// Appends to the last piece if that is prose too, which avoids many small pieces.
fn push_text(text: &str, out: &mut Vec<ParsedPiece>) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some(ParsedPiece::Text(last)) => last.push_str(text),
        _ => out.push(ParsedPiece::Text(text.to_owned())),
    }
}

fn push_piece(piece: ParsedPiece, out: &mut Vec<ParsedPiece>) {
    match (out.last_mut(), piece) {
        (Some(ParsedPiece::Arguments(last)), ParsedPiece::Arguments(more)) => last.push_str(&more),
        (_, ParsedPiece::Arguments(empty)) if empty.is_empty() => {}
        (_, piece) => out.push(piece),
    }
}
