//! Side requests after the upstream has ended: missing values, continuations, nudges and retries. Nothing that
//! has been sent is retracted; the new text is appended.

use toolgate_model::{Finish, StopReason, TurnEvent, Usage};

use super::stop_reason::input_end;
use super::{Interpreter, ReplyProgress};
use crate::parse::Parser;
use crate::parse::judge::WRAPPERS;
use crate::recovery::{Recovery, Truncation};
use crate::side::{FollowUp, FollowUpReason, MissingValue, overlap};

impl Interpreter {
    /// The value that the current call lacks (P26). Request it and pass it to
    /// [`supply_value`](Self::supply_value) before the next event. The next event, or [`end`](Self::end),
    /// declines it.
    pub fn missing_value(&self) -> Option<MissingValue> {
        let (call, missing) = self.parser.missing_parameter()?;
        Some(MissingValue {
            call: call.to_owned(),
            parameter: missing.parameter.name.clone(),
            schema: missing.parameter.schema.to_string(),
            notation: missing.parameter.notation,
            written: missing.written.clone(),
            answer: self.answer.clone()?,
        })
    }

    /// Appends a missing value: the text of the side request's reply.
    pub fn supply_value(&mut self, value: &str, out: &mut Vec<TurnEvent>) {
        self.mark_output(out);
        self.parser.supply_value(strip_parameter_tags(value), &mut self.pieces);
        self.after_value(out);
        self.move_to_hold(out);
    }

    /// Adds the usage of a side request to that of the turn.
    pub fn add_usage(&mut self, usage: Usage) {
        self.earlier_usage = Some(self.total_usage(usage));
    }

    /// Continues without the missing value.
    pub fn decline_value(&mut self, out: &mut Vec<TurnEvent>) {
        self.mark_output(out);
        self.give_up_value(out);
        self.move_to_hold(out);
    }

    fn give_up_value(&mut self, out: &mut Vec<TurnEvent>) {
        self.parser.decline_values(&mut self.pieces);
        self.parser.push("", &mut self.pieces);
        self.after_value(out);
    }

    /// The second request, if the answer was truncated inside a call (P28), lacks a required call (P32), or
    /// contains a call that could not be parsed and of which nothing was sent. Feed the events of its reply to
    /// this interpreter, or call [`end`](Self::end) to do without.
    pub fn follow_up(&self) -> Option<FollowUp> {
        match &self.progress {
            ReplyProgress::UpstreamEnded(_, Some(reason)) => {
                let trigger = self.plan.trigger().unwrap_or_default().to_owned();
                let retry_template = self.plan.rules.options.retry_template.clone();
                Some(FollowUp {
                    reason: reason.clone(),
                    answer: self.answer.clone()?,
                    trigger,
                    retry_template,
                })
            }
            ReplyProgress::UpstreamEnded(_, None)
            | ReplyProgress::NotStarted
            | ReplyProgress::Running
            | ReplyProgress::Finished => None,
        }
    }

    /// Called before each event: declines a value that was not supplied, and starts the follow-up if one is
    /// pending.
    pub(super) fn resume(&mut self, out: &mut Vec<TurnEvent>) {
        if self.parser.missing_parameter().is_some() {
            self.give_up_value(out);
        }
        let ReplyProgress::UpstreamEnded(finish, Some(reason)) = &self.progress else { return };
        let usage = finish.usage.clone().or_else(|| self.reported_usage.take());
        let reason = reason.clone();
        if let Some(usage) = usage {
            self.add_usage(usage);
        }
        match reason {
            FollowUpReason::Truncated => {
                self.continuations_left = self.continuations_left.saturating_sub(1);
                self.continuation_start = Some(String::new());
                self.follow_up_recoveries.push(Recovery::Continued);
            }
            FollowUpReason::NoCall => {
                self.nudged = true;
                self.follow_up_recoveries.push(Recovery::Nudged);
                self.follow_up_recoveries.extend_from_slice(self.parser.recoveries());
                self.parser = Parser::new(self.plan.rules.clone());
            }
            FollowUpReason::InvalidCall(_) => {
                self.retries_left = self.retries_left.saturating_sub(1);
                self.follow_up_recoveries.push(Recovery::Retried);
                self.restart_answer(out);
            }
        }
        self.progress = ReplyProgress::Running;
    }

    pub(super) fn upstream_finished(&mut self, finish: Finish, out: &mut Vec<TurnEvent>) {
        if matches!(self.progress, ReplyProgress::Finished) {
            return;
        }
        self.flush_continuation_start(out);
        self.progress = ReplyProgress::UpstreamEnded(finish, None);
        self.try_to_finish(out);
    }

    /// Finishes the reply, unless a value is missing or a follow-up may save a call.
    fn try_to_finish(&mut self, out: &mut Vec<TurnEvent>) {
        let ReplyProgress::UpstreamEnded(finish, None) = &self.progress else { return };
        let finish = finish.clone();
        // Tried on a copy: if the answer turns out to be truncated, the parser must be able to continue.
        let mut trial = self.parser.clone();
        let mut pieces = Vec::new();
        trial.finish(input_end(&finish), &mut pieces);
        if trial.missing_parameter().is_none()
            && let Some(reason) = self.follow_up_reason(&trial, &finish)
        {
            match reason {
                FollowUpReason::Truncated => {}
                FollowUpReason::NoCall | FollowUpReason::InvalidCall(_) => self.commit(trial, pieces, out),
            }
            self.progress = ReplyProgress::UpstreamEnded(finish, Some(reason));
            return;
        }
        let awaits_value = trial.missing_parameter().is_some();
        self.commit(trial, pieces, out);
        if !awaits_value {
            self.finish_reply(finish, out);
        }
    }

    fn follow_up_reason(&self, trial: &Parser, finish: &Finish) -> Option<FollowUpReason> {
        let answer = self.answer.as_deref()?;
        let cut = matches!(trial.truncation(), Some(Truncation::BeforeCall | Truncation::InsideCall));
        let ended_by_itself =
            matches!(finish.stop, StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse);
        if (!cut || ended_by_itself)
            && let Some(fault) = self.retry_fault(trial)
        {
            return Some(FollowUpReason::InvalidCall(fault));
        }
        if cut {
            let is_complete = ended_by_itself && ends_with_closed_call(answer);
            return (self.continuations_left > 0 && !is_complete).then_some(FollowUpReason::Truncated);
        }
        let options = &self.plan.rules.options;
        // A partial call that was sent counts as a call: a second one would hide that the first is incomplete.
        let has_no_call = trial.calls() == 0 && trial.truncation().is_none();
        let lacks_call = has_no_call && self.plan.call_required.is_on() && ended_by_itself;
        (lacks_call && options.nudge.is_on() && !self.nudged).then_some(FollowUpReason::NoCall)
    }

    fn commit(&mut self, parser: Parser, pieces: Vec<crate::parse::ParsedPiece>, out: &mut Vec<TurnEvent>) {
        self.parser = parser;
        self.pieces = pieces;
        self.emit_pieces(out);
    }

    fn after_value(&mut self, out: &mut Vec<TurnEvent>) {
        self.emit_pieces(out);
        if self.parser.missing_parameter().is_none() {
            self.try_to_finish(out);
        }
    }

    /// Parses the start of a continuation without its overlap with the answer.
    pub(super) fn flush_continuation_start(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(text) = self.continuation_start.take() {
            let answer = self.answer.as_deref().unwrap_or_default();
            let skip = overlap(answer, &text);
            self.read(&text[skip..], out);
        }
    }

    pub(super) fn total_usage(&self, usage: Usage) -> Usage {
        match &self.earlier_usage {
            Some(spent) => usage.plus(spent),
            None => usage,
        }
    }
}

/// Whether the last tag of an answer closes a call, so that nothing is left to continue.
fn ends_with_closed_call(answer: &str) -> bool {
    let mut rest = answer.trim_end();
    while let Some(before) = WRAPPERS.iter().find_map(|name| rest.strip_suffix(&format!("</{name}>"))) {
        rest = before.trim_end();
    }
    rest.ends_with("</invoke>") || rest.ends_with("</function>")
}

/// The value without the parameter tags that a model may put around it despite the instruction.
fn strip_parameter_tags(value: &str) -> &str {
    let trimmed = value.trim();
    let tagged = trimmed.strip_prefix("<parameter").and_then(|rest| rest.split_once('>'));
    if let Some(inside) = tagged.and_then(|(_, rest)| rest.strip_suffix("</parameter>")) {
        return inside;
    }
    value
}
