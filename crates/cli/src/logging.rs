//! Log lines, to stderr, so that stdout stays with what a person asked for.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::args::LogFormat;
use crate::environment::Environment;
use crate::log_line::HumanLine;
use crate::log_writer::LogWriter;

/// Starts logging; flush what it gives before the program ends. `TOOLGATE_LOG` says what: `debug`, or a filter such as `toolgate_backend=debug`.
pub(crate) fn start(format: LogFormat, environment: &Environment) -> anyhow::Result<LogWriter> {
    let wanted = environment.variable("TOOLGATE_LOG").unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&wanted)
        .with_context(|| format!("TOOLGATE_LOG is \"{wanted}\": write warn, info or debug"))?;
    let colours = io::stderr().is_terminal() && environment.variable("NO_COLOR").is_none();
    let writer = LogWriter::start().context("starting the log: the system gave no thread")?;
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer.clone()).with_ansi(colours);
    let started = match format {
        LogFormat::Human if colours => lines.event_format(HumanLine::coloured()).try_init(),
        LogFormat::Human => lines.event_format(HumanLine::plain()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|cause| anyhow::anyhow!("starting the log: {cause}"))?;
    Ok(writer)
}
