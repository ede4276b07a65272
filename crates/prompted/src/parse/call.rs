//! The parser between the parameters of a call: the next parameter, the end of the call, or unexpected text.

use std::sync::Arc;

use toolgate_model::CallKind;

use super::lex::{Element, Family, InputEnd, Lex, MAX_TAG, Spelling, StringMark, Tag, match_literal, tag};
use super::start::{CallStart, CallTag, call_start, is_cut_start, match_trigger};
use super::value::OpenValue;
use super::{MissingParameter, ParsedPiece, Parser, State, Step};
use crate::fault::CallFault;
use crate::plan::{ParameterSlot, ParameterSlots, ToolMatch};
use crate::recovery::{Recovery, Truncation};
use crate::schema::{Parameter, ToolSpec};
use crate::value::{ArgumentWriter, Markup};

/// The maximum amount of whitespace between two calls; more of it ends the calls.
const MAX_SPACES_BETWEEN_CALLS: usize = 256;
/// The maximum length of a call before its first parameter, which is kept in case the call turns out to be
/// text.
const MAX_OPENING: usize = 1_024;

/// A call that is being parsed.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    pub(super) tool: Arc<ToolSpec>,
    pub(super) family: Family,
    pub(super) spelling: Spelling,
    pub(super) slots: ParameterSlots,
    pub(super) writer: ArgumentWriter,
    /// Values that could not be parsed.
    pub(super) unreadable: Vec<MissingParameter>,
    /// Whether the start of the call was emitted. Before that, the call can still turn out to be text.
    announced: bool,
    /// The source text of the call so far, in case it turns out to be text.
    raw_opening: String,
}

impl OpenCall {
    pub(super) fn new(tool: Arc<ToolSpec>, family: Family, spelling: Spelling, raw_opening: String) -> Self {
        let kind = tool.kind;
        Self {
            slots: ParameterSlots::new(Arc::clone(&tool)),
            tool,
            family,
            spelling,
            writer: ArgumentWriter::new(kind),
            unreadable: Vec::new(),
            announced: false,
            raw_opening,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.tool.name
    }
}

impl Parser {
    /// Expects a call.
    pub(super) fn step_calls(&mut self, end: InputEnd, out: &mut Vec<ParsedPiece>) -> Step {
        self.state = State::Calls;
        let rest = self.rest();
        let trimmed = rest.trim_start();
        let spaces = rest.len() - trimmed.len();
        if spaces > MAX_SPACES_BETWEEN_CALLS {
            return self.leave_calls(rest.floor_char_boundary(MAX_SPACES_BETWEEN_CALLS), out);
        }
        if trimmed.is_empty() {
            return Step::Stop;
        }
        match self.section_end(trimmed, end) {
            Lex::Found(len) => {
                self.consume(spaces + len);
                return Step::Again;
            }
            Lex::Wait => return Step::Stop,
            Lex::Absent => {}
        }
        if is_cut_start(trimmed, &self.rules, end) {
            return Step::Stop;
        }
        match call_start(trimmed, &self.rules, end) {
            Lex::Wait => Step::Stop,
            Lex::Absent => self.leave_calls(spaces, out),
            // P22
            Lex::Found(CallStart::Trigger(len)) => {
                self.consume(spaces + len);
                Step::Again
            }
            Lex::Found(CallStart::Wrapper(len)) => {
                self.consume(spaces + len);
                self.recover(Recovery::ForeignSyntax);
                Step::Again
            }
            Lex::Found(CallStart::Tagged(opening)) => {
                self.consume(spaces);
                self.open_call(&opening, out);
                Step::Again
            }
            Lex::Found(CallStart::Arguments { name, len }) => {
                self.consume(spaces);
                self.recover(Recovery::ForeignSyntax);
                self.open_json(Some(name), len);
                Step::Again
            }
            Lex::Found(CallStart::Json) => {
                self.consume(spaces);
                self.recover(Recovery::ForeignSyntax);
                self.open_json(None, 0);
                Step::Again
            }
        }
    }

    /// The end of the CDATA section around JSON arguments.
    fn section_end(&self, text: &str, end: InputEnd) -> Lex<usize> {
        const SECTION_END: &str = "]]>";
        if self.calls == self.calls_at_trigger {
            return Lex::Absent;
        }
        match_literal(text, SECTION_END, end).map(|()| SECTION_END.len())
    }

    fn open_call(&mut self, opening: &CallTag, out: &mut Vec<ParsedPiece>) {
        let written = self.rest()[..opening.len].to_owned();
        self.consume(opening.len);
        let Some(tool) = self.resolve(&opening.name) else {
            self.record_wrong_tool(&opening.name);
            self.reject_call(&written, out);
            return;
        };
        if opening.family != Family::Invoke || opening.spelling != Spelling::Plain {
            self.recover(Recovery::ForeignSyntax);
        }
        let call = Box::new(OpenCall::new(tool, opening.family, opening.spelling, written));
        if opening.is_empty {
            self.complete(call, out);
        } else {
            self.state = State::Invoke(call);
        }
    }

    /// P24: the tool that a name resolves to; `None` if the call must be forwarded as text.
    pub(super) fn resolve(&mut self, name: &str) -> Option<Arc<ToolSpec>> {
        let (tool, recovery) = match self.rules.resolve_tool(name) {
            ToolMatch::Exact(tool) => (tool, None),
            ToolMatch::Corrected(tool) => (tool, Some(Recovery::ToolRenamed)),
            ToolMatch::Unknown(tool) => (tool, Some(Recovery::UnknownTool)),
            ToolMatch::Rejected => return None,
        };
        if let Some(recovery) = recovery {
            self.recover(recovery);
        }
        Some(tool)
    }

    /// Records a call to a tool that may not be called. After a complete call it is no reason to retry: the model would
    /// have to repeat that call.
    pub(super) fn record_wrong_tool(&mut self, name: &str) {
        if self.calls == 0 {
            self.record_fault(CallFault::WrongTool(name.to_owned()));
        }
    }

    /// Emits a call as text. Nothing of it has been sent.
    pub(super) fn reject_call(&mut self, raw_opening: &str, out: &mut Vec<ParsedPiece>) {
        if let Some(stage) = &mut self.stage {
            stage.is_rejected = true;
            return;
        }
        out.push(ParsedPiece::InvalidCall);
        let follows_call = self.calls > self.calls_at_trigger;
        if std::mem::replace(&mut self.has_output, true) && !follows_call {
            // The newline before the trigger.
            super::push_text("\n", out);
        }
        super::push_text(&self.without_trigger(raw_opening), out);
        self.prose.at_line_start = false;
        self.state = State::Text;
    }

    /// Expects a parameter or the end of the call.
    pub(super) fn step_invoke(&mut self, mut call: Box<OpenCall>, out: &mut Vec<ParsedPiece>) -> Step {
        if !self.skip_spaces(&mut call) {
            return self.unexpected_text(&call, out);
        }
        if self.rest().is_empty() {
            self.state = State::Invoke(call);
            return Step::Stop;
        }
        match match_trigger(self.rest(), &self.rules, InputEnd::More) {
            Lex::Found(_) => {
                self.recover(Recovery::MissingCallClose);
                self.complete(call, out);
                return Step::Again;
            }
            Lex::Wait => {
                self.state = State::Invoke(call);
                return Step::Stop;
            }
            Lex::Absent => {}
        }
        // Copied, because the buffer is about to change.
        let visible = self.rest()[..self.rest().floor_char_boundary(2 * MAX_TAG)].to_owned();
        // P28: a tag that the end of the answer truncated is not an error, since nobody knows what it would
        // have become.
        match tag(&visible, InputEnd::More) {
            Lex::Wait => {
                self.state = State::Invoke(call);
                Step::Stop
            }
            Lex::Absent => self.unexpected_text(&call, out),
            Lex::Found(tag) => self.invoke_tag(call, &tag, out),
        }
    }

    /// Skips whitespace; false if there is more than fits into a call that can still turn out to be text.
    fn skip_spaces(&mut self, call: &mut OpenCall) -> bool {
        let rest = self.rest();
        let spaces = rest.len() - rest.trim_start().len();
        if call.announced {
            self.consume(spaces);
            return true;
        }
        let room = MAX_OPENING.saturating_sub(call.raw_opening.len());
        let len = rest.floor_char_boundary(spaces.min(room));
        call.raw_opening.push_str(&rest[..len]);
        self.consume(len);
        len == spaces
    }

    fn invoke_tag(&mut self, mut call: Box<OpenCall>, tag: &Tag<'_>, out: &mut Vec<ParsedPiece>) -> Step {
        if tag.spelling == Spelling::Unquoted {
            self.recover(Recovery::ForeignSyntax);
        }
        match &tag.element {
            Element::CallClose(family) if *family == call.family => {
                self.consume(tag.len);
                self.complete(call, out);
            }
            Element::ParameterOpen(name, mark) => {
                let Some(parameter) = self.parameter(&mut call, name) else {
                    return self.unexpected_text(&call, out);
                };
                self.consume(tag.len);
                let markup = match mark {
                    StringMark::None => Markup::Plain,
                    StringMark::String => Markup::String,
                    StringMark::Json => Markup::Json,
                };
                let value = Box::new(OpenValue::new(parameter, name.to_string(), markup));
                self.announce(&mut call, out);
                self.state = State::Value(call, value);
                if tag.is_empty {
                    self.empty_value(out);
                }
            }
            // P10
            Element::ParameterClose => {
                self.consume(tag.len);
                self.recover(Recovery::RepeatedClose);
                self.state = State::Invoke(call);
            }
            Element::CallOpen(_, name) if self.rules.knows_tool(name) => {
                self.recover(Recovery::MissingCallClose);
                self.complete(call, out);
            }
            Element::Open(name) if matches!(call.slots.slot(name), ParameterSlot::Free(_)) => {
                let Some(parameter) = self.parameter(&mut call, name) else {
                    return self.unexpected_text(&call, out);
                };
                self.consume(tag.len);
                self.recover(Recovery::NamedTag);
                let value = Box::new(OpenValue::new(parameter, (*name).to_owned(), Markup::Plain));
                self.announce(&mut call, out);
                self.state = State::Value(call, value);
            }
            Element::CallOpen(..)
            | Element::CallClose(_)
            | Element::Open(_)
            | Element::Close(_)
            | Element::Other => return self.unexpected_text(&call, out),
        }
        Step::Again
    }

    /// P25: the parameter that a name resolves to; `None` if it is already set, or if there are too many.
    pub(super) fn parameter(&mut self, call: &mut OpenCall, name: &str) -> Option<Parameter> {
        match call.slots.slot(name) {
            ParameterSlot::Free(position) => Some(call.slots.take(position)),
            ParameterSlot::Corrected(position) => {
                self.recover(Recovery::ParameterRenamed);
                Some(call.slots.take(position))
            }
            ParameterSlot::Unknown if call.tool.kind == CallKind::Custom => None,
            ParameterSlot::Unknown => Some(call.slots.take_unknown(name)),
            ParameterSlot::Taken | ParameterSlot::Excess => None,
        }
    }

    /// Handles unexpected text between parameters. A call that was sent cannot be retracted, so it stays
    /// unfinished: skipping the text could silently lose an argument.
    fn unexpected_text(&mut self, call: &OpenCall, out: &mut Vec<ParsedPiece>) -> Step {
        self.record_fault(CallFault::UnexpectedText);
        if call.announced || self.stage.is_some() {
            self.cut(Truncation::Malformed, out);
        } else {
            self.reject_call(&call.raw_opening, out);
        }
        Step::Again
    }

    /// Leaves the open call unfinished (P28).
    pub(super) fn cut(&mut self, truncation: Truncation, out: &mut Vec<ParsedPiece>) {
        if let Some(stage) = &mut self.stage {
            stage.is_rejected = true;
        } else {
            self.emit(ParsedPiece::CallCut, out);
        }
        match truncation {
            Truncation::Malformed => self.record_fault(CallFault::UnexpectedText),
            Truncation::TooLarge => self.record_fault(CallFault::TooLarge),
            Truncation::BeforeCall | Truncation::InsideCall => {}
        }
        self.truncation = Some(truncation);
        self.state = State::Tail;
    }

    pub(super) fn announce(&mut self, call: &mut OpenCall, out: &mut Vec<ParsedPiece>) {
        if !call.announced {
            call.announced = true;
            call.raw_opening = String::new();
            self.emit(ParsedPiece::CallStarted(call.tool.name.clone(), call.tool.kind), out);
        }
    }
}
