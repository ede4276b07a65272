//! What is kept from the client while the answer may still be asked for again: from a call that cannot be understood
//! on, or, for a client that waits for the whole reply anyway, everything.

use toolgate_model::TurnEvent;

use super::{Interpreter, Open};
use crate::fault::Fault;
use crate::parse::Parser;

/// How much is kept; an answer that grows past it goes out as it is.
const MAX_HOLD: usize = 1024 * 1024;

/// Events that have not been sent.
#[derive(Debug)]
pub(super) struct Hold {
    since: Since,
    events: Vec<TurnEvent>,
    bytes: usize,
    /// How things stood when it began.
    open: Open,
    calls_begun: usize,
}

/// Since when events are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Start,
    Refusal,
}

impl Interpreter {
    /// Before events are written.
    pub(super) fn mark(&mut self, out: &[TurnEvent]) {
        self.held_from = out.len();
    }

    /// After events were written: those that belong to the hold are taken out again.
    pub(super) fn keep(&mut self, out: &mut Vec<TurnEvent>) {
        let Some(hold) = &mut self.hold else { return };
        for event in out.drain(self.held_from..) {
            hold.bytes += size(&event);
            hold.events.push(event);
        }
        if hold.bytes > MAX_HOLD {
            self.retries = 0;
            self.mark(out);
            self.release(out);
        }
    }

    /// The answer began. A client that waits for all of it can be spared a bad one.
    pub(super) fn hold_whole(&mut self, out: &[TurnEvent]) {
        if self.plan.whole.is_on() && self.retries > 0 {
            self.begin(Since::Start, out);
        }
    }

    /// What comes now is a call that cannot be understood.
    pub(super) fn hold_refusal(&mut self, out: &[TurnEvent]) {
        if self.hold.is_none() && self.may_retry() {
            self.begin(Since::Refusal, out);
        }
    }

    /// A call comes that can be understood, so the answer is not asked for again.
    pub(super) fn release_refusal(&mut self, out: &mut Vec<TurnEvent>) {
        if self.hold.as_ref().is_some_and(|hold| hold.since == Since::Refusal) {
            self.release(out);
        }
    }

    /// Sends what was held, before what has been written since.
    pub(super) fn release(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(hold) = self.hold.take() {
            out.splice(self.held_from..self.held_from, hold.events);
        }
    }

    /// The answer comes anew: nothing of what was held was ever said.
    pub(super) fn forget(&mut self, out: &mut Vec<TurnEvent>) {
        if let Some(hold) = self.hold.take() {
            self.open = hold.open;
            self.calls_begun = hold.calls_begun;
        }
        self.close_block(out);
        self.deferred.clear();
        self.said = Some(String::new());
        self.parser = Parser::new(self.plan.rules.clone());
        self.hold_whole(out);
    }

    /// Why the answer should be asked for again, if it may be.
    pub(super) fn fault(&self, trial: &Parser) -> Option<Fault> {
        let held = self.hold.as_ref().is_some_and(|hold| hold.since == Since::Start);
        let fault = trial.fault().filter(|_| self.may_retry())?;
        (held || trial.calls() == 0).then(|| fault.clone())
    }

    fn may_retry(&self) -> bool {
        let unsent = self.calls_begun == 0 || self.hold.is_some();
        self.retries > 0 && unsent && self.said.is_some()
    }

    fn begin(&mut self, since: Since, out: &[TurnEvent]) {
        self.mark(out);
        let (open, calls_begun) = (self.open, self.calls_begun);
        self.hold = Some(Hold { since, events: Vec::new(), bytes: 0, open, calls_begun });
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
