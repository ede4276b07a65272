//! Reasoning that a host writes into its text, between `<think>` and `</think>` at the very beginning.

use toolgate_model::{BlockEnd, BlockStart, Delta, Extras, TurnEvent};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Turns leading think tags into a reasoning block. Events go in one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThinkTags {
    state: State,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// No block has started.
    #[default]
    Before,
    /// The first text so far, which may still become the opening tag.
    Opening(String),
    /// After the opening tag, before any thought.
    Opened(String),
    /// Inside the tags. The text that is held back may be the end of the thought or its closing tag.
    Inside(String),
    /// After the closing tag, before any text.
    Closed,
    /// Everything passes.
    Done,
}

impl ThinkTags {
    /// Takes one event.
    pub(crate) fn event(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        match (std::mem::take(&mut self.state), event) {
            (State::Before, TurnEvent::BlockStarted(BlockStart::Text)) => {
                self.state = State::Opening(String::new());
            }
            (State::Before, event @ (TurnEvent::Started(_) | TurnEvent::Usage(_))) => out.push(event),
            (State::Opening(text), TurnEvent::BlockDelta(Delta::Text(more))) => {
                self.opening(text + &more, out);
            }
            (State::Opening(text), event) => {
                out.push(TurnEvent::BlockStarted(BlockStart::Text));
                push_text(text, out);
                self.pass(event, out);
            }
            (State::Opened(held), TurnEvent::BlockDelta(Delta::Text(more))) => {
                self.opened(&(held + &more), out);
            }
            (State::Inside(held), TurnEvent::BlockDelta(Delta::Text(more))) => {
                self.inside(&(held + &more), out);
            }
            (State::Opened(held) | State::Inside(held), event) => {
                push_text(held.trim_end().to_owned(), out);
                self.pass(event, out);
            }
            (State::Closed, TurnEvent::BlockDelta(Delta::Text(more))) => self.closed(&more, out),
            // Nothing follows the thought in its text block.
            (State::Closed, TurnEvent::BlockFinished(_)) => self.state = State::Done,
            (State::Before | State::Closed | State::Done, event) => self.pass(event, out),
        }
    }

    /// True if every further event passes unchanged.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn pass(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        self.state = State::Done;
        out.push(event);
    }

    fn opening(&mut self, text: String, out: &mut Vec<TurnEvent>) {
        let begun = text.trim_start();
        if let Some(thought) = begun.strip_prefix(OPEN) {
            out.push(TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)));
            return self.opened(thought, out);
        }
        if OPEN.starts_with(begun) {
            self.state = State::Opening(text);
            return;
        }
        out.push(TurnEvent::BlockStarted(BlockStart::Text));
        self.pass(TurnEvent::BlockDelta(Delta::Text(text)), out);
    }

    fn opened(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        let text = text.trim_start();
        if held_back(text) == text.len() && !text.contains(CLOSE) {
            self.state = State::Opened(text.to_owned());
            return;
        }
        self.inside(text, out);
    }

    fn inside(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        if let Some((thought, rest)) = text.split_once(CLOSE) {
            push_text(thought.trim_end().to_owned(), out);
            out.push(TurnEvent::BlockFinished(BlockEnd::default()));
            return self.closed(rest, out);
        }
        let held = held_back(text);
        let (certain, held) = text.split_at(text.len() - held);
        push_text(certain.to_owned(), out);
        self.state = State::Inside(held.to_owned());
    }

    fn closed(&mut self, text: &str, out: &mut Vec<TurnEvent>) {
        let text = text.trim_start();
        if text.is_empty() {
            self.state = State::Closed;
            return;
        }
        out.push(TurnEvent::BlockStarted(BlockStart::Text));
        self.pass(TurnEvent::BlockDelta(Delta::Text(text.to_owned())), out);
    }
}

/// The length of the end of a text that may not be sent yet: white space and the beginning of a closing tag.
fn held_back(text: &str) -> usize {
    let tag = (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or(0);
    let before = &text[..text.len() - tag];
    text.len() - before.trim_end().len()
}

fn push_text(text: String, out: &mut Vec<TurnEvent>) {
    if !text.is_empty() {
        out.push(TurnEvent::BlockDelta(Delta::Text(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a text in these pieces: reasoning in brackets.
    fn blocks(pieces: &[&str]) -> String {
        let mut tags = ThinkTags::default();
        let mut out = Vec::new();
        tags.event(TurnEvent::BlockStarted(BlockStart::Text), &mut out);
        for piece in pieces {
            tags.event(TurnEvent::BlockDelta(Delta::Text((*piece).to_owned())), &mut out);
        }
        tags.event(TurnEvent::BlockFinished(BlockEnd::default()), &mut out);
        let mut closing = "";
        let mut shown = String::new();
        for event in out {
            match event {
                TurnEvent::BlockStarted(BlockStart::Reasoning(_)) => {
                    shown.push('[');
                    closing = "]";
                }
                TurnEvent::BlockStarted(_) => {
                    shown.push('(');
                    closing = ")";
                }
                TurnEvent::BlockDelta(Delta::Text(text)) => shown.push_str(&text),
                TurnEvent::BlockFinished(_) => shown.push_str(closing),
                other @ (TurnEvent::Started(_)
                | TurnEvent::BlockDelta(Delta::Paragraph(_) | Delta::Arguments(_))
                | TurnEvent::Usage(_)
                | TurnEvent::Finished(_)) => panic!("{other:?}"),
            }
        }
        shown
    }

    #[test]
    fn leading_think_tags_are_reasoning_however_they_are_cut() {
        let checks = [
            ("<think>\nhm, a < b\n</think>\n\nYes.", "[hm, a < b](Yes.)"),
            ("  <think>hm</think>Yes.", "[hm](Yes.)"),
            ("<think>hm</think>", "[hm]"),
            ("<think>hm and", "[hm and]"),
            ("<thinking is hard", "(<thinking is hard)"),
            ("<th", "(<th)"),
            ("No <think>tags</think>", "(No <think>tags</think>)"),
            ("", "()"),
        ];
        for (text, expected) in checks {
            assert_eq!(blocks(&[text]), expected);
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(blocks(&letters), expected, "in single characters");
        }
    }

    #[test]
    fn only_the_first_block_of_a_reply_can_have_think_tags() {
        let mut tags = ThinkTags::default();
        let events = [
            TurnEvent::BlockStarted(BlockStart::Reasoning(Extras::NONE)),
            TurnEvent::BlockFinished(BlockEnd::default()),
            TurnEvent::BlockStarted(BlockStart::Text),
            TurnEvent::BlockDelta(Delta::Text("<think>quoted</think>".to_owned())),
        ];
        let mut out = Vec::new();
        events.clone().into_iter().for_each(|event| tags.event(event, &mut out));
        assert_eq!(out, events);
    }
}
