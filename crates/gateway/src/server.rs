//! Listening, serving on several threads, and ending well.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_backend::config::{AgentConfig, BackendConfig};
use toolgate_backend::{Agents, AssembleError, Decider, Router, Tls};
use toolgate_state::{Store, UsageLog};

use crate::agent_key::AgentKey;
use crate::agent_records::StoredRecords;
use crate::approval::Approvals;
use crate::clock::Clock;
use crate::config::GatewayConfig;
use crate::http::{self, Door, Peer};
use crate::service::{Shared, Worker};
use crate::tasks::Tasks;
use crate::telemetry::Metrics;
use crate::wire::{self, Rewound};

/// How long a client may take to send the head of a request.
const MAX_HEAD_WAIT: Duration = Duration::from_secs(30);

/// The wait after a failed accept: it usually means that no file handles are left, and asking again at once would
/// only burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A gateway that is ready to serve.
pub struct Gateway {
    shared: Arc<Shared>,
    backends: BackendConfig,
    agents: Arc<Agents>,
    agent_key: AgentKey,
    tls: Tls,
    workers: usize,
}

/// What a gateway works with and does not own.
pub struct Parts {
    /// Where responses are kept.
    pub store: Arc<dyn Store>,
    /// Where usage goes. Its worker is run by whoever made it.
    pub usage: UsageLog,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
}

/// Why a gateway cannot serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The configuration cannot be put to work.
    #[error("building the back ends from the configuration failed")]
    Assemble(#[from] AssembleError),
    /// The listener or a thread could not be made.
    #[error("starting worker {worker} failed: the system gave no thread, runtime or socket")]
    Worker {
        /// Which one.
        worker: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The agents' folders or their thread could not be made.
    #[error("preparing the agents failed: check that their folders may be written")]
    Agents(#[source] io::Error),
    /// The system gave no random bytes.
    #[error("making the key of the gateway's own agents failed: the system gave no random bytes")]
    NoRandomness,
    /// A worker thread ended by a panic.
    #[error("a worker ended unexpectedly; please report what the log says about it")]
    WorkerLost,
}

impl Gateway {
    /// Prepares to serve. Every back end is built once here, so that mistakes show before anybody calls.
    pub fn new(config: &GatewayConfig, backends: BackendConfig, parts: Parts) -> Result<Self, ServeError> {
        let approvals = Approvals::new(config.approvals.clone());
        Self::decided_by(config, backends, parts, |agent| {
            Arc::new(approvals.in_folder(&agent.working_directory()))
        })
    }

    /// The same, where somebody else than the operator's rules decides what each agent may do.
    pub fn decided_by(
        config: &GatewayConfig,
        backends: BackendConfig,
        parts: Parts,
        decider: impl Fn(&AgentConfig) -> Arc<dyn Decider>,
    ) -> Result<Self, ServeError> {
        let tls = Tls::load()?;
        let records =
            Arc::new(StoredRecords { store: Arc::clone(&parts.store), clock: Arc::clone(&parts.clock) });
        let agents = Agents::new(&backends.agents, records, decider).map_err(ServeError::Agents)?;
        Router::assemble(&backends, &tls, &agents)?;
        let agent_key = AgentKey::for_agents(&agents)?;
        let shared = Shared {
            door: Door::new(config, agent_key.key()),
            limits: config.limits,
            store: parts.store,
            usage: parts.usage,
            metrics: Metrics::new(),
            clock: parts.clock,
        };
        let workers = config.workers.max(1);
        Ok(Self { shared: Arc::new(shared), backends, agents: Arc::new(agents), agent_key, tls, workers })
    }

    /// Serves until `shutdown` is cancelled and every open reply has ended or its grace is over.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
        self.start(&listener, shutdown)?.wait().await
    }

    /// Starts to serve on threads of its own and returns at once.
    pub fn start(self, listener: &TcpListener, shutdown: CancellationToken) -> Result<Running, ServeError> {
        let failed = |worker| move |source| ServeError::Worker { worker, source };
        let address = listener.local_addr().map_err(failed(0))?;
        listener.set_nonblocking(true).map_err(failed(0))?;
        let mut workers = Vec::with_capacity(self.workers);
        for number in 0..self.workers {
            let worker = Worker {
                shared: Arc::clone(&self.shared),
                router: Router::assemble(&self.backends, &self.tls, &self.agents)?,
                tasks: Tasks::new(shutdown.clone()),
            };
            let listener = listener.try_clone().map_err(failed(number))?;
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed(number))?;
            let (ended, end) = oneshot::channel();
            let thread = thread::Builder::new().name(format!("toolgate-{number}")).spawn(move || {
                let outcome = runtime.block_on(work(listener, worker));
                // Nobody listens any more when the handle was dropped, and then nobody wants to know.
                ended.send(outcome.map_err(failed(number))).ok();
            });
            // The channel tells when the thread ends, without blocking anybody.
            drop(thread.map_err(failed(number))?);
            workers.push(end);
        }
        self.agents.open(self.agent_key.gateway_access(address));
        Ok(Running { address, shutdown, workers, agents: self.agents })
    }
}

/// A gateway that serves. Dropping the handle does not stop it.
pub struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    /// Each tells when it has ended.
    workers: Vec<oneshot::Receiver<Result<(), ServeError>>>,
    agents: Arc<Agents>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more requests, lets open replies end within their grace, and returns when all is over.
    pub async fn stop(self) -> Result<(), ServeError> {
        self.shutdown.cancel();
        self.wait().await
    }

    /// Returns when all workers have ended, or as soon as one of them has failed.
    pub async fn wait(self) -> Result<(), ServeError> {
        let mut workers: FuturesUnordered<_> = self.workers.into_iter().collect();
        while let Some(end) = workers.next().await {
            end.map_err(|_| ServeError::WorkerLost)??;
        }
        self.agents.stop().await;
        Ok(())
    }
}

/// One worker's life.
async fn work(listener: TcpListener, worker: Worker) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let worker = Arc::new(worker);
    let tasks = worker.tasks.clone();
    let routes = http::routes(Arc::clone(&worker));
    loop {
        let accepted = tokio::select! {
            biased;
            () = tasks.stopping().cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection =
                    Connection { worker: Arc::clone(&worker), routes: routes.clone(), peer: Peer(peer) };
                tasks.spawn(connection.serve(stream));
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed; if this goes on, raise the limit of open files");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tasks.finish(worker.shared.limits.shutdown_grace).await;
    Ok(())
}

struct Connection {
    worker: Arc<Worker>,
    routes: axum::Router,
    peer: Peer,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a client was gone before it was served");
            return;
        }
        if let Some(rest) = wire::serve(stream, &self.worker, self.peer).await {
            // In a box of its own: most connections never come here, and each would carry the room for it.
            Box::pin(self.serve_anything(rest)).await;
        }
    }

    /// Serves whatever HTTP can say, of any version.
    async fn serve_anything(self, stream: Rewound) {
        let Self { worker, routes, peer } = self;
        let tasks = worker.tasks.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let answered = match worker.shared.door.open(&request, peer) {
                Ok(caller) => {
                    Either::Left(http::answer(Arc::clone(&worker), routes.clone(), caller, request))
                }
                Err(error) => Either::Right(ready(http::refuse(&request, &error))),
            };
            answered.map(Ok::<_, Infallible>)
        });
        let mut server = auto::Builder::new(tasks.clone());
        server.http1().timer(TokioTimer::new()).header_read_timeout(MAX_HEAD_WAIT);
        server.http2().timer(TokioTimer::new());
        let connection = server.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let outcome = tokio::select! {
            biased;
            outcome = connection.as_mut() => outcome,
            () = tasks.stopping().cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = outcome {
            // Clients leave when they like; the turn itself has logged what that meant for it.
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn any_workers_loss_is_noticed_while_the_others_go_on() {
        let (going_on, first) = oneshot::channel();
        let (lost, second) = oneshot::channel();
        let address = "127.0.0.1:1".parse().expect("an address");
        let agents = Arc::new(
            Agents::new(&[], Arc::new(toolgate_backend::NoRecords), |_| Arc::new(toolgate_backend::DenyAll))
                .expect("no agents"),
        );
        let workers = vec![first, second];
        let running = Running { address, shutdown: CancellationToken::new(), workers, agents };
        drop(lost);
        assert!(matches!(running.wait().await, Err(ServeError::WorkerLost)));
        drop(going_on);
    }
}
