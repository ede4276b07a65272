//! An event as a line for people: time, level, message, fields.
//!
//! Every turn writes a line. It looks like the lines of tracing-subscriber's own formatter, which took a seventh of all
//! the work of a turn; here the pieces are written one after the other, and nothing is styled in between.

use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::log_time;

/// A first guess at what a line takes: that of a turn.
const USUAL_LINE_BYTES: usize = 512;

/// Writes lines for people.
pub(crate) struct HumanLine {
    styles: Styles,
}

/// What switches a style on, and all styles off. Empty where nobody looks at a terminal.
#[derive(Clone, Copy)]
struct Styles {
    bold: &'static str,
    dimmed: &'static str,
    italic: &'static str,
    off: &'static str,
    /// What stands between the name of a field and its value, styles included.
    equals: &'static str,
    level: fn(Level) -> &'static str,
}

impl HumanLine {
    /// For files and pipes.
    pub(crate) fn plain() -> Self {
        let styles = Styles { bold: "", dimmed: "", italic: "", off: "", equals: "=", level: |_| "" };
        Self { styles }
    }

    /// For terminals.
    pub(crate) fn coloured() -> Self {
        let level = |level| match level {
            Level::TRACE => "\x1b[35m",
            Level::DEBUG => "\x1b[34m",
            Level::INFO => "\x1b[32m",
            Level::WARN => "\x1b[33m",
            Level::ERROR => "\x1b[31m",
        };
        let styles = Styles {
            bold: "\x1b[1m",
            dimmed: "\x1b[2m",
            italic: "\x1b[3m",
            off: "\x1b[0m",
            equals: "\x1b[0m\x1b[2m=\x1b[0m",
            level,
        };
        Self { styles }
    }
}

impl<S, N> FormatEvent<S, N> for HumanLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Styles { bold, dimmed, off, level, italic: _, equals: _ } = self.styles;
        let mut line = String::with_capacity(USUAL_LINE_BYTES);
        line.push_str(dimmed);
        log_time::push_now(&mut line);
        let of_event = *event.metadata().level();
        for piece in [off, " ", level(of_event), level_name(of_event), off, " "] {
            line.push_str(piece);
        }
        if let Some(spans) = context.event_scope() {
            for span in spans.from_root() {
                write!(line, "{bold}{}{off}", span.name())?;
                let extensions = span.extensions();
                if let Some(fields) = extensions.get::<FormattedFields<N>>().filter(|all| !all.is_empty()) {
                    write!(line, "{bold}{{{off}{fields}{bold}}}{off}")?;
                }
                write!(line, "{dimmed}:{off}")?;
            }
            line.push(' ');
        }
        let mut fields = Fields { line, styles: self.styles, separator: "", written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        fields.line.push('\n');
        writer.write_str(&fields.line)
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::TRACE => "TRACE",
        Level::DEBUG => "DEBUG",
        Level::INFO => " INFO",
        Level::WARN => " WARN",
        Level::ERROR => "ERROR",
    }
}

/// Writes the message and the fields.
struct Fields {
    line: String,
    styles: Styles,
    separator: &'static str,
    written: fmt::Result,
}

impl Fields {
    fn field(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        self.name(field);
        let written = Harmless(&mut self.line).write_fmt(value);
        self.written = self.written.and(written);
    }

    fn name(&mut self, field: &Field) {
        self.line.push_str(self.separator);
        self.separator = " ";
        if field.name() == "message" {
            return;
        }
        for piece in [self.styles.italic, field.name(), self.styles.equals] {
            self.line.push_str(piece);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let needs_no_escape = |byte| is_plain(byte) && !matches!(byte, b'"' | b'\\');
        if field.name() == "message" {
            self.field(field, format_args!("{value}"));
        } else if value.bytes().all(needs_no_escape) {
            self.name(field);
            for piece in ["\"", value, "\""] {
                self.line.push_str(piece);
            }
        } else {
            self.field(field, format_args!("{value:?}"));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        push_number(&mut self.line, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let Some(first) = value.source() else { return self.field(field, format_args!("{value}")) };
        let mut sources = format!("{}.sources=[{first}", field.name());
        let mut last = first;
        while let Some(cause) = last.source() {
            sources.push_str(", ");
            sources.push_str(&cause.to_string());
            last = cause;
        }
        self.field(field, format_args!("{value} {sources}]"));
    }
}

/// Half of what a turn tells are numbers, and the formatter's way to write them is a long one.
fn push_number(line: &mut String, number: u64) {
    if number >= 10 {
        push_number(line, number / 10);
    }
    line.extend(char::from_digit((number % 10) as u32, 10));
}

/// Shows what would command a terminal instead of sending it there: names and messages come from strangers.
struct Harmless<'a>(&'a mut String);

impl Write for Harmless<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.bytes().all(is_plain) {
            self.0.push_str(text);
            return Ok(());
        }
        for letter in text.chars() {
            match letter {
                '\n' | '\t' => self.0.push(letter),
                _ if letter.is_ascii_control() => write!(self.0, "\\x{:02x}", u32::from(letter))?,
                _ if letter.is_control() => write!(self.0, "\\u{{{:x}}}", u32::from(letter))?,
                _ => self.0.push(letter),
            }
        }
        Ok(())
    }
}

fn is_plain(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Kept {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Kept {
        /// Each line, its time cut off.
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            let without_time = |line: &str| line.split_once('Z').unwrap().1.to_owned();
            text.lines().map(without_time).collect()
        }
    }

    fn logged(line: HumanLine, tell: fn()) -> Vec<String> {
        let kept = Kept::default();
        let has_colours = !line.styles.off.is_empty();
        let lines = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(kept.clone());
        let lines = lines.with_ansi(has_colours).event_format(line).finish();
        tracing::subscriber::with_default(lines, tell);
        kept.lines()
    }

    fn usual(has_colours: bool, tell: fn()) -> Vec<String> {
        let kept = Kept::default();
        let lines = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(kept.clone());
        let lines = lines.with_ansi(has_colours).with_target(false).finish();
        tracing::subscriber::with_default(lines, tell);
        kept.lines()
    }

    /// An error with two causes.
    #[derive(Debug)]
    struct Nested(&'static str, Option<Box<Nested>>);

    impl fmt::Display for Nested {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Nested {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn tell_all_kinds() {
        let cause = io::Error::other("disk full");
        let failure = Nested("a", Some(Box::new(Nested("b", Some(Box::new(Nested("c", None)))))));
        tracing::trace!("quiet");
        tracing::debug!(wait = ?std::time::Duration::from_millis(5), "again");
        let losses: Option<&str> = None;
        tracing::info!(id = %7, model = "a \"b\" é", upstream = Some("h"), losses, status = 200_u16, ok = true, "turn");
        tracing::warn!(error = &cause as &(dyn Error + 'static), "not \x1b[2Jwritten");
        tracing::error!(error = &failure as &(dyn Error + 'static), "lost");
        tracing::info_span!("outer", a = 1).in_scope(|| tracing::info!("inside"));
        tracing::info!(alone = 1.5);
        tracing::info!(none = 0_u8, ten = 10_u64, most = u64::MAX, least = i64::MIN, "numbers");
    }

    #[test]
    fn lines_look_like_the_usual_ones() {
        assert_eq!(logged(HumanLine::plain(), tell_all_kinds), usual(false, tell_all_kinds));
        assert_eq!(logged(HumanLine::coloured(), tell_all_kinds).len(), 8);
    }

    #[test]
    fn colours_are_the_usual_ones() {
        fn tell() {
            tracing::info!(status = 200, model = "m", "turn");
            tracing::error!("bad");
        }
        assert_eq!(logged(HumanLine::coloured(), tell), usual(true, tell));
    }

    #[test]
    fn values_cannot_command_a_terminal() {
        let lines = logged(HumanLine::plain(), || tracing::info!(name = %"a\x1b[2J\u{9b}\x07b", "turn"));
        assert_eq!(lines, ["  INFO turn name=a\\x1b[2J\\u{9b}\\x07b"]);
    }

    #[test]
    fn a_line_begins_with_its_time() {
        let kept = Kept::default();
        let lines = tracing_subscriber::fmt().with_writer(kept.clone()).event_format(HumanLine::plain());
        tracing::subscriber::with_default(lines.finish(), || tracing::info!("turn"));
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
        assert_eq!(rest, " INFO turn\n");
    }
}
