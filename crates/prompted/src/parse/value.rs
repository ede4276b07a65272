//! The parser inside a parameter: text up to the tag that ends it, as decided by [`judge`](super::judge), or
//! CDATA sections (P11, P12, P20).

use super::call::OpenCall;
use super::judge::{Level, Nested, NestingChange, TagVerdict, ValueClose, ValueContext};
use super::lex::{InputEnd, Lex, Spelling, match_literal, tag};
use super::{ParsedPiece, Parser, State, Step};
use crate::recovery::Truncation;
use crate::schema::Parameter;
use crate::value::{CloseKind, CloseOutcome, Encoder, Markup};

const CDATA_OPEN: &str = "<![CDATA[";
const CDATA_CLOSE: &str = "]]>";
/// The maximum amount of whitespace around a CDATA section.
const MAX_CDATA_SPACES: usize = 64;

/// A value that is being parsed.
#[derive(Clone, Debug)]
pub(crate) struct OpenValue {
    parameter: Parameter,
    /// The parameter's name as the model wrote it.
    written: String,
    markup: Markup,
    body: Body,
    nest: Vec<Nested>,
    at_line_start: bool,
    saw_stray_close: bool,
}

#[derive(Clone, Debug)]
enum Body {
    /// Before the text is long enough to tell whether it is CDATA.
    Undecided,
    Text(Encoder),
    Cdata(Encoder),
}

impl OpenValue {
    pub(super) fn new(parameter: Parameter, written: String, markup: Markup) -> Self {
        Self {
            parameter,
            written,
            markup,
            body: Body::Undecided,
            nest: Vec::new(),
            at_line_start: false,
            saw_stray_close: false,
        }
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        match &self.body {
            Body::Undecided => 0,
            Body::Text(encoder) | Body::Cdata(encoder) => encoder.buffered_bytes(),
        }
    }

    fn nest(&mut self, nesting: NestingChange) {
        match nesting {
            NestingChange::Keep => {}
            // A closing tag without an open example shows that the opening tags before it were only mentioned.
            NestingChange::StrayClose => {
                self.saw_stray_close = true;
                self.nest.clear();
            }
            NestingChange::Push(nested) => self.nest.push(nested),
            NestingChange::PopParameter => {
                self.nest.pop();
            }
            NestingChange::PopCall => {
                let call = self.nest.iter().rposition(|nested| nested.level == Level::Call);
                self.nest.truncate(call.unwrap_or_default());
            }
        }
    }

    fn note_line(&mut self, data: &str) {
        let line = memchr::memrchr(b'\n', data.as_bytes()).map(|at| &data[at + 1..]);
        let blank = line.unwrap_or(data).trim_start_matches([' ', '\t']).is_empty();
        self.at_line_start = blank && (line.is_some() || self.at_line_start);
    }
}

impl Parser {
    pub(super) fn step_value(
        &mut self,
        mut call: Box<OpenCall>,
        mut value: Box<OpenValue>,
        end: InputEnd,
        out: &mut Vec<ParsedPiece>,
    ) -> Step {
        let mut json = String::new();
        let step = match &mut value.body {
            Body::Undecided => self.value_undecided(&call, &value, end),
            Body::Text(_) => self.value_text(&mut call, &mut value, end, &mut json),
            Body::Cdata(_) => self.value_cdata(&mut call, &mut value, end, &mut json),
        };
        match step {
            ValueStep::Begin(body, len) => {
                self.consume(len);
                value.body = body;
                if let Body::Text(encoder) | Body::Cdata(encoder) = &mut value.body {
                    encoder.open(&mut call.writer, &mut json);
                }
                self.emit(ParsedPiece::Arguments(json), out);
                self.state = State::Value(call, value);
                Step::Again
            }
            ValueStep::Wait => {
                self.emit(ParsedPiece::Arguments(json), out);
                if value.is_too_large() {
                    self.cut(Truncation::TooLarge, out);
                } else {
                    self.state = State::Value(call, value);
                }
                Step::Stop
            }
            ValueStep::Broken => {
                self.emit(ParsedPiece::Arguments(json), out);
                self.cut(Truncation::Malformed, out);
                Step::Again
            }
            ValueStep::Close(close) => {
                self.consume(close.len);
                close.recovery.into_iter().for_each(|recovery| self.recover(recovery));
                let OpenValue { parameter, body, .. } = *value;
                if let Body::Text(encoder) | Body::Cdata(encoder) = body {
                    let closed = encoder.close(close.kind, &mut call.writer, &mut json);
                    self.emit(ParsedPiece::Arguments(json), out);
                    if matches!(&closed, CloseOutcome::Unreadable(text) if holds_markup(text)) {
                        self.cut(Truncation::Malformed, out);
                        return Step::Again;
                    }
                    self.value_closed(&mut call, parameter, closed);
                }
                self.state = State::Invoke(call);
                Step::Again
            }
        }
    }

    /// Handles `<parameter name="x"/>`.
    pub(super) fn empty_value(&mut self, out: &mut Vec<ParsedPiece>) {
        let State::Value(mut call, value) = std::mem::replace(&mut self.state, State::Tail) else { return };
        let mut json = String::new();
        let encoder = value.encoder(&call, value.markup);
        let closed = encoder.close(CloseKind::Tag, &mut call.writer, &mut json);
        self.emit(ParsedPiece::Arguments(json), out);
        self.value_closed(&mut call, value.parameter, closed);
        self.state = State::Invoke(call);
    }

    /// P12: a value is CDATA if it starts with a CDATA section.
    fn value_undecided(&self, call: &OpenCall, value: &OpenValue, end: InputEnd) -> ValueStep {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        let spaces = rest.len() - trimmed.len();
        let cdata =
            if spaces > MAX_CDATA_SPACES { Lex::Absent } else { match_literal(trimmed, CDATA_OPEN, end) };
        match cdata {
            Lex::Wait => ValueStep::Wait,
            Lex::Found(()) => {
                let markup = if value.markup == Markup::Plain { Markup::Cdata } else { value.markup };
                ValueStep::Begin(Body::Cdata(value.encoder(call, markup)), spaces + CDATA_OPEN.len())
            }
            Lex::Absent => ValueStep::Begin(Body::Text(value.encoder(call, value.markup)), 0),
        }
    }

    fn value_text(
        &mut self,
        call: &mut OpenCall,
        value: &mut OpenValue,
        end: InputEnd,
        json: &mut String,
    ) -> ValueStep {
        loop {
            let rest = self.rest();
            let Some(at) = next_bracket(rest, call.spelling) else {
                self.value_data(call, value, rest.len(), json);
                return ValueStep::Wait;
            };
            self.value_data(call, value, at, json);
            #[cfg(test)]
            {
                self.scanned += self.rest().len().min(super::judge::MAX_LOOKAHEAD);
            }
            match self.context(call, value).judge(self.rest(), end) {
                TagVerdict::Wait => return ValueStep::Wait,
                // P28: an incomplete tag at the end of the answer is truncated, not misspelled.
                TagVerdict::Broken if ends_in_tag(self.rest()) && end != InputEnd::More => {
                    return ValueStep::Wait;
                }
                TagVerdict::Close(close) => return ValueStep::Close(close),
                TagVerdict::Broken => return ValueStep::Broken,
                TagVerdict::Data(len, nesting) => {
                    self.value_data(call, value, len, json);
                    value.nest(nesting);
                }
            }
        }
    }

    fn value_cdata(
        &mut self,
        call: &mut OpenCall,
        value: &mut OpenValue,
        end: InputEnd,
        json: &mut String,
    ) -> ValueStep {
        loop {
            let rest = self.rest();
            let Some(at) = memchr::memchr(b']', rest.as_bytes()) else {
                self.value_data(call, value, rest.len(), json);
                return ValueStep::Wait;
            };
            self.value_data(call, value, at, json);
            match self.cdata_end(call, value, end) {
                CdataEnd::Wait => return ValueStep::Wait,
                CdataEnd::Data(len) => self.value_data(call, value, len, json),
                CdataEnd::Joined(len) => self.consume(len),
                CdataEnd::Close(close) => return ValueStep::Close(close),
            }
        }
    }

    /// `]]>` ends a section only before a closing tag or another section; elsewhere it is text.
    fn cdata_end(&self, call: &OpenCall, value: &OpenValue, end: InputEnd) -> CdataEnd {
        let rest = self.rest();
        match match_literal(rest, CDATA_CLOSE, end) {
            Lex::Wait => return CdataEnd::Wait,
            Lex::Absent => return CdataEnd::Data(1),
            Lex::Found(()) => {}
        }
        let after = &rest[CDATA_CLOSE.len()..];
        match match_literal(after, CDATA_OPEN, end) {
            Lex::Wait => return CdataEnd::Wait,
            Lex::Found(()) => return CdataEnd::Joined(CDATA_CLOSE.len() + CDATA_OPEN.len()),
            Lex::Absent => {}
        }
        let tag = after.trim_start();
        let spaces = after.len() - tag.len();
        if spaces > MAX_CDATA_SPACES || (tag.is_empty() && end != InputEnd::More) {
            return CdataEnd::Data(1);
        }
        if tag.is_empty() {
            return CdataEnd::Wait;
        }
        let mut context = self.context(call, value);
        context.nest = &[];
        context.at_line_start = true;
        context.saw_stray_close = false;
        context.is_block = false;
        match context.judge(tag, end) {
            TagVerdict::Wait => CdataEnd::Wait,
            TagVerdict::Data(..) | TagVerdict::Broken => CdataEnd::Data(1),
            TagVerdict::Close(close) => CdataEnd::Close(ValueClose {
                len: CDATA_CLOSE.len() + spaces + close.len,
                // Inside a CDATA section all whitespace belongs to the value.
                kind: CloseKind::Tag,
                recovery: close.recovery,
            }),
        }
    }

    fn context<'s>(&'s self, call: &'s OpenCall, value: &'s OpenValue) -> ValueContext<'s> {
        ValueContext {
            rules: &self.rules,
            slots: &call.slots,
            family: call.family,
            parameter: &value.written,
            nest: &value.nest,
            at_line_start: value.at_line_start,
            saw_stray_close: value.saw_stray_close,
            is_block: value.is_block(),
        }
    }

    fn value_data(&mut self, call: &mut OpenCall, value: &mut OpenValue, len: usize, json: &mut String) {
        if len == 0 {
            return;
        }
        let data = &self.buffer[self.position..self.position + len];
        value.note_line(data);
        if let Body::Text(encoder) | Body::Cdata(encoder) = &mut value.body {
            encoder.push(data, &mut call.writer, json);
        }
        self.consume(len);
    }
}

enum ValueStep {
    Begin(Body, usize),
    Wait,
    Close(ValueClose),
    /// The markup is ambiguous, and one of its readings loses an argument.
    Broken,
}

enum CdataEnd {
    Wait,
    Data(usize),
    Joined(usize),
    Close(ValueClose),
}

impl OpenValue {
    fn encoder(&self, call: &OpenCall, markup: Markup) -> Encoder {
        Encoder::new(self.parameter.clone(), call.tool.kind, markup)
    }

    fn is_block(&self) -> bool {
        match &self.body {
            Body::Undecided => false,
            Body::Text(encoder) | Body::Cdata(encoder) => encoder.is_block(),
        }
    }

    fn is_too_large(&self) -> bool {
        match &self.body {
            Body::Undecided => false,
            Body::Text(encoder) | Body::Cdata(encoder) => encoder.is_too_large(),
        }
    }
}

/// Whether a value that does not match its type seems to contain markup of the call.
fn holds_markup(text: &str) -> bool {
    ["<parameter", "</parameter", "<invoke", "</invoke"].iter().any(|markup| text.contains(markup))
}

fn ends_in_tag(text: &str) -> bool {
    text.rfind('<').is_some_and(|at| tag(&text[at..], InputEnd::More) == Lex::Wait)
}

/// The position of the next possible tag. Wide brackets count only in a call that was opened with them.
fn next_bracket(text: &str, spelling: Spelling) -> Option<usize> {
    match spelling {
        Spelling::Plain | Spelling::Unquoted | Spelling::Escaped | Spelling::Dsml => {
            memchr::memchr(b'<', text.as_bytes())
        }
        Spelling::Wide => text.find(['<', '＜', '〈']),
    }
}
