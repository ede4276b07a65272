//! Prose: forwarded at once, except for the start of a line that may become a trigger, a code fence or a
//! reasoning tag (P1 to P6).

use super::judge::is_misspelled_tag;
use super::lex::{Element, InputEnd, Lex, match_literal, tag};
use super::start::{AfterTrigger, CallStart, after_trigger, call_start, is_cut_start, match_trigger};
use super::{MAX_STAGED, ParsedPiece, Parser, State, Step, push_text};
use crate::fault::CallFault;
use crate::options::{AfterCalls, ReasoningTag};
use crate::recovery::{Recovery, Truncation};
use crate::trigger::TRIGGER_OPENING;

/// Lines with more indentation are prose.
const MAX_INDENT: usize = 32;
/// The maximum length of the first line of a code fence.
const MAX_FENCE_LINE: usize = 120;
/// The maximum number of bytes of prose between a trigger and its call (P23).
const MAX_SEEK: usize = 4_000;
/// The maximum size of reasoning that is kept in case it contains the answer (P3).
const MAX_REASONING: usize = 1024 * 1024;

/// The position in the prose. It belongs to the whole stream, not to the visible text (P5).
#[derive(Clone, Debug)]
pub(crate) struct ProseState {
    pub(crate) at_line_start: bool,
    fence: Option<Fence>,
    /// How many more bytes a call without another trigger may follow in (P23).
    seek: usize,
    /// Whitespace after reasoning is dropped.
    skip_spaces: bool,
}

impl Default for ProseState {
    fn default() -> Self {
        Self { at_line_start: true, fence: None, seek: 0, skip_spaces: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: char,
    len: usize,
}

/// What a line starts with.
enum LineStart {
    Wait,
    Plain,
    /// The length up to the end of the trigger, or up to a trigger or call that the end of the answer
    /// truncated.
    Trigger(usize),
    /// The length up to a call without its own trigger.
    Call(usize),
    Think(usize, ReasoningTag),
    FenceOpen(Fence),
    FenceClose,
    /// A code fence that starts with the trigger.
    FencedTrigger,
}

impl Parser {
    pub(super) fn step_text(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) -> Step {
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
        // The newline before a trigger is part of the trigger, so it waits for the start of the next line.
        let separator = usize::from(!self.prose.at_line_start);
        let line = self.line(&self.rest()[separator..], end);
        self.enter_line(line, separator, out)
    }

    fn enter_line(&mut self, line: LineStart, separator: usize, out: &mut Vec<ParsedPiece>) -> Step {
        match line {
            LineStart::Wait => return Step::Stop,
            LineStart::Plain => self.enter_plain_line(separator, out),
            LineStart::FenceOpen(fence) => {
                self.prose.fence = Some(fence);
                self.enter_plain_line(separator, out);
            }
            LineStart::FenceClose => {
                self.prose.fence = None;
                self.enter_plain_line(separator, out);
            }
            LineStart::Trigger(len) => {
                self.begin_stage();
                self.consume(separator + len);
                self.prose.seek = 0;
                self.prose.at_line_start = false;
                self.calls_at_trigger = self.calls;
                self.state = State::Calls;
            }
            LineStart::Call(len) => {
                self.begin_stage();
                self.consume(separator + len);
                let recovery =
                    if self.prose.seek > 0 { Recovery::ProseAfterTrigger } else { Recovery::Markerless };
                self.recover(recovery);
                self.calls_at_trigger = self.calls;
                self.state = State::Calls;
            }
            LineStart::Think(len, tag) => {
                self.text(separator, out);
                self.consume(len);
                self.state = State::Think(tag.close);
            }
            LineStart::FencedTrigger => {
                self.state = State::Fenced(String::new());
            }
        }
        Step::Again
    }

    fn enter_plain_line(&mut self, separator: usize, out: &mut Vec<ParsedPiece>) {
        self.text(separator, out);
        self.prose.at_line_start = false;
    }

    /// Classifies the line at the start of `rest`, which may be empty.
    fn line(&self, rest: &str, end: InputEnd) -> LineStart {
        let line = rest.trim_start_matches([' ', '\t']);
        let indent = rest.len() - line.len();
        if indent > MAX_INDENT || line.starts_with('\n') {
            return LineStart::Plain;
        }
        if line.is_empty() {
            return if end == InputEnd::More { LineStart::Wait } else { LineStart::Plain };
        }
        if let Some(fence) = self.prose.fence {
            return fence_close(line, fence, end);
        }
        let mut wait = false;
        match match_trigger(line, &self.rules, end) {
            Lex::Found(len) => return self.trigger_line(indent + len, &line[len..], end),
            Lex::Wait => wait = true,
            Lex::Absent => {}
        }
        for tag in &self.rules.options.reasoning_tags {
            match match_literal(line, &tag.open, end) {
                Lex::Found(()) => return LineStart::Think(indent + tag.open.len(), tag.clone()),
                Lex::Wait => wait = true,
                Lex::Absent => {}
            }
        }
        match self.bare_call(line, end) {
            Lex::Found(()) => return LineStart::Call(indent),
            Lex::Wait => wait = true,
            Lex::Absent => {}
        }
        if self.is_cut_line(line, end) {
            return LineStart::Trigger(indent);
        }
        if wait { LineStart::Wait } else { self.fence_open(line, end) }
    }

    /// P28: true if the answer ended inside a trigger, or inside the first tag of the call after one.
    fn is_cut_line(&self, line: &str, end: InputEnd) -> bool {
        let trigger = self.rules.trigger.as_deref().filter(|_| !self.rules.is_strict());
        let Some(trigger) = trigger.filter(|_| matches!(end, InputEnd::Clean | InputEnd::Cut)) else {
            return false;
        };
        let announced = self.prose.seek > 0 && is_cut_start(line, &self.rules, end);
        announced || (line.len() >= TRIGGER_OPENING.len() && trigger.starts_with(line))
    }

    fn trigger_line(&self, len: usize, after: &str, end: InputEnd) -> LineStart {
        match after_trigger(after, &self.rules, end) {
            AfterTrigger::Wait => LineStart::Wait,
            AfterTrigger::Mention => LineStart::Plain,
            AfterTrigger::Call => LineStart::Trigger(len),
        }
    }

    /// P6, P23: whether the line starts a call without its own trigger.
    fn bare_call(&self, line: &str, end: InputEnd) -> Lex<()> {
        let seeking = self.prose.seek > 0;
        if self.rules.trigger.is_none() || !(seeking || self.rules.markerless.is_on()) {
            return Lex::Absent;
        }
        match tag(line, end) {
            Lex::Wait => Lex::Wait,
            Lex::Absent => Lex::Absent,
            Lex::Found(tag) => match &tag.element {
                Element::CallOpen(_, name) if self.rules.knows_tool(name) => Lex::Found(()),
                Element::Open(_) if seeking => match call_start(line, &self.rules, end) {
                    Lex::Found(CallStart::Wrapper(_) | CallStart::Arguments { .. }) => Lex::Found(()),
                    Lex::Wait => Lex::Wait,
                    Lex::Found(CallStart::Tagged(_) | CallStart::Json | CallStart::Trigger(_))
                    | Lex::Absent => Lex::Absent,
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

    /// P5: whether the line opens a code fence.
    fn fence_open(&self, line: &str, end: InputEnd) -> LineStart {
        let Some(mark @ ('`' | '~')) = line.chars().next() else { return LineStart::Plain };
        let run = line.len() - line.trim_start_matches(mark).len();
        if run == line.len() && end == InputEnd::More && run <= MAX_FENCE_LINE {
            return LineStart::Wait;
        }
        if run < 3 {
            return LineStart::Plain;
        }
        let fence = LineStart::FenceOpen(Fence { mark, len: run });
        let Some(line_end) = line.find('\n').filter(|at| *at <= MAX_FENCE_LINE) else {
            return if end == InputEnd::More && line.len() <= MAX_FENCE_LINE {
                LineStart::Wait
            } else {
                fence
            };
        };
        if mark == '`' && line[run..line_end].contains('`') {
            return LineStart::Plain;
        }
        if !self.fenced_calls_run() {
            return fence;
        }
        let content = &line[line_end + 1..];
        let first = content.trim_start();
        if content.len() - first.len() > MAX_INDENT {
            return fence;
        }
        if first.is_empty() {
            return if end == InputEnd::More { LineStart::Wait } else { fence };
        }
        match match_trigger(first, &self.rules, end) {
            Lex::Wait => LineStart::Wait,
            Lex::Absent => fence,
            Lex::Found(len) => match after_trigger(&first[len..], &self.rules, end) {
                AfterTrigger::Wait => LineStart::Wait,
                AfterTrigger::Mention => fence,
                AfterTrigger::Call => LineStart::FencedTrigger,
            },
        }
    }

    fn fenced_calls_run(&self) -> bool {
        let rules = &self.rules;
        rules.trigger.is_some() && rules.options.calls_in_fence.is_on() && !rules.is_strict()
    }

    /// Buffers everything until the answer ends: only then is it known whether the fence ends the answer.
    pub(super) fn step_fenced(&mut self, mut buffered: String, out: &mut Vec<ParsedPiece>) -> Step {
        buffered.push_str(self.rest());
        self.consume(self.rest().len());
        if buffered.len() > MAX_STAGED {
            self.has_output = true;
            push_text(&buffered, out);
            self.state = State::Inert;
        } else {
            self.state = State::Fenced(buffered);
        }
        Step::Stop
    }

    /// P2: calls inside reasoning do not run.
    pub(super) fn step_think(&mut self, close: String, end: InputEnd, out: &mut Vec<ParsedPiece>) -> Step {
        let Some(at) = memchr::memchr(b'<', self.rest().as_bytes()) else {
            let len = self.rest().len();
            self.reasoning(len, out);
            self.state = State::Think(close);
            return Step::Stop;
        };
        self.reasoning(at, out);
        match match_literal(self.rest(), &close, end) {
            Lex::Found(()) => {
                self.consume(close.len());
                self.reasoning_text = self.reasoning_text.as_ref().map(|_| String::new());
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

    fn reasoning(&mut self, len: usize, out: &mut Vec<ParsedPiece>) {
        if len == 0 {
            return;
        }
        let text = self.buffer[self.position..self.position + len].to_owned();
        self.remember_reasoning(&text);
        match out.last_mut() {
            Some(ParsedPiece::Reasoning(last)) => last.push_str(&text),
            _ => out.push(ParsedPiece::Reasoning(text)),
        }
        self.position += len;
    }

    pub(super) fn remember_reasoning(&mut self, text: &str) {
        if let Some(reasoning) = &mut self.reasoning_text {
            reasoning.push_str(text);
            if reasoning.len() > MAX_REASONING {
                self.reasoning_text = None;
            }
        }
    }

    /// Leaves the calls. P23: before the first call, prose is text, and the next call needs no second trigger.
    /// P27: after a call, prose is the tail.
    pub(super) fn leave_calls(&mut self, spaces: usize, out: &mut Vec<ParsedPiece>) -> Step {
        if self.calls == self.calls_at_trigger {
            self.consume(spaces);
            if is_misspelled_tag(self.rest()) {
                // The first tag of the call is misspelled: the call and everything after it is text.
                self.record_fault(CallFault::MalformedTag);
                self.reject_call("", out);
                return Step::Again;
            }
            if self.has_output {
                push_text("\n", out);
            }
            self.recover(Recovery::ProseAfterTrigger);
            self.prose.seek = MAX_SEEK;
            self.prose.at_line_start = true;
            self.state = State::Text;
            return Step::Again;
        }
        self.stage = None;
        if is_misspelled_tag(&self.rest()[spaces..]) && !self.rest()[spaces..].starts_with("</") {
            // Keeps the calls before it, but reports that another call was intended.
            self.truncation = Some(Truncation::Malformed);
            self.state = State::Tail;
            return Step::Again;
        }
        match self.rules.options.after_calls {
            AfterCalls::Stop => self.state = State::Tail,
            AfterCalls::Text => {
                // The first newline ends the line of the call; the rest belongs to the text.
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

fn fence_close(line: &str, fence: Fence, end: InputEnd) -> LineStart {
    let rest = line.trim_start_matches(fence.mark);
    let run = line.len() - rest.len();
    if run == line.len() && end == InputEnd::More && run <= MAX_FENCE_LINE {
        return LineStart::Wait;
    }
    if run < fence.len {
        return LineStart::Plain;
    }
    let after = rest.trim_start_matches([' ', '\t', '\r']);
    if rest.len() - after.len() > MAX_INDENT {
        return LineStart::Plain;
    }
    match after.chars().next() {
        Some('\n') => LineStart::FenceClose,
        Some(_) => LineStart::Plain,
        None if end == InputEnd::More => LineStart::Wait,
        None => LineStart::FenceClose,
    }
}
