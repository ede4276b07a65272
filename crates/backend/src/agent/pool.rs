//! The processes of one agent: a few warm ones, those at work, and those that wait for their client. At most `max`
//! live; the one idle for longest makes room for others, and loses nothing by it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_model::TurnError;
use toolgate_model::lineage::Lineage;

use super::actor::Actor;
use super::approval::Decider;
use super::config::AgentConfig;
use super::errors;
use super::launch::{GatewayAccess, Launch};
use super::opening::Setup;
use super::process_table::{Activity, ClaimedProcess, LiveMatch, ProcessId, ProcessState, ProcessTable};
use super::records::RecordStore;
use super::run_lock::RunLocks;
use super::turn_job::Settled;

/// How many requests may wait for a process.
const MAX_WAITING: usize = 256;

/// A process gets one turn, and perhaps the word to end, before it looks into its mailbox.
const MAILBOX_CAPACITY: usize = 4;

/// The processes of one agent.
pub(super) struct Pool {
    config: AgentConfig,
    default_launch: Launch,
    decider: Arc<dyn Decider>,
    shared: SharedContext,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    run_locks: RunLocks,
    processes: Mutex<ProcessTable>,
}

/// What all agents of a gateway share.
#[derive(Clone)]
pub(super) struct SharedContext {
    pub(super) records: Arc<dyn RecordStore>,
    pub(super) runtime: Handle,
    pub(super) tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
    pub(super) gateway_access: Arc<OnceLock<GatewayAccess>>,
}

impl Pool {
    pub(super) fn new(config: AgentConfig, decider: Arc<dyn Decider>, shared: SharedContext) -> Self {
        let default_launch = Launch { builtins: config.builtins.clone(), ..Launch::default() };
        let slots = Arc::new(Semaphore::new(config.pool.max.max(1)));
        Self {
            config,
            default_launch,
            decider,
            shared,
            slots,
            waiting: AtomicUsize::new(0),
            run_locks: RunLocks::default(),
            processes: Mutex::default(),
        }
    }

    pub(super) fn config(&self) -> &AgentConfig {
        &self.config
    }

    pub(super) fn gateway_access(&self) -> Option<&GatewayAccess> {
        self.shared.gateway_access.get()
    }

    pub(super) fn decider(&self) -> &Arc<dyn Decider> {
        &self.decider
    }

    pub(super) fn records(&self) -> &dyn RecordStore {
        &*self.shared.records
    }

    /// The requests of this agent that run.
    pub(super) fn run_locks(&self) -> &RunLocks {
        &self.run_locks
    }

    /// Does something beside the processes, which the gateway's end waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.shared.tasks.spawn_on(task, &self.shared.runtime)
    }

    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// The live process that knows most of this conversation and was set up the same way, taken for the request.
    pub(super) fn find(&self, lineage: &Lineage, launch: &Launch, setup: &Setup) -> Option<LiveMatch> {
        self.processes.lock().find(lineage, launch, setup)
    }

    /// A process that knows nothing yet: a warm one, a new one, or one that had to be waited for.
    pub(super) async fn fresh(
        self: &Arc<Self>,
        launch: &Launch,
        setup: Setup,
    ) -> Result<ClaimedProcess, TurnError> {
        if let Some(warm) = self.processes.lock().take_warm(launch, &setup) {
            return Ok(warm);
        }
        let slot = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) => self.wait_for_slot().await?,
        };
        Ok(self.start(slot, launch.clone(), ProcessState::Busy, Some(setup)))
    }

    /// RecordInputs where a process stands after its turn.
    pub(super) fn settle(&self, id: ProcessId, settled: Settled, activity: Activity) {
        let mut processes = self.processes.lock();
        if processes.settle(id, settled, activity) && self.has_waiters() {
            processes.evict();
        }
    }

    /// RecordInputs whether a process that waits for its client may make room for others.
    pub(super) fn set_activity(&self, id: ProcessId, activity: Activity) {
        let mut processes = self.processes.lock();
        if processes.set_activity(id, activity) && activity == Activity::Idle && self.has_waiters() {
            processes.evict();
        }
    }

    /// Takes a process out of use if nobody has claimed it.
    pub(super) fn retire(&self, id: ProcessId) -> bool {
        self.processes.lock().retire(id)
    }

    /// Forgets a process that has ended or is about to.
    pub(super) fn remove(&self, id: ProcessId) {
        self.processes.lock().remove(id);
    }

    /// A process has really ended.
    pub(super) fn process_exited(self: &Arc<Self>) {
        self.warm_up();
    }

    /// An agent works, so others will: keeps as many warm as asked for.
    pub(super) fn refill(self: &Arc<Self>) {
        self.processes.lock().mark_healthy();
        self.warm_up();
    }

    /// Starts warm processes while there is room for them.
    pub(super) fn warm_up(self: &Arc<Self>) {
        while !self.has_waiters() && !self.stopping().is_cancelled() {
            let next = self.processes.lock().next_warm(self.config.pool.warm, &self.default_launch);
            let Some((launch, setup)) = next else { return };
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { return };
            self.start(slot, launch, ProcessState::Warm, setup);
        }
    }

    /// True while requests wait for a process to end.
    fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    async fn wait_for_slot(&self) -> Result<OwnedSemaphorePermit, TurnError> {
        let waiting = Waiting::enter(&self.waiting);
        if waiting.before >= MAX_WAITING {
            return Err(errors::queue_full());
        }
        self.processes.lock().evict();
        let slot = Arc::clone(&self.slots).acquire_owned();
        match tokio::time::timeout(self.config.pool.queue_wait, slot).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) => Err(errors::stopping()),
            Err(_) => Err(errors::queue_timeout()),
        }
    }

    fn start(
        self: &Arc<Self>,
        slot: OwnedSemaphorePermit,
        launch: Launch,
        state: ProcessState,
        setup: Option<Setup>,
    ) -> ClaimedProcess {
        let (commands, mailbox) = mpsc::channel(MAILBOX_CAPACITY);
        let preopen = match state {
            ProcessState::Warm => setup.clone(),
            ProcessState::Busy | ProcessState::Settled(_) => None,
        };
        let (id, claimed) = self.processes.lock().add(commands, launch.clone(), state, setup);
        let actor = Actor { id, pool: Arc::clone(self), launch, preopen, commands: mailbox, slot };
        drop(self.spawn(actor.run()));
        claimed
    }
}

/// Counts a request that waits, for as long as it does.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        let before = count.fetch_add(1, Ordering::AcqRel);
        Self { count, before }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}
