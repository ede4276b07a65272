//! From the events of a reply to what people watch.

use super::{Observation, RunsIn, UsageCounts};
use crate::event::{BlockStart, Delta, TurnEvent};
use crate::ids::{CallId, ToolName};
use crate::message::{Message, Part, ToolResult, ToolResults};

/// Turns the events of the replies of one turn into observations. Block numbers go on from reply to reply.
#[derive(Debug, Default)]
pub struct ReplyWatcher {
    next_block: u32,
    open: Open,
}

/// The block that is open.
#[derive(Debug, Default)]
enum Open {
    #[default]
    Nothing,
    Text(u32),
    Reasoning {
        block: u32,
        /// True once it has a paragraph.
        has_text: bool,
    },
    Call(CallId),
}

impl ReplyWatcher {
    /// Before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// The observation for an event of the reply. `tool` gives the name to show for a tool, and who runs it.
    pub fn event(
        &mut self,
        event: &TurnEvent,
        tool: impl FnOnce(&ToolName) -> (ToolName, RunsIn),
    ) -> Option<Observation> {
        match event {
            TurnEvent::BlockStarted(start) => self.start(start, tool),
            TurnEvent::BlockDelta(delta) => self.delta(delta),
            TurnEvent::BlockFinished(_) => match std::mem::take(&mut self.open) {
                Open::Call(call) => Some(Observation::InputComplete { call }),
                Open::Nothing | Open::Text(_) | Open::Reasoning { .. } => None,
            },
            TurnEvent::Usage(usage) => Some(Observation::Usage(UsageCounts::from(usage))),
            TurnEvent::Started(_) | TurnEvent::Finished(_) => None,
        }
    }

    /// The input of this call is complete although its block is still open. Nothing if that was reported before.
    pub fn input_complete(&mut self, call: &str) -> Option<Observation> {
        if !matches!(&self.open, Open::Call(open) if open.as_str() == call) {
            return None;
        }
        self.open = Open::Nothing;
        Some(Observation::InputComplete { call: call.into() })
    }

    fn start(
        &mut self,
        start: &BlockStart,
        tool: impl FnOnce(&ToolName) -> (ToolName, RunsIn),
    ) -> Option<Observation> {
        let block = self.next_block;
        self.next_block = block.saturating_add(1);
        match start {
            BlockStart::Text | BlockStart::Refusal => self.open = Open::Text(block),
            BlockStart::Reasoning(_) => self.open = Open::Reasoning { block, has_text: false },
            BlockStart::Opaque(_) => self.open = Open::Nothing,
            BlockStart::ToolCall { id, name, kind: _ } => {
                self.open = Open::Call(id.clone());
                let (tool, runs_in) = tool(name);
                return Some(Observation::CallStarted { call: id.clone(), tool, runs_in });
            }
        }
        None
    }

    fn delta(&mut self, delta: &Delta) -> Option<Observation> {
        match (&mut self.open, delta) {
            (Open::Text(block), Delta::Text(text)) => {
                Some(Observation::TextDelta { block: *block, text: text.clone() })
            }
            (Open::Reasoning { block, has_text }, Delta::Text(text)) => {
                *has_text = true;
                Some(Observation::ReasoningDelta { block: *block, text: text.clone() })
            }
            (Open::Reasoning { block, has_text: true }, Delta::Paragraph(_)) => {
                Some(Observation::ReasoningDelta { block: *block, text: "\n\n".to_owned() })
            }
            (Open::Call(call), Delta::Arguments(text)) => {
                Some(Observation::InputDelta { call: call.clone(), text: text.clone() })
            }
            // The grammar allows no others; an empty paragraph needs no separator.
            (Open::Nothing | Open::Text(_) | Open::Reasoning { .. } | Open::Call(_), _) => None,
        }
    }
}

/// The results that a request brings: those after the model's last message.
pub fn new_results(messages: &[Message]) -> impl Iterator<Item = Observation> {
    let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
    let first = messages.iter().rposition(is_reply).map_or(0, |last| last + 1);
    let results = messages[first..].iter().filter_map(|message| match message {
        Message::ToolResults(ToolResults { results }) => Some(results),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    });
    results.flatten().map(|result| {
        let ToolResult { call, kind: _, content, outcome, extras: _ } = result;
        Observation::result(call.clone(), *outcome, shown(content))
    })
}

/// The text of a result, with a mark in place of each part that is not text.
fn shown(content: &[Part]) -> String {
    let parts: Vec<&str> = content
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.text.as_str(),
            Part::Image(_) => "[image]",
            Part::Document(_) => "[document]",
            Part::Audio(_) => "[audio]",
            Part::Opaque(_) => "[other content]",
        })
        .collect();
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockEnd, CallKind, Extras, Finish, ReasoningKind, ReplyHead, ToolOutcome, Usage};

    fn watch(events: &[TurnEvent]) -> Vec<Observation> {
        let mut watcher = ReplyWatcher::new();
        let tool = |name: &ToolName| (name.clone(), RunsIn::Client);
        events.iter().filter_map(|event| watcher.event(event, tool)).collect()
    }

    #[test]
    fn a_call_starts_grows_and_is_complete() {
        // C6
        let call = CallId::from("c");
        let start = BlockStart::ToolCall { id: call.clone(), name: "f".into(), kind: CallKind::Function };
        let seen = watch(&[
            TurnEvent::Started(ReplyHead::default()),
            TurnEvent::BlockStarted(start),
            TurnEvent::BlockDelta(Delta::Arguments("{".to_owned())),
            TurnEvent::BlockDelta(Delta::Arguments("}".to_owned())),
            TurnEvent::BlockFinished(BlockEnd::default()),
            TurnEvent::Finished(Finish::default()),
        ]);
        let input = |text: &str| Observation::InputDelta { call: call.clone(), text: text.to_owned() };
        let expected = [
            Observation::CallStarted { call: call.clone(), tool: "f".into(), runs_in: RunsIn::Client },
            input("{"),
            input("}"),
            Observation::InputComplete { call: call.clone() },
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_input_is_completed_once() {
        let mut watcher = ReplyWatcher::new();
        let tool = |name: &ToolName| (name.clone(), RunsIn::Agent);
        let start = BlockStart::ToolCall { id: "c".into(), name: "f".into(), kind: CallKind::Function };
        assert!(watcher.event(&TurnEvent::BlockStarted(start), tool).is_some());
        assert_eq!(watcher.input_complete("other"), None);
        assert_eq!(watcher.input_complete("c"), Some(Observation::InputComplete { call: "c".into() }));
        assert_eq!(watcher.input_complete("c"), None);
        assert_eq!(watcher.event(&TurnEvent::BlockFinished(BlockEnd::default()), tool), None);
    }

    #[test]
    fn texts_and_paragraphs_of_reasoning_keep_their_blocks() {
        let text = |text: &str| TurnEvent::BlockDelta(Delta::Text(text.to_owned()));
        let end = || TurnEvent::BlockFinished(BlockEnd::default());
        let paragraph = || TurnEvent::BlockDelta(Delta::Paragraph(ReasoningKind::Summary));
        let seen = watch(&[
            TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)),
            paragraph(),
            text("a"),
            paragraph(),
            text("b"),
            end(),
            TurnEvent::BlockStarted(BlockStart::Text),
            text("c"),
            end(),
            TurnEvent::Usage(Usage { output: 3, ..Usage::default() }),
        ]);
        let reasoning = |text: &str| Observation::ReasoningDelta { block: 0, text: text.to_owned() };
        let expected = [
            reasoning("a"),
            reasoning("\n\n"),
            reasoning("b"),
            Observation::TextDelta { block: 1, text: "c".to_owned() },
            Observation::Usage(UsageCounts { output: 3, ..UsageCounts::default() }),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn only_results_after_the_last_reply_are_new() {
        let result = |call: &str| {
            Message::ToolResults(ToolResults {
                results: vec![ToolResult {
                    call: call.into(),
                    kind: CallKind::Function,
                    content: vec![Part::text(call), Part::text("more")],
                    outcome: ToolOutcome::Success,
                    extras: Extras::NONE,
                }],
            })
        };
        let reply = || Message::Assistant(crate::AssistantMessage::default());
        let new: Vec<Observation> = new_results(&[reply(), result("old"), reply(), result("new")]).collect();
        let expected = Observation::result("new".into(), ToolOutcome::Success, "new\nmore".to_owned());
        assert_eq!(new, [expected]);
        assert_eq!(new_results(&[result("first"), reply()]).count(), 0);
    }
}
