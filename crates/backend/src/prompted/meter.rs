//! What a turn cost: the host's figures for every request that was made for it, and an estimate where the host gives
//! none or was left before it could. An estimate says so in the reply: `"estimated": true` beside the counts.

use std::sync::Arc;

use serde_json::Value;
use toolgate_model::{DialectId, TurnEvent, TurnRequest, Usage, estimate};

/// Counts one turn, reply by reply.
pub(super) struct Meter {
    /// The client's, which is told of estimates.
    dialect: DialectId,
    /// What the reply that is being read answers.
    asked: Arc<TurnRequest>,
    /// How many bytes that reply has.
    heard: usize,
    /// What the host has said about it.
    counted: Option<Usage>,
    estimates: Estimates,
}

/// Whether some figure of the turn is an estimate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Estimates {
    None,
    Some,
}

impl Meter {
    pub(super) fn new(dialect: DialectId, asked: Arc<TurnRequest>) -> Self {
        Self { dialect, asked, heard: 0, counted: None, estimates: Estimates::None }
    }

    /// The turn goes on with the reply to another request.
    pub(super) fn ask(&mut self, asked: Arc<TurnRequest>) {
        self.asked = asked;
        self.heard = 0;
        self.counted = None;
    }

    /// Sees an event of the reply; its end gets the counts that the host did not give.
    pub(super) fn hear(&mut self, event: &mut TurnEvent) {
        match event {
            TurnEvent::BlockDelta(delta) => self.heard += delta.len(),
            TurnEvent::Usage(usage) => self.counted = Some(usage.clone()),
            TurnEvent::Finished(finish) => {
                if finish.usage.is_none() && self.counted.is_none() {
                    finish.usage = Some(estimated(&self.asked, self.heard));
                    self.estimates = Estimates::Some;
                }
                self.counted = finish.usage.clone().or(self.counted.take());
            }
            TurnEvent::Started(_) | TurnEvent::BlockStarted(_) | TurnEvent::BlockFinished(_) => {}
        }
    }

    /// The counts of a reply whose end is not waited for. Many hosts count only then, some count the input before.
    pub(super) fn leave(&mut self) -> Usage {
        let guess = estimated(&self.asked, self.heard);
        match self.counted.take() {
            Some(counted) if counted.output >= guess.output => counted,
            counted => {
                self.estimates = Estimates::Some;
                Usage { output: guess.output, ..counted.unwrap_or(guess) }
            }
        }
    }

    /// The counts of a question besides.
    pub(super) fn aside(&mut self, asked: &TurnRequest, counted: Option<Usage>, answer: &str) -> Usage {
        counted.unwrap_or_else(|| {
            self.estimates = Estimates::Some;
            estimated(asked, answer.len())
        })
    }

    /// Marks counts that are not all the host's.
    pub(super) fn mark(&self, events: &mut [TurnEvent]) {
        if self.estimates == Estimates::None {
            return;
        }
        for event in events {
            let usage = match event {
                TurnEvent::Usage(usage) => Some(usage),
                TurnEvent::Finished(finish) => finish.usage.as_mut(),
                TurnEvent::Started(_)
                | TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_) => None,
            };
            if let Some(usage) = usage {
                usage.extras.insert(self.dialect, "estimated", Value::Bool(true));
            }
        }
    }
}

fn estimated(asked: &TurnRequest, bytes: usize) -> Usage {
    Usage { input: estimate::input_tokens(asked), output: estimate::byte_tokens(bytes), ..Usage::default() }
}

#[cfg(test)]
mod tests;
