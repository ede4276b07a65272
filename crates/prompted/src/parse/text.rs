//! Prose: streams at once, and holds only the start of a line that may become a trigger, a fence or a reasoning tag
//! (P1 to P6).

use super::judge::is_slip;
use super::lex::{Element, End, Lex, tag, word};
use super::start::{AfterTrigger, Start, after_trigger, is_cut_start, start};
use super::{MAX_STAGED, Parser, Piece, State, Step, push_text};
use crate::fault::Fault;
use crate::options::{AfterCalls, ReasoningTag};
use crate::recovery::{Recovery, Truncation};
use crate::trigger::TRIGGER_OPENING;

/// A line indented further is not looked at.
const MAX_INDENT: usize = 32;
/// A fence's first line is not longer.
const MAX_FENCE_LINE: usize = 120;
/// How many bytes of prose after a trigger may come before its call (P23).
const MAX_SEEK: usize = 4_000;
/// How much reasoning is remembered in case the answer is in it (P3).
const MAX_THOUGHT: usize = 1024 * 1024;

/// Where in the prose the reader is. This is state of the stream, not of what happens to be visible (P5).
#[derive(Clone, Debug)]
pub(crate) struct Prose {
    pub(crate) at_line_start: bool,
    fence: Option<Fence>,
    /// How much further a call may come without another trigger (P23).
    seek: usize,
    /// Spaces after reasoning belong to neither side.
    skip_spaces: bool,
}

impl Default for Prose {
    fn default() -> Self {
        Self { at_line_start: true, fence: None, seek: 0, skip_spaces: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: char,
    len: usize,
}

/// What a line begins with.
enum Line {
    Wait,
    Plain,
    /// Up to and with the trigger, or up to where the end of the answer cut what would have begun calls.
    Trigger(usize),
    /// Up to where a call without a trigger of its own begins.
    Call(usize),
    Think(usize, ReasoningTag),
    FenceOpen(Fence),
    FenceClose,
    /// A fence whose first content is the trigger.
    FencedTrigger,
}

impl Parser {
    pub(super) fn step_text(&mut self, end: End, out: &mut Vec<Piece>) -> Step {
        self.state = State::Text;
        if self.prose.skip_spaces {
            let rest = self.rest();
            self.consume(rest.len() - rest.trim_start().len());
            self.prose.skip_spaces = self.rest().is_empty();
        }
        if !self.prose.at_line_start {
            let line = memchr::memchr(b'\n', self.rest().as_bytes());
            let len = line.unwrap_or(self.rest().len());
            self.prose.seek = self.prose.seek.saturating_sub(len);
            self.text(len, out);
            if line.is_none() {
                return Step::Stop;
            }
        }
        if self.rest().is_empty() {
            return Step::Stop;
        }
        // The line end before a trigger belongs to the trigger, so it waits for what the next line begins with.
        let separator = usize::from(!self.prose.at_line_start);
        let line = self.line(&self.rest()[separator..], end);
        self.enter_line(line, separator, out)
    }

    fn enter_line(&mut self, line: Line, separator: usize, out: &mut Vec<Piece>) -> Step {
        match line {
            Line::Wait => return Step::Stop,
            Line::Plain => {
                self.text(separator, out);
                self.prose.at_line_start = false;
                // An empty line is followed by another line start.
                return Step::Again;
            }
            Line::FenceOpen(fence) => {
                self.prose.fence = Some(fence);
                self.text(separator, out);
                self.prose.at_line_start = false;
            }
            Line::FenceClose => {
                self.prose.fence = None;
                self.text(separator, out);
                self.prose.at_line_start = false;
            }
            Line::Trigger(len) => {
                self.begin_stage();
                self.consume(separator + len);
                self.prose.seek = 0;
                self.prose.at_line_start = false;
                self.calls_before = self.calls;
                self.state = State::Calls;
            }
            Line::Call(len) => {
                self.begin_stage();
                self.consume(separator + len);
                let recovery =
                    if self.prose.seek > 0 { Recovery::ProseAfterTrigger } else { Recovery::Markerless };
                self.recover(recovery);
                self.calls_before = self.calls;
                self.state = State::Calls;
            }
            Line::Think(len, tag) => {
                self.text(separator, out);
                self.consume(len);
                self.state = State::Think(tag.close);
            }
            Line::FencedTrigger => {
                self.state = State::Fenced(String::new());
            }
        }
        Step::Again
    }

    /// What the line that begins here is. `rest` may be empty.
    fn line(&self, rest: &str, end: End) -> Line {
        let line = rest.trim_start_matches([' ', '\t']);
        let indent = rest.len() - line.len();
        if indent > MAX_INDENT || line.starts_with('\n') {
            return Line::Plain;
        }
        if line.is_empty() {
            return if end == End::More { Line::Wait } else { Line::Plain };
        }
        if let Some(fence) = self.prose.fence {
            return fence_close(line, fence, end);
        }
        let mut wait = false;
        if let Some(trigger) = &self.rules.trigger {
            match word(line, trigger, end) {
                Lex::Found(()) => return self.trigger_line(indent, &line[trigger.len()..], end),
                Lex::Wait => wait = true,
                Lex::Absent => {}
            }
        }
        for tag in &self.rules.options.reasoning_tags {
            match word(line, &tag.open, end) {
                Lex::Found(()) => return Line::Think(indent + tag.open.len(), tag.clone()),
                Lex::Wait => wait = true,
                Lex::Absent => {}
            }
        }
        match self.bare_call(line, end) {
            Lex::Found(()) => return Line::Call(indent),
            Lex::Wait => wait = true,
            Lex::Absent => {}
        }
        if self.is_cut_line(line, end) {
            return Line::Trigger(indent);
        }
        if wait { Line::Wait } else { self.fence_open(line, end) }
    }

    /// P28: the answer ended inside a trigger, or inside the first tag of the call that its trigger announced.
    fn is_cut_line(&self, line: &str, end: End) -> bool {
        let trigger = self.rules.trigger.as_deref().filter(|_| !self.rules.is_strict());
        let Some(trigger) = trigger.filter(|_| matches!(end, End::Clean | End::Cut)) else { return false };
        let announced = self.prose.seek > 0 && is_cut_start(line, &self.rules, end);
        announced || (line.len() >= TRIGGER_OPENING.len() && trigger.starts_with(line))
    }

    fn trigger_line(&self, indent: usize, after: &str, end: End) -> Line {
        match after_trigger(after, &self.rules, end) {
            AfterTrigger::Wait => Line::Wait,
            AfterTrigger::Mention => Line::Plain,
            AfterTrigger::Call => Line::Trigger(indent + self.rules.trigger.as_ref().map_or(0, String::len)),
        }
    }

    /// P6, P23: a call that stands here without a trigger right before it.
    fn bare_call(&self, line: &str, end: End) -> Lex<()> {
        let seeking = self.prose.seek > 0;
        if self.rules.trigger.is_none() || !(seeking || self.rules.markerless.is_on()) {
            return Lex::Absent;
        }
        match tag(line, end) {
            Lex::Wait => Lex::Wait,
            Lex::Absent => Lex::Absent,
            Lex::Found(tag) => match &tag.element {
                Element::CallOpen(_, name) if self.rules.knows(name) => Lex::Found(()),
                Element::Open(_) if seeking => match start(line, &self.rules, end) {
                    Lex::Found(Start::Wrapper(_) | Start::Arguments { .. }) => Lex::Found(()),
                    Lex::Wait => Lex::Wait,
                    Lex::Found(Start::Tagged(_) | Start::Json | Start::Trigger(_)) | Lex::Absent => {
                        Lex::Absent
                    }
                },
                Element::CallOpen(..)
                | Element::CallClose(_)
                | Element::ParameterOpen(..)
                | Element::ParameterClose
                | Element::Open(_)
                | Element::Close(_)
                | Element::Other => Lex::Absent,
            },
        }
    }

    /// P5
    fn fence_open(&self, line: &str, end: End) -> Line {
        let Some(mark @ ('`' | '~')) = line.chars().next() else { return Line::Plain };
        let run = line.len() - line.trim_start_matches(mark).len();
        if run == line.len() && end == End::More && run <= MAX_FENCE_LINE {
            return Line::Wait;
        }
        if run < 3 {
            return Line::Plain;
        }
        let fence = Line::FenceOpen(Fence { mark, len: run });
        let Some(line_end) = line.find('\n').filter(|at| *at <= MAX_FENCE_LINE) else {
            return if end == End::More && line.len() <= MAX_FENCE_LINE { Line::Wait } else { fence };
        };
        if mark == '`' && line[run..line_end].contains('`') {
            return Line::Plain;
        }
        let Some(trigger) = self.rules.trigger.as_ref().filter(|_| self.fenced_calls_run()) else {
            return fence;
        };
        let content = &line[line_end + 1..];
        let first = content.trim_start();
        if content.len() - first.len() > MAX_INDENT {
            return fence;
        }
        if first.is_empty() {
            return if end == End::More { Line::Wait } else { fence };
        }
        match word(first, trigger, end) {
            Lex::Wait => Line::Wait,
            Lex::Absent => fence,
            Lex::Found(()) => match after_trigger(&first[trigger.len()..], &self.rules, end) {
                AfterTrigger::Wait => Line::Wait,
                AfterTrigger::Mention => fence,
                AfterTrigger::Call => Line::FencedTrigger,
            },
        }
    }

    fn fenced_calls_run(&self) -> bool {
        self.rules.options.calls_in_fence.is_on() && !self.rules.is_strict()
    }

    /// Everything is kept until the answer ends: only then is it known whether the fence ended it.
    pub(super) fn step_fenced(&mut self, mut held: String, out: &mut Vec<Piece>) -> Step {
        held.push_str(self.rest());
        self.consume(self.rest().len());
        if held.len() > MAX_STAGED {
            self.produced = true;
            push_text(&held, out);
            self.state = State::Inert;
        } else {
            self.state = State::Fenced(held);
        }
        Step::Stop
    }

    /// P2: what is rehearsed in reasoning does not run.
    pub(super) fn step_think(&mut self, close: String, end: End, out: &mut Vec<Piece>) -> Step {
        let Some(at) = memchr::memchr(b'<', self.rest().as_bytes()) else {
            let len = self.rest().len();
            self.reasoning(len, out);
            self.state = State::Think(close);
            return Step::Stop;
        };
        self.reasoning(at, out);
        match word(self.rest(), &close, end) {
            Lex::Found(()) => {
                self.consume(close.len());
                self.thought = self.thought.as_ref().map(|_| String::new());
                self.prose.at_line_start = true;
                self.prose.skip_spaces = true;
                self.state = State::Text;
            }
            Lex::Wait => {
                self.state = State::Think(close);
                return Step::Stop;
            }
            Lex::Absent => {
                self.reasoning(1, out);
                self.state = State::Think(close);
            }
        }
        Step::Again
    }

    fn reasoning(&mut self, len: usize, out: &mut Vec<Piece>) {
        if len == 0 {
            return;
        }
        let text = self.buffer[self.position..self.position + len].to_owned();
        self.remember_thought(&text);
        match out.last_mut() {
            Some(Piece::Reasoning(last)) => last.push_str(&text),
            _ => out.push(Piece::Reasoning(text)),
        }
        self.position += len;
    }

    pub(super) fn remember_thought(&mut self, text: &str) {
        if let Some(thought) = &mut self.thought {
            thought.push_str(text);
            if thought.len() > MAX_THOUGHT {
                self.thought = None;
            }
        }
    }

    /// P23: no call here; the prose is text and the next call needs no other trigger. P27: after calls it is the tail.
    pub(super) fn leave_calls(&mut self, spaces: usize, out: &mut Vec<Piece>) -> Step {
        if self.calls == self.calls_before {
            self.consume(spaces);
            if is_slip(self.rest()) {
                // A call with a slip in its first tag: all of it is text, and so is what follows.
                self.blame(Fault::BrokenTag);
                self.refuse("", out);
                return Step::Again;
            }
            if self.produced {
                push_text("\n", out);
            }
            self.recover(Recovery::ProseAfterTrigger);
            self.prose.seek = MAX_SEEK;
            self.prose.at_line_start = true;
            self.state = State::Text;
            return Step::Again;
        }
        self.stage = None;
        if is_slip(&self.rest()[spaces..]) && !self.rest()[spaces..].starts_with("</") {
            // The calls before it stay, but that one more was meant is not hidden.
            self.truncation = Some(Truncation::Malformed);
            self.state = State::Tail;
            return Step::Again;
        }
        match self.rules.options.after_calls {
            AfterCalls::Stop => self.state = State::Tail,
            AfterCalls::Text => {
                // One line end closes the line of the call; the rest is the text's own.
                let separator = usize::from(self.rest().starts_with('\n'));
                self.consume(separator);
                self.text(spaces - separator, out);
                self.prose.at_line_start = true;
                self.state = State::Text;
            }
        }
        Step::Again
    }
}

fn fence_close(line: &str, fence: Fence, end: End) -> Line {
    let rest = line.trim_start_matches(fence.mark);
    let run = line.len() - rest.len();
    if run == line.len() && end == End::More && run <= MAX_FENCE_LINE {
        return Line::Wait;
    }
    if run < fence.len {
        return Line::Plain;
    }
    let after = rest.trim_start_matches([' ', '\t', '\r']);
    if rest.len() - after.len() > MAX_INDENT {
        return Line::Plain;
    }
    match after.chars().next() {
        Some('\n') => Line::FenceClose,
        Some(_) => Line::Plain,
        None if end == End::More => Line::Wait,
        None => Line::FenceClose,
    }
}
