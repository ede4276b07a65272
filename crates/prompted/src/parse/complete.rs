//! The end of a call, and the values it lacks then (P26).

use toolgate_model::Parallel;

use super::call::OpenCall;
use super::lex::InputEnd;
use super::{MissingParameter, ParsedPiece, Parser, State};
use crate::options::Repair;
use crate::recovery::Recovery;
use crate::schema::Parameter;
use crate::value::{CloseKind, CloseOutcome, Encoder, Markup, coerce, escape};

impl Parser {
    /// Handles the outcome of a value.
    pub(super) fn value_closed(&mut self, call: &mut OpenCall, parameter: Parameter, closed: CloseOutcome) {
        match closed {
            CloseOutcome::Written => {}
            CloseOutcome::Recovered(recovery) => self.recover(recovery),
            CloseOutcome::Unreadable(text) => {
                if let Some(stage) = &mut self.stage {
                    stage.is_rejected = true;
                }
                call.unreadable.push(MissingParameter { parameter, written: Some(text) });
            }
        }
    }

    /// Handles the end of a call. P26: requests the values it lacks, if that is enabled.
    pub(super) fn complete(&mut self, mut call: Box<OpenCall>, out: &mut Vec<ParsedPiece>) {
        self.announce(&mut call, out);
        let mut missing = std::mem::take(&mut call.unreadable);
        if self.rules.options.repair == Repair::Append && self.stage.is_none() {
            let unset = call.slots.missing().into_iter();
            missing.extend(unset.map(|parameter| MissingParameter { parameter, written: None }));
            if !missing.is_empty() {
                self.state = State::Paused(call, missing);
                return;
            }
        }
        self.close_call(call, missing, out);
    }

    /// Appends the value that the model supplied; a value that cannot be parsed counts as declined.
    pub(crate) fn supply_value(&mut self, text: &str, out: &mut Vec<ParsedPiece>) {
        let state = std::mem::replace(&mut self.state, State::Tail);
        let State::Paused(mut call, mut missing) = state else {
            self.state = state;
            return;
        };
        let supplied = missing.remove(0);
        let mut json = String::new();
        let mut encoder = Encoder::new(supplied.parameter.clone(), call.tool.kind, Markup::Plain);
        encoder.open(&mut call.writer, &mut json);
        encoder.push(text, &mut call.writer, &mut json);
        match encoder.close(CloseKind::Implicit, &mut call.writer, &mut json) {
            CloseOutcome::Written | CloseOutcome::Recovered(_) => {
                self.emit(ParsedPiece::Arguments(json), out);
                self.recover(Recovery::ValueSupplied);
            }
            CloseOutcome::Unreadable(_) => self.decline_value(&mut call, &supplied, out),
        }
        if missing.is_empty() {
            self.close_call(call, missing, out);
        } else {
            self.state = State::Paused(call, missing);
        }
        self.run(InputEnd::More, out);
    }

    /// Completes the call without the missing values: the client's validator reports them.
    pub(crate) fn decline_values(&mut self, out: &mut Vec<ParsedPiece>) {
        let state = std::mem::replace(&mut self.state, State::Tail);
        let State::Paused(call, missing) = state else {
            self.state = state;
            return;
        };
        self.close_call(call, missing, out);
    }

    fn close_call(
        &mut self,
        mut call: Box<OpenCall>,
        missing: Vec<MissingParameter>,
        out: &mut Vec<ParsedPiece>,
    ) {
        for missing in missing {
            self.decline_value(&mut call, &missing, out);
        }
        let mut json = String::new();
        call.writer.end(&mut json);
        self.emit(ParsedPiece::Arguments(json), out);
        self.emit(ParsedPiece::CallFinished, out);
        self.calls += 1;
        self.commit_stage(out);
        self.state = match self.rules.parallel {
            Parallel::Allowed => State::Calls,
            Parallel::Forbidden => State::Tail,
        };
    }

    /// Forwards a value that matches no allowed type, for the client to reject. A value that was never written
    /// is left out.
    fn decline_value(&mut self, call: &mut OpenCall, missing: &MissingParameter, out: &mut Vec<ParsedPiece>) {
        let Some(written) = &missing.written else { return };
        let mut value = String::new();
        match coerce::valid_json(written.trim()) {
            Some(json) => value.push_str(json),
            None => escape::quoted(written, &mut value),
        }
        let mut json = String::new();
        call.writer.member(&missing.parameter.name, &value, &mut json);
        self.emit(ParsedPiece::Arguments(json), out);
        self.recover(Recovery::UnreadableValue);
    }
}
