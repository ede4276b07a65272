//! `toolgate serve`: starts the gateway and shuts it down on a signal.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::Running;

use crate::announce;
use crate::args::{LogFormat, Options};
use crate::assemble::{Assembled, assemble};
use crate::config::{self, Loaded};
use crate::console::Console;
use crate::environment::Environment;
use crate::housekeeping;
use crate::logging;
use crate::signals::Signals;

/// More threads gain nothing: one core relays thousands of streams.
const MAX_DEFAULT_WORKERS: usize = 4;

/// Leaves cores for the store, agents and other programs. Fewer workers also batch better: two requests ready on one
/// thread cost less than one each on two.
const CORES_PER_WORKER: usize = 2;

/// The exit code that shells use for a program ended by SIGINT.
const EXIT_CODE_OF_SIGNAL: u8 = 130;

/// Runs the gateway until a signal stops it.
pub(crate) fn run(options: &Options, environment: &Environment) -> anyhow::Result<ExitCode> {
    let loaded = config::load(options.config.as_deref(), options.listen, environment)?;
    let log = logging::start(options.log, environment)?;
    for warning in &loaded.warnings {
        tracing::warn!("{}", warning.without_severity());
    }
    let listener = listen(loaded.config.listen)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the async runtime")?;
    runtime.block_on(serve(loaded, listener, options, environment, log.dropped_lines()))
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|cause| {
        let kind = cause.kind();
        let advice = if kind == io::ErrorKind::AddrInUse {
            format!(
                "{address} is in use: stop the program that listens there (another toolgate?), \
                 or choose another address with --listen; port 0 picks a free port"
            )
        } else if kind == io::ErrorKind::PermissionDenied {
            format!("no permission to listen on {address}: choose a port from 1024 up with --listen")
        } else if kind == io::ErrorKind::AddrNotAvailable {
            format!("{address} is not an address of this machine: use 127.0.0.1 or 0.0.0.0")
        } else {
            format!("cannot listen on {address}: choose another address with --listen")
        };
        anyhow::Error::new(cause).context(advice)
    })
}

async fn serve(
    loaded: Loaded,
    listener: TcpListener,
    options: &Options,
    environment: &Environment,
    dropped_log_lines: Arc<AtomicU64>,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("listening for signals")?;
    let Assembled { gateway, store, usage, usage_worker, console } =
        assemble(&loaded.config, workers(options), dropped_log_lines).await?;
    let mut background = JoinSet::new();
    background.spawn(async {
        let end = usage_worker.run().await;
        tracing::debug!(?end, "the usage worker ended");
    });
    background.spawn(housekeeping::run(Arc::clone(&store), loaded.config.record.lifetime()));

    let shutdown = CancellationToken::new();
    let running = gateway.start(&listener, shutdown.clone()).context("starting the gateway")?;
    // Each worker has its own handle; the port closes when the last worker stops.
    drop(listener);
    let console = Console::new(running.address(), console);
    print_ready(&loaded, &running, &console, options.log, environment)?;

    let mut ended = pin!(running.wait());
    let early = tokio::select! {
        outcome = &mut ended => Some(outcome),
        () = signals.next() => None,
    };
    let outcome = if let Some(outcome) = early {
        outcome
    } else {
        tracing::info!("stopping: waiting for open replies; a second signal stops at once");
        shutdown.cancel();
        tokio::select! {
            outcome = &mut ended => outcome,
            () = signals.next() => return Ok(ExitCode::from(EXIT_CODE_OF_SIGNAL)),
        }
    };
    outcome.context("serving")?;
    usage.shutdown().await.context("stopping")?;
    background.shutdown().await;
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

fn workers(options: &Options) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let default = cores.div_ceil(CORES_PER_WORKER).min(MAX_DEFAULT_WORKERS);
    options.workers.map_or(default, usize::from)
}

fn print_ready(
    loaded: &Loaded,
    running: &Running,
    console: &Console,
    log: LogFormat,
    environment: &Environment,
) -> anyhow::Result<()> {
    let address = running.address();
    match log {
        LogFormat::Text => {
            let mut out = io::stdout().lock();
            let console = console.greeting(&loaded.config.store, &out)?;
            announce::write(loaded, address, &console, environment, &mut out)
                .and_then(|()| out.flush())
                .context("writing to stdout")
        }
        LogFormat::Json => {
            tracing::info!(address = %format_args!("http://{address}"), "ready");
            Ok(())
        }
    }
}
