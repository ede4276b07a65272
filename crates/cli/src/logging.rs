//! Log lines, to stderr, so that stdout stays with what a person asked for.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::args::LogFormat;
use crate::environment::Environment;

/// Starts logging. `TOOLGATE_LOG` says what: `debug`, or a filter such as `toolgate_backend=debug`.
pub(crate) fn start(format: LogFormat, environment: &Environment) -> anyhow::Result<()> {
    let wanted = environment.variable("TOOLGATE_LOG").unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&wanted)
        .with_context(|| format!("TOOLGATE_LOG is \"{wanted}\": write warn, info or debug"))?;
    let colours = io::stderr().is_terminal() && environment.variable("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Human => lines.with_ansi(colours).with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|cause| anyhow::anyhow!("starting the log: {cause}"))
}
