//! Makes a reply's ending agree with its content when it crosses dialects.

use crate::event::{BlockStart, StopReason, TurnEvent};

/// Sees a reply's events pass and corrects why it ended: any call means [`StopReason::ToolUse`] (T14), no call means
/// anything but that (T15), and an answer that was cut short stays so (T16).
#[derive(Debug, Default)]
pub struct Settler {
    calls: bool,
}

impl Settler {
    /// Before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes the event on, corrected.
    pub fn event(&mut self, mut event: TurnEvent) -> TurnEvent {
        match &mut event {
            TurnEvent::BlockStarted(BlockStart::ToolCall { .. }) => self.calls = true,
            TurnEvent::Finished(finish) => settle(&mut finish.stop, self.calls),
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

fn settle(stop: &mut StopReason, calls: bool) {
    let settled = match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_) if calls => StopReason::ToolUse,
        StopReason::ToolUse if !calls => StopReason::EndTurn,
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
    *stop = settled;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_decide_how_a_reply_ended() {
        let check = |stop: StopReason, calls: bool, expect: StopReason| {
            let mut settled = stop;
            settle(&mut settled, calls);
            assert_eq!(settled, expect);
        };
        check(StopReason::EndTurn, true, StopReason::ToolUse); // T14
        check(StopReason::Other(String::new()), true, StopReason::ToolUse); // T14
        check(StopReason::ToolUse, false, StopReason::EndTurn); // T15
        check(StopReason::MaxTokens, true, StopReason::MaxTokens); // T16
        check(StopReason::EndTurn, false, StopReason::EndTurn);
    }
}
