//! The processes of one agent: warm, busy, or waiting for their client. At most `max` are alive; the one idle longest
//! is evicted to make room, and nothing is lost with it.

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
use super::observer::Observer;
use super::opening::Setup;
use super::process_table::{
    ClaimedProcess, LiveMatch, ProcessActivity, ProcessId, ProcessState, ProcessTable,
};
use super::records::AgentRecordStore;
use super::run_lock::RunLocks;
use super::turn_job::Settled;

/// The maximum number of requests that wait for a process.
const MAX_WAITING: usize = 256;

/// A process gets at most one turn and one end command before it reads its mailbox.
const MAILBOX_CAPACITY: usize = 4;

/// The processes of one agent.
pub(super) struct ProcessPool {
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
    pub(super) records: Arc<dyn AgentRecordStore>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) runtime: Handle,
    pub(super) tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
    pub(super) gateway_access: Arc<OnceLock<GatewayAccess>>,
}

impl ProcessPool {
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

    pub(super) fn records(&self) -> &dyn AgentRecordStore {
        &*self.shared.records
    }

    pub(super) fn observer(&self) -> &Arc<dyn Observer> {
        &self.shared.observer
    }

    /// The locks that keep two runs of the same request apart.
    pub(super) fn run_locks(&self) -> &RunLocks {
        &self.run_locks
    }

    /// Spawns a task that shutdown waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.shared.tasks.spawn_on(task, &self.shared.runtime)
    }

    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// Claims the live process that holds most of this conversation and has the same setup.
    pub(super) fn find(&self, lineage: &Lineage, launch: &Launch, setup: &Setup) -> Option<LiveMatch> {
        self.processes.lock().find(lineage, launch, setup)
    }

    /// Claims a process without a conversation: a warm one, or a new one, if necessary after waiting for a slot.
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

    /// Records the state of a process after its turn.
    pub(super) fn settle(&self, id: ProcessId, settled: Settled, activity: ProcessActivity) {
        let mut processes = self.processes.lock();
        if processes.settle(id, settled, activity) && self.has_waiters() {
            processes.evict();
        }
    }

    /// Records whether a process that waits for its client may be evicted.
    pub(super) fn set_activity(&self, id: ProcessId, activity: ProcessActivity) {
        let mut processes = self.processes.lock();
        if processes.set_activity(id, activity) && activity == ProcessActivity::Idle && self.has_waiters() {
            processes.evict();
        }
    }

    /// Removes a process unless a request has claimed it.
    pub(super) fn retire(&self, id: ProcessId) -> bool {
        self.processes.lock().retire(id)
    }

    /// Removes a process that has ended or is about to.
    pub(super) fn remove(&self, id: ProcessId) {
        self.processes.lock().remove(id);
    }

    /// A process has exited and its slot is free.
    pub(super) fn process_exited(self: &Arc<Self>) {
        self.warm_up();
    }

    /// A turn has succeeded, so the program works: restores the number of warm processes.
    pub(super) fn refill(self: &Arc<Self>) {
        self.processes.lock().mark_healthy();
        self.warm_up();
    }

    /// Starts warm processes while there are free slots.
    pub(super) fn warm_up(self: &Arc<Self>) {
        while !self.has_waiters() && !self.stopping().is_cancelled() {
            let next = self.processes.lock().next_warm(self.config.pool.warm, &self.default_launch);
            let Some((launch, setup)) = next else { return };
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { return };
            self.start(slot, launch, ProcessState::Warm, setup);
        }
    }

    /// True while requests wait for a slot.
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

/// Counts a waiting request until it is dropped.
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
