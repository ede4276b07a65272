//! Claude Code as a back end: the real program runs as a child process, driven over stdin and stdout.
//!
//! ```text
//!  Turn ─TurnPlan─▶ launch options, opening, tools, history
//!    │
//!  ProcessPool ── a live process that holds the start of this conversation ◀─ only the new messages or tool results
//!    └──── otherwise a warm process ◀─────────────────────────────── the whole history, line by line
//!                    │
//!                  Actor (one per process) ─ Core ─▶ events ─ ReplySender ─▶ client
//! ```
//!
//! The client's history is authoritative and a live process is a cache: any process may be ended at any time, and
//! another one serves the next request (X2).

mod active_turn;
mod actor;
mod approval;
pub(crate) mod config;
mod core;
mod cost;
mod errors;
mod folders;
mod gateway_access;
mod handoff;
mod joined_reply;
mod launch;
mod observer;
mod opening;
mod own_host;
mod partial_results;
mod pending_approvals;
mod plan;
mod pool;
mod preopen;
mod process;
mod process_queue;
mod process_table;
mod record_queue;
mod records;
mod reply_channel;
mod reply_delivery;
mod retry;
mod run_lock;
pub(crate) mod sandbox;
mod start_turn;
mod supervisor;
mod system_prompt;
mod transcript;
mod turn_job;
mod turn_steps;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_model::TurnError;
use toolgate_model::observed::BackendKind;

use self::config::{AgentConfig, AgentName};
use self::pool::{ProcessPool, SharedContext};
use crate::turn::{Answer, Backend, Turn};

pub use self::approval::{Decider, DenyAll};
pub use self::gateway_access::{GatewayAccess, ProcessKey};
pub use self::observer::{NoObserver, Observer};
pub use self::own_host::bypasses_the_gateway;
pub use self::records::{AgentRecord, AgentRecordStore, NoRecords, ReplyDelivery, TranscriptPart};
pub use self::sandbox::SandboxSupport;
pub use self::supervisor::{EXEC_COMMAND, SUPERVISE_COMMAND, SupervisedProgram, exec_supervised, supervise};

/// All agents of a gateway. They run on one thread of their own, because any gateway thread may continue a session.
pub struct Agents {
    pools: HashMap<AgentName, Arc<ProcessPool>>,
    gateway_access: Arc<OnceLock<Arc<dyn GatewayAccess>>>,
    stopping: CancellationToken,
    /// Resolves when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Agents {
    /// Creates the agents' folders and their thread. No process is started before [`Agents::open`].
    /// `decider` returns the [`Decider`] of each agent.
    pub fn new(
        configs: &[AgentConfig],
        records: Arc<dyn AgentRecordStore>,
        observer: Arc<dyn Observer>,
        decider: impl Fn(&AgentConfig) -> Arc<dyn Decider>,
    ) -> io::Result<Self> {
        let gateway_access = Arc::new(OnceLock::new());
        let stopping = CancellationToken::new();
        let mut agents = Self {
            pools: HashMap::new(),
            gateway_access: Arc::clone(&gateway_access),
            stopping: stopping.clone(),
            ended: Mutex::new(None),
        };
        if configs.is_empty() {
            return Ok(agents);
        }
        let tasks = TaskTracker::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let shared = SharedContext {
            records,
            observer,
            runtime: handle,
            tasks: tasks.clone(),
            stopping: stopping.clone(),
            gateway_access,
        };
        let support = SandboxSupport::of_this_machine();
        for config in configs {
            if config.workdir.is_none() {
                std::fs::create_dir_all(config.working_directory())?;
            }
            let folder = config.folder.clone();
            drop(runtime.spawn_blocking(move || folders::delete_leftovers(&folder)));
            let sandbox = config.sandbox.enforceable(&config.name, support, config.supervision)?;
            let pool =
                ProcessPool::new(AgentConfig { sandbox, ..config.clone() }, decider(config), shared.clone());
            agents.pools.insert(config.name.clone(), Arc::new(pool));
        }
        let (ended, end) = oneshot::channel();
        let thread = thread::Builder::new().name("toolgate-agents".to_owned()).spawn(move || {
            runtime.block_on(async {
                stopping.cancelled().await;
                tasks.close();
                tasks.wait().await;
            });
            // The receiver is gone if the gateway was dropped without `stop`.
            ended.send(()).ok();
        });
        drop(thread?);
        *agents.ended.get_mut() = Some(end);
        Ok(agents)
    }

    /// Gives the agents access to their gateway, and starts the warm processes.
    pub fn open(&self, gateway_access: Arc<dyn GatewayAccess>) {
        if self.gateway_access.set(gateway_access).is_err() {
            tracing::debug!("Agents::open was called twice; the second call has no effect");
        }
        self.pools.values().for_each(ProcessPool::warm_up);
    }

    /// Ends every process, and returns when all of them are gone.
    pub async fn stop(&self) {
        self.stopping.cancel();
        let end = self.ended.lock().take();
        if let Some(end) = end
            && end.await.is_err()
        {
            tracing::error!("the agents' thread panicked; please report the panic message from the log");
        }
    }

    pub(crate) fn find(&self, name: &AgentName) -> Option<Arc<dyn Backend>> {
        let pool = self.pools.get(name)?;
        Some(Arc::new(Agent { name: Arc::from(name.as_str()), pool: Arc::clone(pool) }))
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

/// One agent as a back end.
struct Agent {
    name: Arc<str>,
    pool: Arc<ProcessPool>,
}

impl Backend for Agent {
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>> {
        let (pool, name) = (Arc::clone(&self.pool), Arc::clone(&self.name));
        Box::pin(async move { start_turn::start(pool, name, turn).await })
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Agent
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }
}
