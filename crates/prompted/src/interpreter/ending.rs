//! Why a reply ends, and what that says about its last words.

use toolgate_model::{Finish, StopReason};

use super::Interpreter;
use crate::parse::lex::End;

impl Interpreter {
    /// Calls decide why the reply ended; a cut is never hidden (P28).
    pub(super) fn stop(&self, upstream: StopReason) -> StopReason {
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

/// Whether the end of a reply is an end of what the model had to say.
pub(super) fn ending(finish: &Finish) -> End {
    match finish.stop {
        StopReason::MaxTokens | StopReason::ContextWindow | StopReason::ContentFilter => End::Cut,
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::Other(_) => End::Clean,
    }
}
