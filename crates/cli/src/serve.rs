//! `toolgate serve`: from the config to a running gateway, and down again when a signal asks for it.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::announce;
use crate::args::{LogFormat, Options};
use crate::assemble::{Assembled, assemble};
use crate::config::{self, Loaded};
use crate::environment::Environment;
use crate::housekeeping;
use crate::logging;
use crate::signals::Signals;

/// More threads than this gain nothing: a core relays thousands of streams.
const MOST_WORKERS_BY_DEFAULT: usize = 4;

/// One thread for so many cores. The others are for the store, for agents, and for whoever else is on the machine;
/// and one thread that finds several things to do at once does each of them cheaper than two that find one each.
const CORES_PER_WORKER: usize = 2;

/// What a shell reports for a program that a signal ended.
const ENDED_BY_SIGNAL: u8 = 130;

/// Runs the gateway until it is told to stop.
pub(crate) fn run(options: &Options, environment: &Environment) -> anyhow::Result<ExitCode> {
    let loaded = config::load(options.config.as_deref(), options.listen, environment)?;
    let log = logging::start(options.log, environment)?;
    for warning in &loaded.warnings {
        tracing::warn!("{}", warning.for_the_log());
    }
    let listener = listen(loaded.config.listen)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting: the system gave no event queue")?;
    runtime.block_on(serve(loaded, listener, options, environment, log.dropped_lines()))
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|cause| {
        let kind = cause.kind();
        let advice = if kind == io::ErrorKind::AddrInUse {
            format!(
                "{address} is in use: stop the program that listens there (another toolgate?), \
                 or choose another address with --listen; port 0 takes a free one"
            )
        } else if kind == io::ErrorKind::PermissionDenied {
            format!("{address} may not be used by this user: choose a port from 1024 up with --listen")
        } else if kind == io::ErrorKind::AddrNotAvailable {
            format!("{address} is no address of this machine: use 127.0.0.1 or 0.0.0.0")
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
    let Assembled { gateway, store, usage, usage_worker } =
        assemble(&loaded.config, workers(options), dropped_log_lines).await?;
    let mut background = JoinSet::new();
    background.spawn(async {
        let end = usage_worker.run().await;
        tracing::debug!(?end, "usage is no longer written");
    });
    background.spawn(housekeeping::run(Arc::clone(&store)));

    let shutdown = CancellationToken::new();
    let running = gateway.start(&listener, shutdown.clone()).context("starting the gateway")?;
    // Each worker has its own handle; the port must close when the last of them stops.
    drop(listener);
    announce_to_people(&loaded, running.address(), options.log, environment)?;

    let mut ended = pin!(running.wait());
    let early = tokio::select! {
        outcome = &mut ended => Some(outcome),
        () = signals.next() => None,
    };
    let outcome = if let Some(outcome) = early {
        outcome
    } else {
        tracing::info!("stopping: open replies may finish; a second signal ends them at once");
        shutdown.cancel();
        tokio::select! {
            outcome = &mut ended => outcome,
            () = signals.next() => return Ok(ExitCode::from(ENDED_BY_SIGNAL)),
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
    let usual = cores.div_ceil(CORES_PER_WORKER).min(MOST_WORKERS_BY_DEFAULT);
    options.workers.map_or(usual, usize::from)
}

fn announce_to_people(
    loaded: &Loaded,
    address: SocketAddr,
    log: LogFormat,
    environment: &Environment,
) -> anyhow::Result<()> {
    match log {
        LogFormat::Text => {
            let mut out = io::stdout().lock();
            announce::write(loaded, address, environment, &mut out)
                .and_then(|()| out.flush())
                .context("writing to the terminal")
        }
        LogFormat::Json => {
            tracing::info!(address = %format_args!("http://{address}"), "ready");
            Ok(())
        }
    }
}
