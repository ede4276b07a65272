//! Sets up the log: one line per event, on stderr, so that stdout carries only the output of commands.

use std::fmt;
use std::io::{self, IsTerminal};
use std::panic;

use anyhow::Context;
use tracing::Dispatch;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{self, Writer};

use crate::args::LogFormat;
use crate::environment::Environment;
use crate::log_queue::LogQueue;

/// Starts logging. Dropping the returned queue flushes it.
///
/// `TOOLGATE_LOG` sets the level (`debug`) or a filter per module (`toolgate_backend=debug`).
pub(crate) fn start(format: LogFormat, environment: &Environment) -> anyhow::Result<LogQueue> {
    let level = environment.variable("TOOLGATE_LOG").unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&level)
        .with_context(|| format!("TOOLGATE_LOG is \"{level}\": write warn, info or debug"))?;
    let is_coloured = io::stderr().is_terminal() && environment.variable("NO_COLOR").is_none();
    let colours = if is_coloured { Colours::Ansi } else { Colours::None };
    let queue = LogQueue::start(io::stderr()).context("starting the log: cannot start its thread")?;
    let subscriber = subscriber(format, colours, filter, queue.writer());
    tracing::dispatcher::set_global_default(subscriber).context("starting the log")?;
    log_panics();
    Ok(queue)
}

#[derive(Clone, Copy, PartialEq)]
enum Colours {
    None,
    Ansi,
}

fn subscriber<W>(format: LogFormat, colours: Colours, filter: EnvFilter, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match format {
        LogFormat::Text if colours == Colours::Ansi => lines.with_target(false).into(),
        LogFormat::Text => {
            // The default formatter styles every field, even where no colours are wanted.
            let fields = format::debug_fn(write_field).delimited(" ");
            lines.with_target(false).with_ansi(false).fmt_fields(fields).into()
        }
        LogFormat::Json => lines.json().flatten_event(true).into(),
    }
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "{name}={value:?}"),
    }
}

/// Sends panic messages through the log: the default hook writes to stderr itself and would block where stderr is stuck.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic without a message");
        let at = panic.location().map(tracing::field::display);
        tracing::error!(at, thread = std::thread::current().name(), "panicked: {message}");
    }));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// The lines that `log` writes.
    fn logged(format: LogFormat, log: fn()) -> String {
        let written = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&written);
        let make_writer = move || Shared(Arc::clone(&writer));
        let subscriber = subscriber(format, Colours::None, EnvFilter::new("info"), make_writer);
        tracing::dispatcher::with_default(&subscriber, log);
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_text_line_has_a_utc_time_a_level_and_fields() {
        let line = logged(LogFormat::Text, || {
            tracing::info!(id = %7, upstream = Some("h"), losses = None::<&str>, status = 200_u16, "turn");
        });
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.contains('T') && time.ends_with('Z'), "{time}");
        assert_eq!(rest, " INFO turn id=7 upstream=\"h\" status=200\n");
    }

    #[test]
    fn a_json_line_is_one_flat_object() {
        let line = logged(LogFormat::Json, || tracing::warn!(status = 200_u16, "turn"));
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&object["message"], &object["status"]), (&"turn".into(), &200.into()));
        assert_eq!(object["level"], "WARN");
        assert!(object["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }
}
