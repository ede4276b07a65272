//! The stop reason of a reply, and what the upstream's stop reason says about the end of its text.

use toolgate_model::{Finish, StopReason};

use super::Interpreter;
use crate::parse::lex::InputEnd;

impl Interpreter {
    /// Any call makes the stop reason `ToolUse`, and a truncation is always reported (P28).
    pub(super) fn stop_reason(&self, upstream: StopReason) -> StopReason {
        if self.parser.truncation().is_some() {
            return StopReason::MaxTokens;
        }
        let calls = self.parser.calls() > 0;
        match upstream {
            StopReason::MaxTokens | StopReason::ContextWindow if calls && self.parser.is_done() => {
                StopReason::ToolUse
            }
            StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) | StopReason::ToolUse
                if calls =>
            {
                StopReason::ToolUse
            }
            StopReason::ToolUse => StopReason::EndTurn,
            other @ (StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::Other(_)
            | StopReason::MaxTokens
            | StopReason::ContextWindow
            | StopReason::PauseTurn
            | StopReason::Refusal
            | StopReason::ContentFilter) => other,
        }
    }
}

/// Whether the model finished its text or was cut off.
pub(super) fn input_end(finish: &Finish) -> InputEnd {
    match finish.stop {
        StopReason::MaxTokens | StopReason::ContextWindow | StopReason::ContentFilter => InputEnd::Cut,
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::Other(_) => InputEnd::Clean,
    }
}
