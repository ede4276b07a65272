//! One parameter's value on its way from raw text to JSON: strings leave at once, what must be read whole is held.
//! Everything is written append-only, so the sum of the pieces is the final JSON whatever the pieces were.

pub(crate) mod coerce;
pub(crate) mod escape;
pub(crate) mod repair;
#[cfg(test)]
mod tests;

use toolgate_model::CallKind;

use crate::recovery::Recovery;
use crate::schema::{Parameter, Types};

/// How much of a value is held that has to be read whole.
pub(crate) const MAX_HELD: usize = 8 * 1024 * 1024;
/// No number, `true`, `false` or `null` is longer: past this a value that may also be a string is one.
const MAX_SCALAR: usize = 64;

/// The JSON object of one call as it is written.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentWriter {
    kind: CallKind,
    begun: bool,
}

impl ArgumentWriter {
    pub(crate) fn new(kind: CallKind) -> Self {
        Self { kind, begun: false }
    }

    pub(crate) fn member(&mut self, name: &str, json: &str, out: &mut String) {
        self.key(name, out);
        out.push_str(json);
    }

    pub(crate) fn end(&self, out: &mut String) {
        match self.kind {
            CallKind::Function if self.begun => out.push('}'),
            CallKind::Function => out.push_str("{}"),
            CallKind::Custom => {}
        }
    }

    fn key(&mut self, name: &str, out: &mut String) {
        out.push(if self.begun { ',' } else { '{' });
        self.begun = true;
        escape::quoted(name, out);
        out.push(':');
    }
}

/// Reads one value.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    parameter: Parameter,
    mode: Mode,
    layout: Layout,
    /// A line end that may belong to the closing tag.
    tail: &'static str,
    held: String,
    markup: Markup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A custom tool's input: not JSON at all.
    Raw,
    /// A string whose opening quote is written.
    String,
    /// A string that has not begun.
    StringAhead,
    /// A string unless it is exactly `null` (P17).
    Nullable,
    /// A string unless it turns out to be JSON of another allowed type.
    Mixed,
    /// Held to the end.
    Held,
}

/// How a value lies between its tags (P20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Unknown,
    /// `\r` came first; the next character decides.
    CarriageReturn,
    Inline,
    Block,
    BlockCrLf,
}

/// How the model marked a value's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markup {
    Plain,
    /// In `<![CDATA[`: every character counts, and a string is never `null`.
    Cdata,
    /// `string="true"` (DSML).
    String,
    /// `string="false"` (DSML).
    Json,
}

/// Whether the text right before the closing tag begins a line because it has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Tag,
    /// Ended by another tag that starts a line: the line end before it is no part of the value.
    Implicit,
}

/// What became of a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Closed {
    Written,
    Recovered(Recovery),
    /// Nothing was written: the text cannot be read as any allowed type.
    Unreadable(String),
}

impl Encoder {
    pub(crate) fn new(parameter: Parameter, kind: CallKind, markup: Markup) -> Self {
        let mode = match kind {
            CallKind::Custom => Mode::Raw,
            CallKind::Function => mode(&parameter, markup),
        };
        let layout = if markup == Markup::Cdata { Layout::Inline } else { Layout::Unknown };
        Self { parameter, mode, layout, tail: "", held: String::new(), markup }
    }

    /// Begins what can begin before the first character.
    pub(crate) fn open(&mut self, writer: &mut ArgumentWriter, out: &mut String) {
        if self.mode == Mode::StringAhead {
            self.begin_string(writer, out);
        }
    }

    /// Takes more of the value.
    pub(crate) fn push(&mut self, data: &str, writer: &mut ArgumentWriter, out: &mut String) {
        let mut data = self.after_layout(data, writer, out);
        if data.is_empty() {
            return;
        }
        if self.tail == "\r" && data.starts_with('\n') {
            self.tail = "\r\n";
            data = &data[1..];
            if data.is_empty() {
                return;
            }
        }
        let tail = std::mem::take(&mut self.tail);
        self.sink(tail, writer, out);
        self.tail = ["\r\n", "\n", "\r"].into_iter().find(|end| data.ends_with(end)).unwrap_or_default();
        self.sink(&data[..data.len() - self.tail.len()], writer, out);
    }

    /// How many bytes wait for what follows. A value held to its end is no part of this.
    pub(crate) fn waiting(&self) -> usize {
        let streamed = matches!(self.mode, Mode::Raw | Mode::String | Mode::StringAhead | Mode::Nullable);
        self.tail.len() + if streamed { self.held.len() } else { 0 }
    }

    /// True where the value began on a line of its own.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.layout, Layout::Block | Layout::BlockCrLf)
    }

    /// True where the value grew past what may be held.
    pub(crate) fn is_too_large(&self) -> bool {
        self.held.len() > MAX_HELD
    }

    /// Ends the value.
    pub(crate) fn close(mut self, ending: Ending, writer: &mut ArgumentWriter, out: &mut String) -> Closed {
        if self.layout == Layout::CarriageReturn {
            self.layout = Layout::Inline;
            self.tail = "\r";
        }
        let tail = self.tail_that_belongs(ending);
        self.sink(tail, writer, out);
        match self.mode {
            Mode::Raw => Closed::Written,
            Mode::String => {
                out.push('"');
                Closed::Written
            }
            Mode::Nullable if self.held == "null" && self.markup != Markup::Cdata => {
                writer.member(&self.parameter.name, "null", out);
                Closed::Written
            }
            Mode::StringAhead | Mode::Nullable => {
                self.begin_string(writer, out);
                out.push('"');
                Closed::Written
            }
            Mode::Mixed | Mode::Held => self.close_held(writer, out),
        }
    }

    fn close_held(self, writer: &mut ArgumentWriter, out: &mut String) -> Closed {
        let Some(reading) = coerce::read(&self.held, &self.parameter) else {
            return Closed::Unreadable(self.held);
        };
        writer.member(&self.parameter.name, &reading.json, out);
        reading.recovery.map_or(Closed::Written, Closed::Recovered)
    }

    fn tail_that_belongs(&self, ending: Ending) -> &'static str {
        match (self.layout, ending, self.tail) {
            (Layout::Block, _, "\r\n") => "\r",
            (Layout::Block, _, "\n")
            | (Layout::BlockCrLf, _, "\r\n" | "\n")
            | (_, Ending::Implicit, "\n" | "\r\n") => "",
            (_, _, tail) => tail,
        }
    }

    /// Decides the layout on the first characters and takes away the line end that opens a block.
    fn after_layout<'d>(&mut self, data: &'d str, writer: &mut ArgumentWriter, out: &mut String) -> &'d str {
        let mut data = data;
        if self.layout == Layout::Unknown {
            self.layout = match data.as_bytes().first() {
                None => return data,
                Some(b'\n') => Layout::Block,
                Some(b'\r') => Layout::CarriageReturn,
                Some(_) => Layout::Inline,
            };
            if self.layout != Layout::Inline {
                data = &data[1..];
            }
        }
        if self.layout == Layout::CarriageReturn && !data.is_empty() {
            if let Some(rest) = data.strip_prefix('\n') {
                self.layout = Layout::BlockCrLf;
                return rest;
            }
            self.layout = Layout::Inline;
            self.sink("\r", writer, out);
        }
        data
    }

    fn sink(&mut self, data: &str, writer: &mut ArgumentWriter, out: &mut String) {
        if data.is_empty() {
            return;
        }
        match self.mode {
            Mode::Raw => out.push_str(data),
            Mode::String => escape::text(data, out),
            Mode::StringAhead => {
                self.begin_string(writer, out);
                escape::text(data, out);
            }
            Mode::Nullable => {
                self.held.push_str(data);
                if !"null".starts_with(self.held.as_str()) {
                    self.begin_string(writer, out);
                }
            }
            Mode::Mixed => {
                self.held.push_str(data);
                if self.held.len() > MAX_HELD || !may_be_json(&self.held, self.parameter.types) {
                    self.begin_string(writer, out);
                }
            }
            // Past the bound nothing more is kept; the caller sees it and gives up on the call.
            Mode::Held if self.is_too_large() => {}
            Mode::Held => self.held.push_str(data),
        }
    }

    fn begin_string(&mut self, writer: &mut ArgumentWriter, out: &mut String) {
        writer.key(&self.parameter.name, out);
        out.push('"');
        let held = std::mem::take(&mut self.held);
        escape::text(&held, out);
        self.mode = Mode::String;
    }
}

fn mode(parameter: &Parameter, markup: Markup) -> Mode {
    let types = parameter.types;
    match markup {
        Markup::String => return Mode::StringAhead,
        Markup::Json => return Mode::Held,
        Markup::Plain | Markup::Cdata => {}
    }
    if !parameter.members.is_empty() || !types.has(Types::STRING) {
        Mode::Held
    } else if types == Types::STRING {
        Mode::StringAhead
    } else if types == Types::STRING.or(Types::NULL) {
        Mode::Nullable
    } else {
        Mode::Mixed
    }
}

/// Whether the beginning of a value can still turn out to be JSON of an allowed type other than a bare string.
fn may_be_json(held: &str, types: Types) -> bool {
    let text = held.trim_start();
    // Decided on what comes first, not on what has come by now.
    if held.len() - text.len() > MAX_SCALAR {
        return false;
    }
    let scalar = held.len() <= MAX_SCALAR;
    match text.as_bytes().first() {
        Some(b'{') => types.has(Types::OBJECT),
        Some(b'[') => types.has(Types::ARRAY),
        None | Some(b'"') => true,
        Some(b'-' | b'0'..=b'9') => scalar && types.has(Types::NUMBER.or(Types::INTEGER)),
        Some(b't' | b'f') => scalar && types.has(Types::BOOLEAN),
        Some(b'n') => scalar && types.has(Types::NULL),
        Some(_) => false,
    }
}
