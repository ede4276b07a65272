//! Checks that a sequence of events is a reply. Tests run every reader's output through it, and the fold relies on it.

use std::fmt;

use crate::event::{BlockStart, Delta, TurnEvent};

/// Accepts or rejects events, one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grammar(State);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    Between,
    Inside(Inside),
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Text,
    Reasoning,
    Call,
    Opaque,
}

/// An event that is not allowed in the current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarError {
    what: &'static str,
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for GrammarError {}

impl Grammar {
    /// Before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts the next event, or returns why it is not allowed.
    pub fn accept(&mut self, event: &TurnEvent) -> Result<(), GrammarError> {
        self.0 = match (self.0, event) {
            (State::Between, TurnEvent::BlockStarted(start)) => State::Inside(inside(start)),
            (State::Between | State::Inside(_), TurnEvent::Usage(_)) => self.0,
            (State::Inside(block), TurnEvent::BlockDelta(delta)) if fits(block, delta) => self.0,
            (State::Before, TurnEvent::Started(_)) | (State::Inside(_), TurnEvent::BlockFinished(_)) => {
                State::Between
            }
            (State::Between, TurnEvent::Finished(_)) => State::After,
            (state, event) => return Err(rejection(state, event)),
        };
        Ok(())
    }

    /// True once the reply is complete.
    pub fn is_finished(&self) -> bool {
        self.0 == State::After
    }

    /// Fails unless the reply is complete.
    pub fn end(&self) -> Result<(), GrammarError> {
        if self.is_finished() {
            Ok(())
        } else {
            Err(GrammarError { what: "the stream ended before the reply did" })
        }
    }
}

fn inside(start: &BlockStart) -> Inside {
    match start {
        BlockStart::Text | BlockStart::Refusal => Inside::Text,
        BlockStart::Reasoning(_) => Inside::Reasoning,
        BlockStart::ToolCall { .. } => Inside::Call,
        BlockStart::Opaque(_) => Inside::Opaque,
    }
}

fn fits(block: Inside, delta: &Delta) -> bool {
    match delta {
        Delta::Text(_) => matches!(block, Inside::Text | Inside::Reasoning),
        Delta::Paragraph(_) => block == Inside::Reasoning,
        Delta::Arguments(_) => block == Inside::Call,
    }
}

fn rejection(state: State, event: &TurnEvent) -> GrammarError {
    let what = match (state, event) {
        (State::After, _) => "an event after the reply was finished",
        (State::Before, _) => "an event before the reply was started",
        (_, TurnEvent::Started(_)) => "a reply started twice",
        (State::Inside(_), TurnEvent::BlockStarted(_)) => "a block started inside another",
        (State::Inside(_), TurnEvent::Finished(_)) => "a reply finished inside a block",
        (State::Inside(_), _) => "a delta that does not fit its block",
        (State::Between, _) => "a delta or an end without an open block",
    };
    GrammarError { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{BlockEnd, Finish, ReplyHead};

    fn check(events: &[TurnEvent], expect: Result<(), &str>) {
        let mut grammar = Grammar::new();
        let got = events.iter().try_for_each(|event| grammar.accept(event)).and_then(|()| grammar.end());
        assert_eq!(got.map_err(|error| error.to_string()), expect.map_err(str::to_owned));
    }

    #[test]
    fn a_reply_is_started_filled_and_finished() {
        let started = || TurnEvent::Started(ReplyHead::default());
        let text = || TurnEvent::BlockStarted(BlockStart::Text);
        let delta = || TurnEvent::BlockDelta(Delta::Text("a".into()));
        let end = || TurnEvent::BlockFinished(BlockEnd::default());
        let finished = || TurnEvent::Finished(Finish::default());

        check(&[started(), text(), delta(), end(), finished()], Ok(()));
        check(&[started(), finished()], Ok(()));
        check(&[started(), text(), delta()], Err("the stream ended before the reply did"));
        check(&[text()], Err("an event before the reply was started"));
        check(&[started(), text(), text()], Err("a block started inside another"));
        check(&[started(), delta()], Err("a delta or an end without an open block"));
        check(&[started(), text(), finished()], Err("a reply finished inside a block"));
        check(&[started(), finished(), finished()], Err("an event after the reply was finished"));
        let arguments = TurnEvent::BlockDelta(Delta::Arguments("{".into()));
        check(&[started(), text(), arguments], Err("a delta that does not fit its block"));
    }
}
