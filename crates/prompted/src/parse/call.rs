//! A call between its parameters: which one comes next, and what stands there that belongs to none.

use std::sync::Arc;

use toolgate_model::CallKind;

use super::lex::{Element, End, Family, Lex, MAX_TAG, Spelling, StringMark, Tag, tag, word};
use super::start::{Opening, Start, is_cut_start, start};
use super::value::Value;
use super::{Parser, Piece, State, Step, Wanted};
use crate::fault::Fault;
use crate::plan::{Naming, Slot, Slots};
use crate::recovery::{Recovery, Truncation};
use crate::schema::{Parameter, ToolSpec};
use crate::value::{ArgumentWriter, Markup};

/// How many bytes of spaces may stand between two calls; after more of them the calls are over.
const MAX_BLANK: usize = 256;
/// How much is kept of a call that has not shown a parameter yet, in case it is text.
const MAX_LEAD: usize = 1_024;

/// A call that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) tool: Arc<ToolSpec>,
    pub(super) family: Family,
    pub(super) spelling: Spelling,
    pub(super) slots: Slots,
    pub(super) writer: ArgumentWriter,
    /// Values that could not be read.
    pub(super) unreadable: Vec<Wanted>,
    /// The call has been sent as one; before that it can still turn out to be text.
    announced: bool,
    /// How it began, in case it is text.
    lead: String,
}

impl Call {
    pub(super) fn new(tool: Arc<ToolSpec>, family: Family, spelling: Spelling, lead: String) -> Self {
        let kind = tool.kind;
        Self {
            slots: Slots::new(Arc::clone(&tool)),
            tool,
            family,
            spelling,
            writer: ArgumentWriter::new(kind),
            unreadable: Vec::new(),
            announced: false,
            lead,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.tool.name
    }
}

impl Parser {
    /// Where a call may begin.
    pub(super) fn step_calls(&mut self, end: End, out: &mut Vec<Piece>) -> Step {
        self.state = State::Calls;
        let rest = self.rest();
        let trimmed = rest.trim_start();
        let spaces = rest.len() - trimmed.len();
        if spaces > MAX_BLANK {
            return self.leave_calls(rest.floor_char_boundary(MAX_BLANK), out);
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
        match start(trimmed, &self.rules, end) {
            Lex::Wait => Step::Stop,
            Lex::Absent => self.leave_calls(spaces, out),
            // P22
            Lex::Found(Start::Trigger(len)) => {
                self.consume(spaces + len);
                Step::Again
            }
            Lex::Found(Start::Wrapper(len)) => {
                self.consume(spaces + len);
                self.recover(Recovery::ForeignSyntax);
                Step::Again
            }
            Lex::Found(Start::Tagged(opening)) => {
                self.consume(spaces);
                self.open_call(&opening, out);
                Step::Again
            }
            Lex::Found(Start::Arguments { name, len }) => {
                self.consume(spaces);
                self.recover(Recovery::ForeignSyntax);
                self.open_json(Some(name), len);
                Step::Again
            }
            Lex::Found(Start::Json) => {
                self.consume(spaces);
                self.recover(Recovery::ForeignSyntax);
                self.open_json(None, 0);
                Step::Again
            }
        }
    }

    /// The end of the CDATA section that JSON arguments stood in.
    fn section_end(&self, text: &str, end: End) -> Lex<usize> {
        const SECTION_END: &str = "]]>";
        if self.calls == self.calls_before {
            return Lex::Absent;
        }
        match word(text, SECTION_END, end) {
            Lex::Found(()) => Lex::Found(SECTION_END.len()),
            Lex::Wait => Lex::Wait,
            Lex::Absent => Lex::Absent,
        }
    }

    fn open_call(&mut self, opening: &Opening, out: &mut Vec<Piece>) {
        let written = self.rest()[..opening.len].to_owned();
        self.consume(opening.len);
        let Some(tool) = self.resolve(&opening.name) else {
            self.blame(Fault::WrongTool(opening.name.clone()));
            self.refuse(&written, out);
            return;
        };
        if opening.family != Family::Invoke || opening.spelling != Spelling::Plain {
            self.recover(Recovery::ForeignSyntax);
        }
        let call = Box::new(Call::new(tool, opening.family, opening.spelling, written));
        if opening.is_empty {
            self.complete(call, out);
        } else {
            self.state = State::Invoke(call);
        }
    }

    /// P24: the tool a name means; `None` where the call is to come out as text.
    pub(super) fn resolve(&mut self, name: &str) -> Option<Arc<ToolSpec>> {
        let (tool, recovery) = match self.rules.name(name) {
            Naming::Offered(tool) => (tool, None),
            Naming::Corrected(tool) => (tool, Some(Recovery::ToolRenamed)),
            Naming::Unknown(tool) => (tool, Some(Recovery::UnknownTool)),
            Naming::Refused => return None,
        };
        if let Some(recovery) = recovery {
            self.recover(recovery);
        }
        Some(tool)
    }

    /// What seemed a call is text after all. Nothing of it has been sent. The trigger is no part of the text: a client
    /// that sent it back would make the next prompt need another one.
    pub(super) fn refuse(&mut self, lead: &str, out: &mut Vec<Piece>) {
        if let Some(stage) = &mut self.stage {
            stage.broken = true;
            return;
        }
        out.push(Piece::Refused);
        if std::mem::replace(&mut self.produced, true) {
            // The line end before the trigger.
            super::push_text("\n", out);
        }
        super::push_text(lead, out);
        self.prose.at_line_start = false;
        self.state = State::Text;
    }

    /// Between parameters.
    pub(super) fn step_invoke(&mut self, mut call: Box<Call>, out: &mut Vec<Piece>) -> Step {
        if !self.pass_spaces(&mut call) {
            return self.junk(&call, out);
        }
        if self.rest().is_empty() {
            self.state = State::Invoke(call);
            return Step::Stop;
        }
        if let Some(trigger) = &self.rules.trigger {
            match word(self.rest(), trigger, End::More) {
                Lex::Found(()) => {
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
        }
        // Apart from the buffer, which is about to change.
        let visible = self.rest()[..self.rest().floor_char_boundary(2 * MAX_TAG)].to_owned();
        // P28: a tag that the end of the answer cut is no rubbish; what it would have become nobody knows.
        match tag(&visible, End::More) {
            Lex::Wait => {
                self.state = State::Invoke(call);
                Step::Stop
            }
            Lex::Absent => self.junk(&call, out),
            Lex::Found(tag) => self.invoke_tag(call, &tag, out),
        }
    }

    /// Passes over spaces; false where there are more than a call that can still turn out to be text may have.
    fn pass_spaces(&mut self, call: &mut Call) -> bool {
        let rest = self.rest();
        let spaces = rest.len() - rest.trim_start().len();
        if call.announced {
            self.consume(spaces);
            return true;
        }
        let room = MAX_LEAD.saturating_sub(call.lead.len());
        let len = rest.floor_char_boundary(spaces.min(room));
        call.lead.push_str(&rest[..len]);
        self.consume(len);
        len == spaces
    }

    fn invoke_tag(&mut self, mut call: Box<Call>, tag: &Tag<'_>, out: &mut Vec<Piece>) -> Step {
        if tag.spelling == Spelling::Unquoted {
            self.recover(Recovery::ForeignSyntax);
        }
        match &tag.element {
            Element::CallClose(family) if *family == call.family => {
                self.consume(tag.len);
                self.complete(call, out);
            }
            Element::ParameterOpen(name, mark) => {
                let Some(parameter) = self.parameter(&mut call, name) else { return self.junk(&call, out) };
                self.consume(tag.len);
                let markup = match mark {
                    StringMark::None => Markup::Plain,
                    StringMark::String => Markup::String,
                    StringMark::Json => Markup::Json,
                };
                let value = Box::new(Value::new(parameter, name.to_string(), markup));
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
            Element::CallOpen(_, name) if self.rules.knows(name) => {
                self.recover(Recovery::MissingCallClose);
                self.complete(call, out);
            }
            Element::Open(name) if matches!(call.slots.slot(name), Slot::Free(_)) => {
                let Some(parameter) = self.parameter(&mut call, name) else { return self.junk(&call, out) };
                self.consume(tag.len);
                self.recover(Recovery::NamedTag);
                let value = Box::new(Value::new(parameter, (*name).to_owned(), Markup::Plain));
                self.announce(&mut call, out);
                self.state = State::Value(call, value);
            }
            Element::CallOpen(..)
            | Element::CallClose(_)
            | Element::Open(_)
            | Element::Close(_)
            | Element::Other => return self.junk(&call, out),
        }
        Step::Again
    }

    /// P25: the parameter a name means; `None` where it was written before, or there are too many.
    pub(super) fn parameter(&mut self, call: &mut Call, name: &str) -> Option<Parameter> {
        match call.slots.slot(name) {
            Slot::Free(position) => Some(call.slots.take(position)),
            Slot::Corrected(position) => {
                self.recover(Recovery::ParameterRenamed);
                Some(call.slots.take(position))
            }
            Slot::Unknown if call.tool.kind == CallKind::Custom => None,
            Slot::Unknown => Some(call.slots.take_unknown(name)),
            Slot::Taken | Slot::Excess => None,
        }
    }

    /// Something that belongs to no syntax stands between the parameters. A call that was sent cannot be taken
    /// back, so it stays unfinished; passing over the rubbish could lose an argument in silence.
    fn junk(&mut self, call: &Call, out: &mut Vec<Piece>) -> Step {
        self.blame(Fault::Stray);
        if call.announced || self.stage.is_some() {
            self.cut(Truncation::Malformed, out);
        } else {
            self.refuse(&call.lead, out);
        }
        Step::Again
    }

    /// The open call stays unfinished (P28).
    pub(super) fn cut(&mut self, truncation: Truncation, out: &mut Vec<Piece>) {
        if let Some(stage) = &mut self.stage {
            stage.broken = true;
        } else {
            self.emit(Piece::CallCut, out);
        }
        match truncation {
            Truncation::Malformed => self.blame(Fault::Stray),
            Truncation::TooLarge => self.blame(Fault::TooLarge),
            Truncation::BeforeCall | Truncation::InsideCall => {}
        }
        self.truncation = Some(truncation);
        self.state = State::Tail;
    }

    pub(super) fn announce(&mut self, call: &mut Call, out: &mut Vec<Piece>) {
        if !call.announced {
            call.announced = true;
            call.lead = String::new();
            self.emit(Piece::CallStarted(call.tool.name.clone(), call.tool.kind), out);
        }
    }
}
