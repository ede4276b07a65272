//! How a call ends, and what it lacks when it does (P26).

use toolgate_model::Parallel;

use super::call::Call;
use super::lex::End;
use super::{Parser, Piece, State, Wanted};
use crate::options::Repair;
use crate::recovery::Recovery;
use crate::schema::Parameter;
use crate::value::{Closed, Encoder, Ending, Markup, coerce, escape};

impl Parser {
    /// Takes what became of a value.
    pub(super) fn value_closed(&mut self, call: &mut Call, parameter: Parameter, closed: Closed) {
        match closed {
            Closed::Written => {}
            Closed::Recovered(recovery) => self.recover(recovery),
            Closed::Unreadable(text) => {
                if let Some(stage) = &mut self.stage {
                    stage.broken = true;
                }
                call.unreadable.push(Wanted { parameter, written: Some(text) });
            }
        }
    }

    /// The call is written to its end. P26: what it lacks is asked for, if that is wanted.
    pub(super) fn complete(&mut self, mut call: Box<Call>, out: &mut Vec<Piece>) {
        self.announce(&mut call, out);
        let mut wanted = std::mem::take(&mut call.unreadable);
        if self.rules.options.repair == Repair::Append && self.stage.is_none() {
            let missing = call.slots.missing().into_iter();
            wanted.extend(missing.map(|parameter| Wanted { parameter, written: None }));
            if !wanted.is_empty() {
                self.state = State::Paused(call, wanted);
                return;
            }
        }
        self.close_call(call, wanted, out);
    }

    /// Appends a value that the model gave when asked; text that cannot be read counts as no answer.
    pub(crate) fn supply(&mut self, text: &str, out: &mut Vec<Piece>) {
        let State::Paused(mut call, mut wanted) = std::mem::replace(&mut self.state, State::Tail) else {
            return;
        };
        let asked = wanted.remove(0);
        let mut json = String::new();
        let mut encoder = Encoder::new(asked.parameter.clone(), call.tool.kind, Markup::Plain);
        encoder.open(&mut call.writer, &mut json);
        encoder.push(text, &mut call.writer, &mut json);
        match encoder.close(Ending::Implicit, &mut call.writer, &mut json) {
            Closed::Written | Closed::Recovered(_) => {
                self.emit(Piece::Arguments(json), out);
                self.recover(Recovery::ValueSupplied);
            }
            Closed::Unreadable(_) => self.give_up(&mut call, &asked, out),
        }
        if wanted.is_empty() {
            self.close_call(call, wanted, out);
        } else {
            self.state = State::Paused(call, wanted);
        }
        self.run(End::More, out);
    }

    /// Nobody asks the model: the client's validator answers.
    pub(crate) fn decline(&mut self, out: &mut Vec<Piece>) {
        match std::mem::replace(&mut self.state, State::Tail) {
            State::Paused(call, wanted) => self.close_call(call, wanted, out),
            state @ (State::Text
            | State::Think(_)
            | State::Fenced(_)
            | State::Calls
            | State::Invoke(_)
            | State::Value(..)
            | State::Json(_)
            | State::Tail
            | State::Inert) => self.state = state,
        }
    }

    fn close_call(&mut self, mut call: Box<Call>, wanted: Vec<Wanted>, out: &mut Vec<Piece>) {
        for lacking in wanted {
            self.give_up(&mut call, &lacking, out);
        }
        let mut json = String::new();
        call.writer.end(&mut json);
        self.emit(Piece::Arguments(json), out);
        self.emit(Piece::CallFinished, out);
        self.calls += 1;
        self.commit_stage(out);
        self.state = match self.rules.parallel {
            Parallel::Allowed => State::Calls,
            Parallel::Forbidden => State::Tail,
        };
    }

    /// A value that fits no allowed type goes out as it is, for the client to refuse; one that was never written
    /// stays away.
    fn give_up(&mut self, call: &mut Call, lacking: &Wanted, out: &mut Vec<Piece>) {
        let Some(written) = &lacking.written else { return };
        let mut value = String::new();
        match coerce::valid_json(written.trim()) {
            Some(json) => value.push_str(json),
            None => escape::quoted(written, &mut value),
        }
        let mut json = String::new();
        call.writer.member(&lacking.parameter.name, &value, &mut json);
        self.emit(Piece::Arguments(json), out);
        self.recover(Recovery::UnreadableValue);
    }
}
