//! Listening, serving on several threads, and ending well.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolgate_backend::config::{AgentConfig, BackendConfig};
use toolgate_backend::{Agents, AssembleError, Decider, Router, StatsRegistry, Tls};
use toolgate_state::{Bus, Store, UsageLog};

use crate::accept::{ACCEPT_QUEUE, ConnectionCounts, accept, work};
use crate::agent_key::{AgentKeys, ListeningGateway};
use crate::agent_records::StoredRecords;
use crate::approval::{Approvals, Inbox, InboxWorker};
use crate::clock::Clock;
use crate::config::GatewayConfig;
use crate::console::ConsoleKey;
use crate::http::{Door, Entrance};
use crate::observed::BusObserver;
use crate::service::{Shared, Worker};
use crate::session_log::{SessionLog, SessionLogWorker};
use crate::tasks::Tasks;
use crate::telemetry::{LiveNumbers, Metrics, RoutineLosses};

/// A gateway that is ready to serve.
pub struct Gateway {
    shared: Arc<Shared>,
    inbox_worker: InboxWorker,
    session_log_worker: SessionLogWorker,
    backends: BackendConfig,
    agents: Arc<Agents>,
    agent_keys: Arc<AgentKeys>,
    tls: Tls,
    /// Counters that all workers share.
    upstream_stats: StatsRegistry,
    workers: usize,
}

/// What a gateway uses and does not own.
pub struct Parts {
    /// Where responses are kept.
    pub store: Arc<dyn Store>,
    /// Receives usage records. The caller runs its worker.
    pub usage: UsageLog,
    /// Receives what people may watch.
    pub bus: Arc<Bus>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Log lines dropped because the log could not keep up.
    pub dropped_log_lines: Arc<AtomicU64>,
    /// Checks the tokens of the console.
    pub console: ConsoleKey,
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
    /// A worker thread ended by a panic.
    #[error("a worker ended unexpectedly; please report what the log says about it")]
    WorkerLost,
}

impl Gateway {
    /// Prepares to serve. Every back end is built once here, so that mistakes show before the first request.
    pub fn new(config: &GatewayConfig, backends: BackendConfig, parts: Parts) -> Result<Self, ServeError> {
        Self::assemble(config, backends, parts, |inbox, agent| {
            Arc::new(Approvals::new(inbox, &agent.working_directory()))
        })
    }

    /// The same with another judge of what each agent may do than the operator's rules.
    pub fn decided_by(
        config: &GatewayConfig,
        backends: BackendConfig,
        parts: Parts,
        decider: impl Fn(&AgentConfig) -> Arc<dyn Decider>,
    ) -> Result<Self, ServeError> {
        Self::assemble(config, backends, parts, |_, agent| decider(agent))
    }

    fn assemble(
        config: &GatewayConfig,
        backends: BackendConfig,
        parts: Parts,
        decider: impl Fn(&Arc<Inbox>, &AgentConfig) -> Arc<dyn Decider>,
    ) -> Result<Self, ServeError> {
        let tls = Tls::load()?;
        let (store, bus, clock) =
            (Arc::clone(&parts.store), Arc::clone(&parts.bus), Arc::clone(&parts.clock));
        let (inbox, inbox_worker) = Inbox::new(config.approvals.clone(), store, bus, clock, &tls);
        let decider = |agent: &AgentConfig| decider(&inbox, agent);
        let records =
            Arc::new(StoredRecords { store: Arc::clone(&parts.store), clock: Arc::clone(&parts.clock) });
        let observer = Arc::new(BusObserver { bus: Arc::clone(&parts.bus), clock: Arc::clone(&parts.clock) });
        let agents = Agents::new(&backends.agents, records, observer, decider).map_err(ServeError::Agents)?;
        let upstream_stats = StatsRegistry::new(&backends);
        Router::assemble(&backends, &tls, &agents, &upstream_stats)?;
        let agent_keys = Arc::new(AgentKeys::new(&backends.agents));
        let workers = config.workers.max(1);
        let connections = Arc::new(ConnectionCounts::new(workers, config.limits.connections));
        let live = LiveNumbers {
            connections: Arc::clone(&connections),
            usage: parts.usage.clone(),
            bus: Arc::clone(&parts.bus),
            dropped_log_lines: parts.dropped_log_lines,
            upstreams: upstream_stats.clone(),
        };
        let (session_log, session_log_worker) =
            SessionLog::new(config.record.sessions, Arc::clone(&parts.store));
        let shared = Shared {
            door: Door::new(config, Arc::clone(&agent_keys)),
            limits: config.limits,
            store: parts.store,
            usage: parts.usage,
            bus: parts.bus,
            session_log,
            metrics: Metrics::new(live),
            routine_losses: RoutineLosses::default(),
            clock: parts.clock,
            connections,
            inbox,
            console: parts.console,
        };
        Ok(Self {
            shared: Arc::new(shared),
            inbox_worker,
            session_log_worker,
            backends,
            agents: Arc::new(agents),
            agent_keys,
            tls,
            upstream_stats,
            workers,
        })
    }

    /// Serves until `shutdown` is cancelled and every open reply has ended or its grace is over.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
        self.start(&listener, shutdown)?.wait().await
    }

    /// Starts serving on its own threads and returns at once.
    pub fn start(self, listener: &TcpListener, shutdown: CancellationToken) -> Result<Running, ServeError> {
        let failed = |worker| move |source| ServeError::Worker { worker, source };
        let address = listener.local_addr().map_err(failed(0))?;
        listener.set_nonblocking(true).map_err(failed(0))?;
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (mut workers, mut queues) = (Vec::new(), Vec::new());
        for number in 0..self.workers {
            let worker = Worker {
                shared: Arc::clone(&self.shared),
                router: Router::assemble(&self.backends, &self.tls, &self.agents, &self.upstream_stats)?,
                tasks: Tasks::new(shutdown.clone()),
            };
            let (queue, accepted) = mpsc::channel(ACCEPT_QUEUE);
            queues.push(queue);
            let runtime = runtime().map_err(failed(number))?;
            workers.push(
                start_thread(format!("toolgate-{number}"), move || {
                    runtime.block_on(work(accepted, worker));
                    Ok(())
                })
                .map_err(failed(number))?,
            );
        }
        let for_agents = if self.backends.agents.is_empty() {
            None
        } else {
            let listener = agents_listener().map_err(failed(0))?;
            let address = listener.local_addr().map_err(failed(0))?;
            // Before the first request is accepted, which may need an agent.
            self.agents.open(Arc::new(ListeningGateway::new(address, self.agent_keys)));
            Some(listener)
        };
        let (accepting, listener) = (runtime().map_err(failed(0))?, listener.try_clone().map_err(failed(0))?);
        let (shared, stopping) = (Arc::clone(&self.shared), shutdown.clone());
        let acceptor = start_thread("toolgate-accept".to_owned(), move || {
            let accept = |listener, entrance| accept(listener, entrance, &queues, &shared, &stopping);
            let clients = accept(listener, Entrance::Clients);
            let agents = async {
                match for_agents {
                    Some(listener) => accept(listener, Entrance::Agents).await,
                    None => Ok(()),
                }
            };
            let outcome = accepting.block_on(async { tokio::try_join!(clients, agents) });
            outcome.map(|((), ())| ()).map_err(failed(0))
        });
        workers.push(acceptor.map_err(failed(0))?);
        let (runtime, inbox_stop) = (runtime().map_err(failed(0))?, CancellationToken::new());
        let (inbox_worker, session_log, stop) =
            (self.inbox_worker, self.session_log_worker, inbox_stop.clone());
        let inbox = start_thread("toolgate-inbox".to_owned(), move || {
            runtime.block_on(async { join(inbox_worker.run(stop.clone()), session_log.run(stop)).await });
            Ok(())
        });
        let inbox = inbox.map_err(failed(0))?;
        Ok(Running { address, shutdown, workers, agents: self.agents, inbox, inbox_stop })
    }
}

/// The listener for the gateway's own agents, on a port that the system chooses.
fn agents_listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Starts a thread whose outcome can be awaited.
fn start_thread(
    name: String,
    body: impl FnOnce() -> Result<(), ServeError> + Send + 'static,
) -> io::Result<oneshot::Receiver<Result<(), ServeError>>> {
    let (ended, end) = oneshot::channel();
    // Nobody receives the outcome once the handle of the gateway was dropped.
    let thread = thread::Builder::new().name(name).spawn(move || drop(ended.send(body())))?;
    drop(thread);
    Ok(end)
}

/// A gateway that serves. Dropping the handle does not stop it.
pub struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    /// Each receives the outcome of one thread.
    workers: Vec<oneshot::Receiver<Result<(), ServeError>>>,
    agents: Arc<Agents>,
    /// Receives the outcome of the thread of the inbox and the session log.
    inbox: oneshot::Receiver<Result<(), ServeError>>,
    inbox_stop: CancellationToken,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more requests, lets open replies end within their grace, and returns when all have ended.
    pub async fn stop(self) -> Result<(), ServeError> {
        self.shutdown.cancel();
        self.wait().await
    }

    /// Returns when all workers have ended, or as soon as one of them has failed.
    pub async fn wait(self) -> Result<(), ServeError> {
        let mut workers: FuturesUnordered<_> = self.workers.into_iter().collect();
        let mut inbox = self.inbox;
        loop {
            tokio::select! {
                end = workers.next() => match end {
                    Some(end) => end.map_err(|_| ServeError::WorkerLost)??,
                    None => break,
                },
                _ = &mut inbox => return Err(ServeError::WorkerLost),
            }
        }
        self.agents.stop().await;
        // Only now has every agent withdrawn its questions.
        self.inbox_stop.cancel();
        inbox.await.map_err(|_| ServeError::WorkerLost)?
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
            Agents::new(
                &[],
                Arc::new(toolgate_backend::NoRecords),
                Arc::new(toolgate_backend::NoObserver),
                |_| Arc::new(toolgate_backend::DenyAll),
            )
            .expect("no agents"),
        );
        let workers = vec![first, second];
        let (inbox_thread, inbox) = oneshot::channel();
        let (shutdown, inbox_stop) = (CancellationToken::new(), CancellationToken::new());
        let running = Running { address, shutdown, workers, agents, inbox, inbox_stop };
        drop(lost);
        assert!(matches!(running.wait().await, Err(ServeError::WorkerLost)));
        drop((going_on, inbox_thread));
    }
}
