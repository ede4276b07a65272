//! The inside of a parameter: text up to a tag that [`judge`](super::judge) takes for its end, or a CDATA section
//! (P11, P12, P20).

use super::call::Call;
use super::judge::{Close, Level, Nested, Nesting, Scene, Verdict};
use super::lex::{End, Lex, Spelling, tag, word};
use super::{Parser, Piece, State, Step};
use crate::recovery::Truncation;
use crate::schema::Parameter;
use crate::value::{Closed, Encoder, Ending, Markup};

const CDATA_OPEN: &str = "<![CDATA[";
const CDATA_CLOSE: &str = "]]>";
/// How many spaces may stand around a CDATA section.
const MAX_SPACES: usize = 64;

/// A value that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    parameter: Parameter,
    /// The parameter as the model wrote it.
    written: String,
    markup: Markup,
    body: Body,
    nest: Vec<Nested>,
    at_line_start: bool,
    holds_close: bool,
}

#[derive(Clone, Debug)]
enum Body {
    /// Before the first character that tells text and CDATA apart.
    Ahead,
    Text(Encoder),
    Cdata(Encoder),
}

impl Value {
    pub(super) fn new(parameter: Parameter, written: String, markup: Markup) -> Self {
        Self {
            parameter,
            written,
            markup,
            body: Body::Ahead,
            nest: Vec::new(),
            at_line_start: false,
            holds_close: false,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        match &self.body {
            Body::Ahead => 0,
            Body::Text(encoder) | Body::Cdata(encoder) => encoder.waiting(),
        }
    }

    fn nest(&mut self, nesting: Nesting) {
        match nesting {
            Nesting::Keep => {}
            // A closing tag that fits no open example shows that there is none, only mentions.
            Nesting::StrayClose => {
                self.holds_close = true;
                self.nest.clear();
            }
            Nesting::Push(nested) => self.nest.push(nested),
            Nesting::PopParameter => {
                self.nest.pop();
            }
            Nesting::PopCall => {
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
        mut call: Box<Call>,
        mut value: Box<Value>,
        end: End,
        out: &mut Vec<Piece>,
    ) -> Step {
        let mut json = String::new();
        let outcome = match &mut value.body {
            Body::Ahead => self.value_ahead(&call, &value, end),
            Body::Text(_) => self.value_text(&mut call, &mut value, end, &mut json),
            Body::Cdata(_) => self.value_cdata(&mut call, &mut value, end, &mut json),
        };
        match outcome {
            Outcome::Begin(body, len) => {
                self.consume(len);
                value.body = body;
                if let Body::Text(encoder) | Body::Cdata(encoder) = &mut value.body {
                    encoder.open(&mut call.writer, &mut json);
                }
                self.emit(Piece::Arguments(json), out);
                self.state = State::Value(call, value);
                Step::Again
            }
            Outcome::Wait => {
                self.emit(Piece::Arguments(json), out);
                if value.is_too_large() {
                    self.cut(Truncation::TooLarge, out);
                } else {
                    self.state = State::Value(call, value);
                }
                Step::Stop
            }
            Outcome::Broken => {
                self.emit(Piece::Arguments(json), out);
                self.cut(Truncation::Malformed, out);
                Step::Again
            }
            Outcome::Close(close) => {
                self.consume(close.len);
                close.recovery.into_iter().for_each(|recovery| self.recover(recovery));
                let Value { parameter, body, .. } = *value;
                if let Body::Text(encoder) | Body::Cdata(encoder) = body {
                    let closed = encoder.close(close.ending, &mut call.writer, &mut json);
                    self.emit(Piece::Arguments(json), out);
                    if matches!(&closed, Closed::Unreadable(text) if holds_markup(text)) {
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

    /// `<parameter name="x"/>`.
    pub(super) fn empty_value(&mut self, out: &mut Vec<Piece>) {
        let State::Value(mut call, value) = std::mem::replace(&mut self.state, State::Tail) else { return };
        let mut json = String::new();
        let encoder = value.encoder(&call, value.markup);
        let closed = encoder.close(Ending::Tag, &mut call.writer, &mut json);
        self.emit(Piece::Arguments(json), out);
        self.value_closed(&mut call, value.parameter, closed);
        self.state = State::Invoke(call);
    }

    /// P12: a value is CDATA when it begins with it.
    fn value_ahead(&self, call: &Call, value: &Value, end: End) -> Outcome {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        let spaces = rest.len() - trimmed.len();
        let cdata = if spaces > MAX_SPACES { Lex::Absent } else { word(trimmed, CDATA_OPEN, end) };
        match cdata {
            Lex::Wait => Outcome::Wait,
            Lex::Found(()) => {
                let markup = if value.markup == Markup::Plain { Markup::Cdata } else { value.markup };
                Outcome::Begin(Body::Cdata(value.encoder(call, markup)), spaces + CDATA_OPEN.len())
            }
            Lex::Absent => Outcome::Begin(Body::Text(value.encoder(call, value.markup)), 0),
        }
    }

    fn value_text(&mut self, call: &mut Call, value: &mut Value, end: End, json: &mut String) -> Outcome {
        loop {
            let rest = self.rest();
            let Some(at) = next_bracket(rest, call.spelling) else {
                self.value_data(call, value, rest.len(), json);
                return Outcome::Wait;
            };
            self.value_data(call, value, at, json);
            #[cfg(test)]
            {
                self.scanned += self.rest().len().min(super::judge::MAX_LOOKAHEAD);
            }
            match self.scene(call, value).judge(self.rest(), end) {
                Verdict::Wait => return Outcome::Wait,
                // P28: half a tag at the end of the answer is cut, not misspelt.
                Verdict::Broken if ends_in_tag(self.rest()) && end != End::More => return Outcome::Wait,
                Verdict::Close(close) => return Outcome::Close(close),
                Verdict::Broken => return Outcome::Broken,
                Verdict::Data(len, nesting) => {
                    self.value_data(call, value, len, json);
                    value.nest(nesting);
                }
            }
        }
    }

    fn value_cdata(&mut self, call: &mut Call, value: &mut Value, end: End, json: &mut String) -> Outcome {
        loop {
            let rest = self.rest();
            let Some(at) = memchr::memchr(b']', rest.as_bytes()) else {
                self.value_data(call, value, rest.len(), json);
                return Outcome::Wait;
            };
            self.value_data(call, value, at, json);
            match self.cdata_end(call, value, end) {
                CdataEnd::Wait => return Outcome::Wait,
                CdataEnd::Data(len) => self.value_data(call, value, len, json),
                CdataEnd::Joined(len) => self.consume(len),
                CdataEnd::Close(close) => return Outcome::Close(close),
            }
        }
    }

    /// `]]>` ends a section only before a closing tag or the next section; elsewhere it is text.
    fn cdata_end(&self, call: &Call, value: &Value, end: End) -> CdataEnd {
        let rest = self.rest();
        match word(rest, CDATA_CLOSE, end) {
            Lex::Wait => return CdataEnd::Wait,
            Lex::Absent => return CdataEnd::Data(1),
            Lex::Found(()) => {}
        }
        let after = &rest[CDATA_CLOSE.len()..];
        match word(after, CDATA_OPEN, end) {
            Lex::Wait => return CdataEnd::Wait,
            Lex::Found(()) => return CdataEnd::Joined(CDATA_CLOSE.len() + CDATA_OPEN.len()),
            Lex::Absent => {}
        }
        let tag = after.trim_start();
        let spaces = after.len() - tag.len();
        if spaces > MAX_SPACES || (tag.is_empty() && end != End::More) {
            return CdataEnd::Data(1);
        }
        if tag.is_empty() {
            return CdataEnd::Wait;
        }
        let mut scene = self.scene(call, value);
        scene.nest = &[];
        scene.at_line_start = true;
        scene.holds_close = false;
        scene.is_block = false;
        match scene.judge(tag, end) {
            Verdict::Wait => CdataEnd::Wait,
            Verdict::Data(..) | Verdict::Broken => CdataEnd::Data(1),
            Verdict::Close(close) => CdataEnd::Close(Close {
                len: CDATA_CLOSE.len() + spaces + close.len,
                // Inside a section every character counts.
                ending: Ending::Tag,
                recovery: close.recovery,
            }),
        }
    }

    fn scene<'s>(&'s self, call: &'s Call, value: &'s Value) -> Scene<'s> {
        Scene {
            rules: &self.rules,
            slots: &call.slots,
            family: call.family,
            parameter: &value.written,
            nest: &value.nest,
            at_line_start: value.at_line_start,
            holds_close: value.holds_close,
            is_block: value.is_block(),
        }
    }

    fn value_data(&mut self, call: &mut Call, value: &mut Value, len: usize, json: &mut String) {
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

enum Outcome {
    Begin(Body, usize),
    Wait,
    Close(Close),
    /// Two readings are possible, and one of them loses an argument.
    Broken,
}

enum CdataEnd {
    Wait,
    Data(usize),
    Joined(usize),
    Close(Close),
}

impl Value {
    fn encoder(&self, call: &Call, markup: Markup) -> Encoder {
        Encoder::new(self.parameter.clone(), call.tool.kind, markup)
    }

    fn is_block(&self) -> bool {
        match &self.body {
            Body::Ahead => false,
            Body::Text(encoder) | Body::Cdata(encoder) => encoder.is_block(),
        }
    }

    fn is_too_large(&self) -> bool {
        match &self.body {
            Body::Ahead => false,
            Body::Text(encoder) | Body::Cdata(encoder) => encoder.is_too_large(),
        }
    }
}

/// Whether what cannot be read as its type seems to have swallowed parts of the call.
fn holds_markup(text: &str) -> bool {
    ["<parameter", "</parameter", "<invoke", "</invoke"].iter().any(|markup| text.contains(markup))
}

fn ends_in_tag(text: &str) -> bool {
    text.rfind('<').is_some_and(|at| tag(&text[at..], End::More) == Lex::Wait)
}

/// Where the next tag may begin. Wide brackets count only in a call that was opened with them.
fn next_bracket(text: &str, spelling: Spelling) -> Option<usize> {
    match spelling {
        Spelling::Plain | Spelling::Unquoted | Spelling::Escaped | Spelling::Dsml => {
            memchr::memchr(b'<', text.as_bytes())
        }
        Spelling::Wide => text.find(['<', '＜', '〈']),
    }
}
