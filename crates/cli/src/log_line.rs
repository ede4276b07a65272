//! An event as a line for people: time, level, message, fields.
//!
//! Every turn writes a line. It looks like the lines of tracing-subscriber's own formatter, which took a seventh of all
//! the work of a turn; here the pieces are written one after the other, and nothing is styled in between.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::log_names::{EventNames, Look, Names, Styles};
use crate::log_text::{Harmless, needs_no_quoting, push_number};
use crate::log_time::Second;

/// A first guess at what a line takes: that of a turn.
const USUAL_LINE_BYTES: usize = 512;

/// A thread keeps no more room than this for its next line: one long error should not cost memory for ever.
const MAX_KEPT_BYTES: usize = 4 * USUAL_LINE_BYTES;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::new()) };
}

/// What the lines of one thread leave to each other.
struct Kept {
    /// Room for a line.
    line: String,
    second: Second,
    names: Names,
}

impl Kept {
    const fn new() -> Self {
        Self { line: String::new(), second: Second::new(), names: Names::new() }
    }
}

/// Writes lines for people.
pub(crate) struct HumanLine {
    look: Look,
}

impl HumanLine {
    /// For files and pipes.
    pub(crate) fn plain() -> Self {
        Self { look: Look::Plain }
    }

    /// For terminals.
    pub(crate) fn coloured() -> Self {
        Self { look: Look::Coloured }
    }

    fn write<S, N>(&self, kept: &mut Kept, context: &FmtContext<'_, S, N>, event: &Event<'_>) -> fmt::Result
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        N: for<'a> FormatFields<'a> + 'static,
    {
        let Kept { line, second, names } = kept;
        line.clear();
        line.reserve(USUAL_LINE_BYTES);
        if self.look == Look::Coloured {
            line.push_str(Styles::COLOURED.dimmed);
        }
        second.push_now(line);
        line.push_str(self.look.level(*event.metadata().level()));
        if let Some(spans) = context.event_scope() {
            let Styles { bold, dimmed, off, italic: _ } = self.look.styles();
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
        let names = names.of(event.metadata(), self.look);
        let mut fields = Fields { line, names, is_first: true, written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        line.push('\n');
        Ok(())
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
        KEPT.with(|kept| {
            // A value that logs while it is being written finds the room taken.
            let Ok(mut kept) = kept.try_borrow_mut() else {
                let mut own = Kept::new();
                self.write(&mut own, context, event)?;
                return writer.write_str(&own.line);
            };
            let written = self.write(&mut kept, context, event);
            let written = written.and_then(|()| writer.write_str(&kept.line));
            if kept.line.capacity() > MAX_KEPT_BYTES {
                kept.line = String::new();
            }
            written
        })
    }
}

/// Writes the message and the fields.
struct Fields<'a> {
    line: &'a mut String,
    names: &'a EventNames,
    is_first: bool,
    written: fmt::Result,
}

impl Fields<'_> {
    fn field(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        self.name(field);
        let written = Harmless(self.line).write_fmt(value);
        self.written = self.written.and(written);
    }

    fn name(&mut self, field: &Field) {
        let name = self.names.before(field);
        self.line.push_str(if self.is_first { &name[1..] } else { name });
        self.is_first = false;
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.field(field, format_args!("{value}"));
        } else if needs_no_quoting(value) {
            self.name(field);
            self.line.push('"');
            self.line.push_str(value);
            self.line.push('"');
        } else {
            self.field(field, format_args!("{value:?}"));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        push_number(self.line, value);
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::Level;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Written {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Written {
        /// Each line, its time cut off.
        fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            let without_time = |line: &str| line.split_once('Z').unwrap().1.to_owned();
            text.lines().map(without_time).collect()
        }
    }

    fn logged(line: HumanLine, tell: fn()) -> Vec<String> {
        let written = Written::default();
        let has_colours = line.look == Look::Coloured;
        let lines = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(written.clone());
        let lines = lines.with_ansi(has_colours).event_format(line).finish();
        tracing::subscriber::with_default(lines, tell);
        written.lines()
    }

    fn usual(has_colours: bool, tell: fn()) -> Vec<String> {
        let written = Written::default();
        let lines = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(written.clone());
        let lines = lines.with_ansi(has_colours).with_target(false).finish();
        tracing::subscriber::with_default(lines, tell);
        written.lines()
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
        tracing::info!(
            after = "nothing",
            back = "\\",
            tab = "\t",
            long = "0123456789abcdef0123456789abcde\"",
            ""
        );
    }

    #[test]
    fn lines_look_like_the_usual_ones() {
        assert_eq!(logged(HumanLine::plain(), tell_all_kinds), usual(false, tell_all_kinds));
        assert_eq!(logged(HumanLine::coloured(), tell_all_kinds).len(), 9);
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
    fn a_value_that_logs_while_it_is_written_gets_a_line_of_its_own() {
        let tell: fn() = || tracing::info!(value = 1, "within");
        let lines = KEPT.with_borrow_mut(|_| logged(HumanLine::plain(), tell));
        assert_eq!(lines, ["  INFO within value=1"]);
    }

    #[test]
    fn a_long_line_leaves_no_memory_behind() {
        fn tell() {
            tracing::info!("{}", "long ".repeat(MAX_KEPT_BYTES));
        }
        assert_eq!(logged(HumanLine::plain(), tell)[0].len(), "  INFO ".len() + 5 * MAX_KEPT_BYTES);
        assert_eq!(KEPT.with_borrow(|kept| kept.line.capacity()), 0);
        logged(HumanLine::plain(), || tracing::info!("short"));
        assert!(KEPT.with_borrow(|kept| (1..=MAX_KEPT_BYTES).contains(&kept.line.capacity())));
    }

    #[test]
    fn a_line_begins_with_its_time() {
        let written = Written::default();
        let lines = tracing_subscriber::fmt().with_writer(written.clone()).event_format(HumanLine::plain());
        tracing::subscriber::with_default(lines.finish(), || tracing::info!("turn"));
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
        assert_eq!(rest, " INFO turn\n");
    }
}
