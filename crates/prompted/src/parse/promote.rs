//! The end of the answer: what is unfinished then, and whether text that was held back is a call after all (P3, P5).

use std::sync::Arc;

use super::lex::End;
use super::{Parser, Piece, State, push_text};
use crate::fault::Fault;
use crate::recovery::{Recovery, Truncation};

impl Parser {
    pub(super) fn settle(&mut self, end: End, out: &mut Vec<Piece>) {
        match std::mem::replace(&mut self.state, State::Tail) {
            State::Text | State::Think(_) => {
                self.state = State::Inert;
                self.settle_thought(end, out);
            }
            State::Fenced(held) => self.settle_fenced(&held, end, out),
            State::Calls if self.calls == self.calls_before || !self.rest().trim_start().is_empty() => {
                self.settle_before_call(end, out);
            }
            // More calls could have come.
            State::Calls | State::Inert => self.state = State::Inert,
            State::Tail => {}
            // Only a call that can have no further parameter is complete without its closing tag.
            State::Invoke(call)
                if end == End::Clean
                    && call.slots.are_all_set()
                    && self.stage.is_none()
                    && closes(self.rest()) =>
            {
                self.recover(Recovery::MissingCallClose);
                self.complete(call, out);
                self.decline(out);
                self.state = State::Tail;
            }
            State::Invoke(_) | State::Value(..) | State::Paused(..) => {
                self.settle_cut(out);
            }
            State::Json(_) => {
                self.unstage(out);
                self.truncation = Some(Truncation::InsideCall);
            }
        }
    }

    /// The answer ended where a call was to come, perhaps inside its first tag.
    fn settle_before_call(&mut self, end: End, out: &mut Vec<Piece>) {
        // A model that stopped inside a tag by itself is told, unless there are calls that would then come twice.
        let begun = self.rest().trim_start();
        let is_trigger = self.rules.trigger.as_deref().is_some_and(|trigger| trigger.starts_with(begun));
        if end == End::Clean && self.calls == 0 && !is_trigger {
            self.blame(Fault::BrokenTag);
        }
        self.consume(self.rest().len());
        if self.calls == self.calls_before {
            self.unstage(out);
        }
        self.truncation = Some(Truncation::BeforeCall);
    }

    fn settle_cut(&mut self, out: &mut Vec<Piece>) {
        self.consume(self.rest().len());
        if self.stage.is_some() {
            self.unstage(out);
        } else {
            self.emit(Piece::CallCut, out);
        }
        self.truncation = Some(Truncation::InsideCall);
    }

    /// P5: a fence that ends the answer.
    fn settle_fenced(&mut self, held: &str, end: End, out: &mut Vec<Piece>) {
        let trimmed = held.trim_start();
        let content = trimmed.split_once('\n').map_or("", |(_, content)| content);
        if end != End::Clean || !self.promote(content, Recovery::CallInFence, out) {
            self.produced = true;
            push_text(held, out);
        }
    }

    /// P3: an answer that is all reasoning and ends in a call.
    fn settle_thought(&mut self, end: End, out: &mut Vec<Piece>) {
        let Some(thought) = self.thought.take().filter(|_| end == End::Clean && !self.produced) else {
            return;
        };
        let Some(trigger) = self.rules.trigger.clone().filter(|_| !self.rules.is_strict()) else { return };
        // From the first trigger on, or else, if that was a rehearsal, from the last.
        for found in [thought.find(&trigger), thought.rfind(&trigger)].into_iter().flatten() {
            if self.promote(&thought[found..], Recovery::CallInReasoning, out) {
                return;
            }
        }
    }

    /// Takes a text for calls if it is nothing else: no prose before, between or after them.
    fn promote(&mut self, text: &str, recovery: Recovery, out: &mut Vec<Piece>) -> bool {
        let mut reader = Self::new(Arc::clone(&self.rules));
        reader.state = State::Text;
        let mut pieces = Vec::new();
        reader.push(text, &mut pieces);
        reader.finish(End::Clean, &mut pieces);
        while reader.wanted().is_some() {
            reader.decline(&mut pieces);
            reader.finish(End::Clean, &mut pieces);
        }
        let only_calls = pieces.iter().all(|piece| match piece {
            Piece::Text(text) | Piece::Reasoning(text) => text.trim().is_empty(),
            Piece::CallStarted(..) | Piece::Arguments(_) | Piece::CallFinished => true,
            Piece::CallCut | Piece::Refused => false,
        });
        let whole = reader.truncation.is_none()
            && reader.calls > 0
            && !reader.recoveries.contains(&Recovery::TailDropped)
            && !reader.recoveries.contains(&Recovery::MissingCallClose);
        if !only_calls || !whole {
            return false;
        }
        pieces.retain(|piece| !matches!(piece, Piece::Text(_) | Piece::Reasoning(_)));
        out.append(&mut pieces);
        self.recover(recovery);
        for recovery in reader.recoveries {
            self.recover(recovery);
        }
        self.calls += reader.calls;
        self.produced = true;
        true
    }
}

/// Whether the last words of a call are nothing but the beginning of a closing tag.
fn closes(rest: &str) -> bool {
    "</".starts_with(rest) || rest.starts_with("</")
}
