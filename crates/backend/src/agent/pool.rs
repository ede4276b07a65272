//! The processes of one agent: warm, busy, or waiting for their client. At most `max` are alive; an idle one is evicted
//! to make room, and nothing is lost with it.

use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_model::TurnError;
use toolgate_model::lineage::Lineage;

use super::actor::Actor;
use super::approval::Decider;
use super::config::AgentConfig;
use super::errors;
use super::gateway_access::{GatewayAccess, ProcessAccess};
use super::launch::Launch;
use super::observer::Observer;
use super::opening::Setup;
use super::process_queue::Ticket;
use super::process_table::{
    ClaimedProcess, LiveMatch, ProcessActivity, ProcessId, ProcessState, ProcessTable,
};
use super::records::AgentRecordStore;
use super::run_lock::RunLocks;
use super::turn_job::Settled;

/// A process gets at most one turn and one end command before it reads its mailbox.
const MAILBOX_CAPACITY: usize = 4;

/// The processes of one agent.
pub(super) struct ProcessPool {
    config: AgentConfig,
    default_launch: Launch,
    decider: Arc<dyn Decider>,
    shared: SharedContext,
    slots: Arc<Semaphore>,
    /// Wakes waiting requests: a slot is free, or another request waits no longer.
    slot_freed: Notify,
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
    pub(super) gateway_access: Arc<OnceLock<Arc<dyn GatewayAccess>>>,
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
            slot_freed: Notify::new(),
            run_locks: RunLocks::default(),
            processes: Mutex::default(),
        }
    }

    pub(super) fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Access to the gateway for one process.
    pub(super) fn process_access(&self) -> io::Result<ProcessAccess> {
        let gateway = self.shared.gateway_access.get();
        let gateway = gateway.ok_or_else(|| io::Error::other("the gateway is still starting"))?;
        ProcessAccess::new(&**gateway, &self.config.name)
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
        let slot = match self.without_waiting(launch, &setup) {
            Some(Found::Warm(process)) => return Ok(process),
            Some(Found::Slot(slot)) => slot,
            None => self.wait_for_slot(&setup.caller).await?,
        };
        Ok(self.start(slot, launch.clone(), ProcessState::Busy, Some(setup)))
    }

    /// A warm process or a free slot, unless other requests are waiting.
    fn without_waiting(&self, launch: &Launch, setup: &Setup) -> Option<Found> {
        let mut processes = self.processes.lock();
        if !processes.queue.is_empty() {
            return None;
        }
        let warm = processes.take_warm(launch, setup).map(Found::Warm);
        warm.or_else(|| Arc::clone(&self.slots).try_acquire_owned().ok().map(Found::Slot))
    }

    /// Records the state of a process after its turn.
    pub(super) fn settle(&self, id: ProcessId, settled: Settled, activity: ProcessActivity) {
        let mut processes = self.processes.lock();
        if processes.settle(id, settled, activity) && !processes.queue.is_empty() {
            processes.evict();
        }
    }

    /// Records whether a process that waits for its client may be evicted.
    pub(super) fn set_activity(&self, id: ProcessId, activity: ProcessActivity) {
        let mut processes = self.processes.lock();
        let is_idle = processes.set_activity(id, activity) && activity == ProcessActivity::Idle;
        if is_idle && !processes.queue.is_empty() {
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
        self.slot_freed.notify_waiters();
        self.warm_up();
    }

    /// A turn has succeeded, so the program works: restores the number of warm processes.
    pub(super) fn refill(self: &Arc<Self>) {
        self.processes.lock().mark_healthy();
        self.warm_up();
    }

    /// Starts warm processes while there are free slots.
    pub(super) fn warm_up(self: &Arc<Self>) {
        while !self.stopping().is_cancelled() {
            let Some((slot, launch, setup)) = self.next_warm() else { return };
            self.start(slot, launch, ProcessState::Warm, setup);
        }
    }

    /// A slot and how to launch the next warm process, unless requests are waiting.
    fn next_warm(&self) -> Option<(OwnedSemaphorePermit, Launch, Option<Setup>)> {
        let mut processes = self.processes.lock();
        if !processes.queue.is_empty() {
            return None;
        }
        let (launch, setup) = processes.next_warm(self.config.pool.warm, &self.default_launch)?;
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        Some((slot, launch, setup))
    }

    async fn wait_for_slot(&self, caller: &Arc<str>) -> Result<OwnedSemaphorePermit, TurnError> {
        let place = QueuePlace { pool: self, ticket: self.processes.lock().queue.enter(caller)? };
        self.processes.lock().evict();
        let slot = tokio::time::timeout(self.config.pool.queue_wait, place.slot()).await;
        slot.map_err(|_| errors::queue_timeout())
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

/// What a request gets without waiting.
enum Found {
    Warm(ClaimedProcess),
    Slot(OwnedSemaphorePermit),
}

/// A request in the queue, until it is dropped.
struct QueuePlace<'a> {
    pool: &'a ProcessPool,
    ticket: Ticket,
}

impl QueuePlace<'_> {
    /// A slot, as soon as one is free and it is this request's turn.
    async fn slot(&self) -> OwnedSemaphorePermit {
        let pool = self.pool;
        loop {
            let mut freed = pin!(pool.slot_freed.notified());
            // From here on no notification is missed.
            freed.as_mut().enable();
            let is_next = pool.processes.lock().is_next(self.ticket);
            if is_next && let Ok(slot) = Arc::clone(&pool.slots).try_acquire_owned() {
                return slot;
            }
            freed.await;
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.pool.processes.lock().queue.leave(self.ticket);
        self.pool.slot_freed.notify_waiters();
    }
}
