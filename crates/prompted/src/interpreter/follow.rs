//! What happens when the upstream has ended and the reply has not: values to fetch, answers to continue, calls to ask
//! for. Nothing that was sent is taken back: whatever comes is appended.

use toolgate_model::{Finish, StopReason, TurnEvent, Usage};

use super::ending::ending;
use super::{Interpreter, Progress};
use crate::parse::Parser;
use crate::recovery::{Recovery, Truncation};
use crate::side::{Continuation, Missing, Reason, overlap};

impl Interpreter {
    /// A value that the call just read lacks (P26). Fetch it and [`supply`](Self::supply) it before the next event;
    /// the next event, or [`end`](Self::end), goes on without.
    pub fn missing(&self) -> Option<Missing> {
        let (call, wanted) = self.parser.wanted()?;
        Some(Missing {
            call: call.to_owned(),
            parameter: wanted.parameter.name.clone(),
            schema: wanted.parameter.schema.to_string(),
            notation: wanted.parameter.notation,
            written: wanted.written.clone(),
            said: self.said.clone()?,
        })
    }

    /// Appends a value that was missing: the text of the side request's reply.
    pub fn supply(&mut self, value: &str, out: &mut Vec<TurnEvent>) {
        self.mark(out);
        self.parser.supply(bare(value), &mut self.pieces);
        self.after_value(out);
        self.keep(out);
    }

    /// Adds what a question besides cost to what the turn did.
    pub fn spend(&mut self, usage: Usage) {
        self.spent = Some(self.total(usage));
    }

    /// Goes on without the value that is missing.
    pub fn go_without(&mut self, out: &mut Vec<TurnEvent>) {
        self.mark(out);
        self.give_up_value(out);
        self.keep(out);
    }

    fn give_up_value(&mut self, out: &mut Vec<TurnEvent>) {
        self.parser.decline(&mut self.pieces);
        self.parser.push("", &mut self.pieces);
        self.after_value(out);
    }

    /// How to get the rest of an answer that was cut inside a call (P28), or a call that had to come and did not
    /// (P32), or a new answer where the call in this one cannot be understood and nothing of it was sent. Feed the
    /// reply's events here as those of the first; or call [`end`](Self::end) to do without.
    pub fn continuation(&self) -> Option<Continuation> {
        match &self.progress {
            Progress::Ending(_, Some(reason)) => {
                let trigger = self.plan.trigger().unwrap_or_default().to_owned();
                let retry_template = self.plan.rules.options.retry_template.clone();
                Some(Continuation {
                    reason: reason.clone(),
                    said: self.said.clone()?,
                    trigger,
                    retry_template,
                })
            }
            Progress::Ending(_, None) | Progress::Before | Progress::Running | Progress::Finished => None,
        }
    }

    /// Before an event: what was asked for and is not coming is given up, and a continuation begins.
    pub(super) fn go_on(&mut self, out: &mut Vec<TurnEvent>) {
        if self.parser.wanted().is_some() {
            self.give_up_value(out);
        }
        let Progress::Ending(finish, Some(reason)) = &self.progress else { return };
        let usage = finish.usage.clone().or_else(|| self.usage.take());
        let reason = reason.clone();
        if let Some(usage) = usage {
            self.spend(usage);
        }
        match reason {
            Reason::Truncated => {
                self.continuations = self.continuations.saturating_sub(1);
                self.repeated = Some(String::new());
                self.side.push(Recovery::Continued);
            }
            Reason::NoCall => {
                self.nudged = true;
                self.side.push(Recovery::Nudged);
                self.side.extend_from_slice(self.parser.recoveries());
                self.parser = Parser::new(self.plan.rules.clone());
            }
            Reason::Unreadable(_) => {
                self.retries = self.retries.saturating_sub(1);
                self.side.push(Recovery::Retried);
                self.forget(out);
            }
        }
        self.progress = Progress::Running;
    }

    pub(super) fn upstream_finished(&mut self, finish: Finish, out: &mut Vec<TurnEvent>) {
        if matches!(self.progress, Progress::Finished) {
            return;
        }
        self.release_repeated(out);
        self.progress = Progress::Ending(finish, None);
        self.try_to_finish(out);
    }

    /// Finishes the reply unless a value is awaited or asking on may save a call.
    fn try_to_finish(&mut self, out: &mut Vec<TurnEvent>) {
        let Progress::Ending(finish, None) = &self.progress else { return };
        let finish = finish.clone();
        // The end is tried on a copy: an answer that turns out to be cut must be able to go on as if never ended.
        let mut trial = self.parser.clone();
        let mut pieces = Vec::new();
        trial.finish(ending(&finish), &mut pieces);
        if trial.wanted().is_none()
            && let Some(reason) = self.reason_to_go_on(&trial, &finish)
        {
            match reason {
                Reason::Truncated => {}
                Reason::NoCall | Reason::Unreadable(_) => self.commit(trial, pieces, out),
            }
            self.progress = Progress::Ending(finish, Some(reason));
            return;
        }
        let awaits_value = trial.wanted().is_some();
        self.commit(trial, pieces, out);
        if !awaits_value {
            self.finish_reply(finish, out);
        }
    }

    fn reason_to_go_on(&self, trial: &Parser, finish: &Finish) -> Option<Reason> {
        self.said.as_ref()?;
        let cut = matches!(trial.truncation(), Some(Truncation::BeforeCall | Truncation::InsideCall));
        let ended_freely =
            matches!(finish.stop, StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse);
        if (!cut || ended_freely)
            && let Some(fault) = self.fault(trial)
        {
            return Some(Reason::Unreadable(fault));
        }
        if cut {
            return (self.continuations > 0).then_some(Reason::Truncated);
        }
        let options = &self.plan.rules.options;
        // Half a call that was sent is no silence: another one would hide that it is half.
        let silent = trial.calls() == 0 && trial.truncation().is_none();
        let silent = silent && self.plan.call_needed.is_on() && ended_freely;
        (silent && options.nudge.is_on() && !self.nudged).then_some(Reason::NoCall)
    }

    fn commit(&mut self, parser: Parser, pieces: Vec<crate::parse::Piece>, out: &mut Vec<TurnEvent>) {
        self.parser = parser;
        self.pieces = pieces;
        self.translate(out);
    }

    fn after_value(&mut self, out: &mut Vec<TurnEvent>) {
        self.translate(out);
        if self.parser.wanted().is_none() {
            self.try_to_finish(out);
        }
        self.note_recoveries();
    }

    /// Reads the start of a continuation without what it repeats.
    pub(super) fn release_repeated(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(text) = self.repeated.take() {
            let said = self.said.as_deref().unwrap_or_default();
            let skip = overlap(said, &text);
            self.read(&text[skip..], out);
        }
    }

    pub(super) fn total(&self, usage: Usage) -> Usage {
        match &self.spent {
            Some(spent) => usage.plus(spent),
            None => usage,
        }
    }
}

/// The value without the tags or the fence that a model may put around it in spite of being told not to.
fn bare(value: &str) -> &str {
    let trimmed = value.trim();
    let tagged = trimmed.strip_prefix("<parameter").and_then(|rest| rest.split_once('>'));
    if let Some(inside) = tagged.and_then(|(_, rest)| rest.strip_suffix("</parameter>")) {
        return inside;
    }
    value
}
