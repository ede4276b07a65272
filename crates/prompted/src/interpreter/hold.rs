//! Events held back while the answer may still be replaced by a retry: the events from an invalid call on or,
//! if the client waits for the whole reply anyway, all events.

use toolgate_model::{Delivery, TurnEvent};

use super::{Interpreter, OutputBlock};
use crate::fault::CallFault;
use crate::parse::Parser;

/// The maximum size of held events; a longer answer is sent as it is.
const MAX_HOLD: usize = 1024 * 1024;

/// Events that have not been sent.
#[derive(Debug)]
pub(super) struct Hold {
    scope: HoldScope,
    events: Vec<TurnEvent>,
    bytes: usize,
    /// The interpreter's state when the hold began.
    open: OutputBlock,
    calls_started: usize,
}

/// Which events are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoldScope {
    WholeReply,
    InvalidCall,
}

impl Interpreter {
    /// Remembers where new events will start in the output.
    pub(super) fn mark_output(&mut self, out: &[TurnEvent]) {
        self.output_mark = out.len();
    }

    /// Moves the new events from the output to the hold, if there is one.
    pub(super) fn move_to_hold(&mut self, out: &mut Vec<TurnEvent>) {
        let Some(hold) = &mut self.hold else { return };
        for event in out.drain(self.output_mark..) {
            hold.bytes += size(&event);
            hold.events.push(event);
        }
        if hold.bytes > MAX_HOLD {
            self.retries_left = 0;
            self.mark_output(out);
            self.release_hold(out);
        }
    }

    /// Holds the whole reply if the client waits for all of it, so that a retry can replace it.
    pub(super) fn hold_whole_reply(&mut self, out: &[TurnEvent]) {
        if self.plan.delivery == Delivery::Whole && self.retries_left > 0 {
            self.begin_hold(HoldScope::WholeReply, out);
        }
    }

    /// Holds the events from an invalid call on.
    pub(super) fn hold_invalid_call(&mut self, out: &[TurnEvent]) {
        if self.hold.is_none() && self.may_retry() {
            self.begin_hold(HoldScope::InvalidCall, out);
        }
    }

    /// Releases an invalid call: a valid call follows, so there will be no retry.
    pub(super) fn release_invalid_call(&mut self, out: &mut Vec<TurnEvent>) {
        if self.hold.as_ref().is_some_and(|hold| hold.scope == HoldScope::InvalidCall) {
            self.release_hold(out);
        }
    }

    /// Inserts the held events before the new events in the output.
    pub(super) fn release_hold(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(hold) = self.hold.take() {
            out.splice(self.output_mark..self.output_mark, hold.events);
        }
    }

    /// Discards the held events and starts over with the new answer.
    pub(super) fn restart_answer(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(hold) = self.hold.take() {
            self.open = hold.open;
            self.calls_started = hold.calls_started;
        }
        self.close_block(out);
        self.deferred.clear();
        self.answer = Some(String::new());
        self.parser = Parser::new(self.plan.rules.clone());
        self.hold_whole_reply(out);
    }

    /// The fault to report to the model, if a retry is possible.
    pub(super) fn retry_fault(&self, trial: &Parser) -> Option<CallFault> {
        let holds_whole_reply = self.hold.as_ref().is_some_and(|hold| hold.scope == HoldScope::WholeReply);
        let fault = trial.fault().filter(|_| self.may_retry())?;
        (holds_whole_reply || trial.calls() == 0).then(|| fault.clone())
    }

    fn may_retry(&self) -> bool {
        let unsent = self.calls_started == 0 || self.hold.is_some();
        self.retries_left > 0 && unsent && self.answer.is_some()
    }

    fn begin_hold(&mut self, scope: HoldScope, out: &[TurnEvent]) {
        self.mark_output(out);
        let (open, calls_started) = (self.open, self.calls_started);
        self.hold = Some(Hold { scope, events: Vec::new(), bytes: 0, open, calls_started });
    }
}

fn size(event: &TurnEvent) -> usize {
    match event {
        TurnEvent::BlockDelta(delta) => delta.len(),
        TurnEvent::Started(_)
        | TurnEvent::BlockStarted(_)
        | TurnEvent::BlockFinished(_)
        | TurnEvent::Usage(_)
        | TurnEvent::Finished(_) => 0,
    }
}
