//! The end of the answer: reports what is unfinished, and decides whether buffered text is a call after all
//! (P3, P5).

use std::sync::Arc;

use super::lex::InputEnd;
use super::{ParsedPiece, Parser, State, push_text};
use crate::fault::CallFault;
use crate::recovery::{Recovery, Truncation};

impl Parser {
    pub(super) fn finish_state(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) {
        match std::mem::replace(&mut self.state, State::Tail) {
            State::Text | State::Think(_) => {
                self.state = State::Inert;
                self.finish_reasoning(end, out);
            }
            State::Fenced(buffered) => self.finish_fence(&buffered, end, out),
            State::Calls if self.calls == self.calls_at_trigger || !self.rest().trim_start().is_empty() => {
                self.finish_before_call(end, out);
            }
            // More calls could have followed.
            State::Calls | State::Inert => self.state = State::Inert,
            State::Tail => {}
            // Without its closing tag, a call is complete only if it can have no further parameter.
            State::Invoke(call)
                if end == InputEnd::Clean
                    && call.slots.are_all_set()
                    && self.stage.is_none()
                    && closes(self.rest()) =>
            {
                self.recover(Recovery::MissingCallClose);
                self.complete(call, out);
                self.decline_values(out);
                self.state = State::Tail;
            }
            State::Invoke(_) | State::Value(..) | State::Paused(..) => {
                self.finish_cut_call(out);
            }
            State::Json(_) => {
                self.emit_stage_as_text(out);
                self.truncation = Some(Truncation::InsideCall);
            }
        }
    }

    /// The answer ended where a call was expected, or inside its first tag.
    fn finish_before_call(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) {
        // A model that stopped inside a tag by itself gets a retry, unless earlier calls would then be
        // repeated.
        let begun = self.rest().trim_start();
        let is_trigger = self.rules.trigger.as_deref().is_some_and(|trigger| trigger.starts_with(begun));
        if end == InputEnd::Clean && self.calls == 0 && !is_trigger {
            self.record_fault(CallFault::MalformedTag);
        }
        self.consume(self.rest().len());
        if self.calls == self.calls_at_trigger {
            self.emit_stage_as_text(out);
        }
        self.truncation = Some(Truncation::BeforeCall);
    }

    fn finish_cut_call(&mut self, out: &mut Vec<ParsedPiece>) {
        self.consume(self.rest().len());
        if self.stage.is_some() {
            self.emit_stage_as_text(out);
        } else {
            self.emit(ParsedPiece::CallCut, out);
        }
        self.truncation = Some(Truncation::InsideCall);
    }

    /// P5: runs the call in a code fence that ends the answer.
    fn finish_fence(&mut self, buffered: &str, end: InputEnd, out: &mut Vec<ParsedPiece>) {
        let trimmed = buffered.trim_start();
        let content = trimmed.split_once('\n').map_or("", |(_, content)| content);
        if end != InputEnd::Clean || !self.promote(content, Recovery::CallInFence, out) {
            self.has_output = true;
            push_text(buffered, out);
        }
    }

    /// P3: runs the call at the end of an answer that consists of reasoning only.
    fn finish_reasoning(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) {
        let Some(reasoning) =
            self.reasoning_text.take().filter(|_| end == InputEnd::Clean && !self.has_output)
        else {
            return;
        };
        let Some(trigger) = self.rules.trigger.clone().filter(|_| !self.rules.is_strict()) else { return };
        // Starts at the first trigger or, if that was only a draft, at the last.
        for found in [reasoning.find(&trigger), reasoning.rfind(&trigger)].into_iter().flatten() {
            if self.promote(&reasoning[found..], Recovery::CallInReasoning, out) {
                return;
            }
        }
    }

    /// Runs the calls in a text that contains nothing else: no prose before, between or after them.
    fn promote(&mut self, text: &str, recovery: Recovery, out: &mut Vec<ParsedPiece>) -> bool {
        let mut reader = Self::new(Arc::clone(&self.rules));
        reader.state = State::Text;
        let mut pieces = Vec::new();
        reader.push(text, &mut pieces);
        reader.finish(InputEnd::Clean, &mut pieces);
        while reader.missing_parameter().is_some() {
            reader.decline_values(&mut pieces);
            reader.finish(InputEnd::Clean, &mut pieces);
        }
        let only_calls = pieces.iter().all(|piece| match piece {
            ParsedPiece::Text(text) | ParsedPiece::Reasoning(text) => text.trim().is_empty(),
            ParsedPiece::CallStarted(..) | ParsedPiece::Arguments(_) | ParsedPiece::CallFinished => true,
            ParsedPiece::CallCut | ParsedPiece::InvalidCall => false,
        });
        let whole = reader.truncation.is_none()
            && reader.calls > 0
            && !reader.recoveries.contains(&Recovery::TailDropped)
            && !reader.recoveries.contains(&Recovery::MissingCallClose);
        if !only_calls || !whole {
            return false;
        }
        pieces.retain(|piece| !matches!(piece, ParsedPiece::Text(_) | ParsedPiece::Reasoning(_)));
        out.append(&mut pieces);
        self.recover(recovery);
        for recovery in reader.recoveries {
            self.recover(recovery);
        }
        self.calls += reader.calls;
        self.has_output = true;
        true
    }
}

/// Whether the text is the beginning of a closing tag.
fn closes(rest: &str) -> bool {
    "</".starts_with(rest) || rest.starts_with("</")
}
