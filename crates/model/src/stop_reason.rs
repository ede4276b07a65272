//! Makes a reply's stop reason agree with its content when it is translated to another dialect.

use crate::event::{BlockStart, StopReason, TurnEvent};

/// Watches a reply's events and corrects its stop reason: with a call it is [`StopReason::ToolUse`] (T14), without one it
/// is not (T15), and a truncated reply stays truncated (T16).
#[derive(Debug, Default)]
pub struct StopReasonNormalizer {
    has_calls: bool,
}

impl StopReasonNormalizer {
    /// Before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the event, with a corrected stop reason.
    pub fn event(&mut self, mut event: TurnEvent) -> TurnEvent {
        match &mut event {
            TurnEvent::BlockStarted(BlockStart::ToolCall { .. }) => self.has_calls = true,
            TurnEvent::Finished(finish) => normalize(&mut finish.stop, self.has_calls),
            TurnEvent::BlockStarted(
                BlockStart::Text | BlockStart::Refusal | BlockStart::Reasoning(_) | BlockStart::Opaque(_),
            )
            | TurnEvent::Started(_)
            | TurnEvent::BlockDelta(_)
            | TurnEvent::BlockFinished(_)
            | TurnEvent::Usage(_) => {}
        }
        event
    }
}

fn normalize(stop: &mut StopReason, has_calls: bool) {
    let normalized = match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) if has_calls => {
            StopReason::ToolUse
        }
        StopReason::ToolUse if !has_calls => StopReason::EndTurn,
        StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::Other(_)
        | StopReason::ToolUse
        | StopReason::MaxTokens
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::ContextWindow => return,
    };
    *stop = normalized;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_decide_the_stop_reason() {
        let check = |stop: StopReason, has_calls: bool, expect: StopReason| {
            let mut normalized = stop;
            normalize(&mut normalized, has_calls);
            assert_eq!(normalized, expect);
        };
        check(StopReason::EndTurn, true, StopReason::ToolUse); // T14
        check(StopReason::Other(String::new()), true, StopReason::ToolUse); // T14
        check(StopReason::ToolUse, false, StopReason::EndTurn); // T15
        check(StopReason::MaxTokens, true, StopReason::MaxTokens); // T16
        check(StopReason::EndTurn, false, StopReason::EndTurn);
    }
}
