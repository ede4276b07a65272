//! Encodes the raw text of one parameter as JSON. Strings are streamed; values that must be parsed whole are
//! buffered. Output is append-only, so the concatenated pieces are the final JSON, however the text was split.

pub(crate) mod coerce;
pub(crate) mod escape;
pub(crate) mod repair;
#[cfg(test)]
mod tests;

use toolgate_model::CallKind;

use crate::recovery::Recovery;
use crate::schema::{Parameter, Types};

/// The maximum size of a value that must be buffered.
pub(crate) const MAX_BUFFERED_VALUE: usize = 8 * 1024 * 1024;
/// The maximum length of a number, `true`, `false` or `null`; a longer value that may be a string is a string.
const MAX_SCALAR: usize = 64;

/// Writes the JSON object with the arguments of one call.
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

/// Encodes one value.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    parameter: Parameter,
    mode: Mode,
    layout: Layout,
    /// A newline that may belong to the closing tag.
    line_end: &'static str,
    buffer: String,
    markup: Markup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The input of a custom tool, which is not JSON.
    Raw,
    /// A string whose opening quote has been written.
    String,
    /// A string whose opening quote has not been written.
    StringPending,
    /// A string unless it is exactly `null` (P17).
    Nullable,
    /// A string unless it turns out to be JSON of another allowed type.
    Mixed,
    /// Buffered to the end.
    Buffered,
}

/// How a value is placed between its tags (P20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Unknown,
    /// The first character is `\r`; the next one decides.
    CarriageReturn,
    Inline,
    Block,
    BlockCrLf,
}

/// How the model marked up a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markup {
    Plain,
    /// In `<![CDATA[`: all whitespace belongs to the value, and a string is never `null`.
    Cdata,
    /// `string="true"` (DSML).
    String,
    /// `string="false"` (DSML).
    Json,
}

/// What ends a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseKind {
    Tag,
    /// Another tag at the start of a line: the newline before it is not part of the value.
    Implicit,
}

/// The result of closing a value.
#[derive(Debug, PartialEq)]
pub(crate) enum CloseOutcome {
    Written,
    Recovered(Recovery),
    /// Nothing was written: the text matches no allowed type.
    Unreadable(String),
}

impl Encoder {
    pub(crate) fn new(parameter: Parameter, kind: CallKind, markup: Markup) -> Self {
        let mode = match kind {
            CallKind::Custom => Mode::Raw,
            CallKind::Function => mode(&parameter, markup),
        };
        let layout = if markup == Markup::Cdata { Layout::Inline } else { Layout::Unknown };
        Self { parameter, mode, layout, line_end: "", buffer: String::new(), markup }
    }

    /// Writes what can be written before the first character.
    pub(crate) fn open(&mut self, writer: &mut ArgumentWriter, out: &mut String) {
        if self.mode == Mode::StringPending {
            self.begin_string(writer, out);
        }
    }

    /// Encodes more of the value.
    pub(crate) fn push(&mut self, data: &str, writer: &mut ArgumentWriter, out: &mut String) {
        let mut data = self.skip_layout(data, writer, out);
        if data.is_empty() {
            return;
        }
        if self.line_end == "\r" && data.starts_with('\n') {
            self.line_end = "\r\n";
            data = &data[1..];
            if data.is_empty() {
                return;
            }
        }
        let tail = std::mem::take(&mut self.line_end);
        self.write(tail, writer, out);
        self.line_end = ["\r\n", "\n", "\r"].into_iter().find(|end| data.ends_with(end)).unwrap_or_default();
        self.write(&data[..data.len() - self.line_end.len()], writer, out);
    }

    /// The number of bytes held back until more text arrives. Values that are buffered whole do not count.
    pub(crate) fn buffered_bytes(&self) -> usize {
        let streamed = matches!(self.mode, Mode::Raw | Mode::String | Mode::StringPending | Mode::Nullable);
        self.line_end.len() + if streamed { self.buffer.len() } else { 0 }
    }

    /// True if the value started on its own line.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.layout, Layout::Block | Layout::BlockCrLf)
    }

    /// True if the value exceeds the size limit.
    pub(crate) fn is_too_large(&self) -> bool {
        self.buffer.len() > MAX_BUFFERED_VALUE
    }

    /// Ends the value.
    pub(crate) fn close(
        mut self,
        kind: CloseKind,
        writer: &mut ArgumentWriter,
        out: &mut String,
    ) -> CloseOutcome {
        if self.layout == Layout::CarriageReturn {
            self.layout = Layout::Inline;
            self.line_end = "\r";
        }
        let tail = self.line_end_of_value(kind);
        self.write(tail, writer, out);
        match self.mode {
            Mode::Raw => CloseOutcome::Written,
            Mode::String => {
                out.push('"');
                CloseOutcome::Written
            }
            Mode::Nullable if self.buffer == "null" && self.markup != Markup::Cdata => {
                writer.member(&self.parameter.name, "null", out);
                CloseOutcome::Written
            }
            Mode::StringPending | Mode::Nullable => {
                self.begin_string(writer, out);
                out.push('"');
                CloseOutcome::Written
            }
            Mode::Mixed | Mode::Buffered => self.close_held(writer, out),
        }
    }

    fn close_held(self, writer: &mut ArgumentWriter, out: &mut String) -> CloseOutcome {
        let Some(reading) = coerce::read(&self.buffer, &self.parameter) else {
            return CloseOutcome::Unreadable(self.buffer);
        };
        writer.member(&self.parameter.name, &reading.json, out);
        reading.recovery.map_or(CloseOutcome::Written, CloseOutcome::Recovered)
    }

    fn line_end_of_value(&self, kind: CloseKind) -> &'static str {
        match (self.layout, kind, self.line_end) {
            (Layout::Block, _, "\r\n") => "\r",
            (Layout::Block, _, "\n")
            | (Layout::BlockCrLf, _, "\r\n" | "\n")
            | (_, CloseKind::Implicit, "\n" | "\r\n") => "",
            (_, _, tail) => tail,
        }
    }

    /// Decides the layout on the first characters, and skips the newline that starts a block.
    fn skip_layout<'d>(&mut self, data: &'d str, writer: &mut ArgumentWriter, out: &mut String) -> &'d str {
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
            self.write("\r", writer, out);
        }
        data
    }

    fn write(&mut self, data: &str, writer: &mut ArgumentWriter, out: &mut String) {
        if data.is_empty() {
            return;
        }
        match self.mode {
            Mode::Raw => out.push_str(data),
            Mode::String => escape::text(data, out),
            Mode::StringPending => {
                self.begin_string(writer, out);
                escape::text(data, out);
            }
            Mode::Nullable => {
                self.buffer.push_str(data);
                if !"null".starts_with(self.buffer.as_str()) {
                    self.begin_string(writer, out);
                }
            }
            Mode::Mixed => {
                self.buffer.push_str(data);
                if self.buffer.len() > MAX_BUFFERED_VALUE || !may_be_json(&self.buffer, self.parameter.types)
                {
                    self.begin_string(writer, out);
                }
            }
            // Beyond the limit nothing more is kept; the caller checks the limit and leaves the call
            // unfinished.
            Mode::Buffered if self.is_too_large() => {}
            Mode::Buffered => self.buffer.push_str(data),
        }
    }

    fn begin_string(&mut self, writer: &mut ArgumentWriter, out: &mut String) {
        writer.key(&self.parameter.name, out);
        out.push('"');
        let buffered = std::mem::take(&mut self.buffer);
        escape::text(&buffered, out);
        self.mode = Mode::String;
    }
}

fn mode(parameter: &Parameter, markup: Markup) -> Mode {
    let types = parameter.types;
    match markup {
        Markup::String => return Mode::StringPending,
        Markup::Json => return Mode::Buffered,
        Markup::Plain | Markup::Cdata => {}
    }
    if !parameter.enum_values.is_empty() || !types.has(Types::STRING) {
        Mode::Buffered
    } else if types == Types::STRING {
        Mode::StringPending
    } else if types == Types::STRING.or(Types::NULL) {
        Mode::Nullable
    } else {
        Mode::Mixed
    }
}

/// Whether the start of a value can still become JSON of an allowed type other than string.
fn may_be_json(buffered: &str, types: Types) -> bool {
    let text = buffered.trim_start();
    // Depends only on the first characters, not on how many have arrived.
    if buffered.len() - text.len() > MAX_SCALAR {
        return false;
    }
    let scalar = buffered.len() <= MAX_SCALAR;
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
