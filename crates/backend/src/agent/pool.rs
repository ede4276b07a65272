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
use super::config::AgentConfig;
use super::decide::Decider;
use super::failure;
use super::job::Settled;
use super::launch::{Door, Launch};
use super::opening::Setup;
use super::records::Records;
use super::roster::{Claimed, Idleness, Match, ProcessId, Roster, Standing};
use super::running::Running;

/// How many requests may wait for a process.
const MAX_WAITING: usize = 256;

/// A process gets one turn, and perhaps the word to end, before it looks into its mailbox.
const MAILBOX: usize = 4;

/// The processes of one agent.
pub(super) struct Pool {
    config: AgentConfig,
    usual: Launch,
    decider: Arc<dyn Decider>,
    surroundings: Surroundings,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    running: Running,
    roster: Mutex<Roster>,
}

/// What all agents of a gateway share.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) records: Arc<dyn Records>,
    pub(super) runtime: Handle,
    pub(super) tasks: TaskTracker,
    pub(super) stopping: CancellationToken,
    pub(super) door: Arc<OnceLock<Door>>,
}

impl Pool {
    pub(super) fn new(config: AgentConfig, decider: Arc<dyn Decider>, surroundings: Surroundings) -> Self {
        let usual = Launch { builtins: config.builtins.clone(), ..Launch::default() };
        let places = Arc::new(Semaphore::new(config.pool.max.max(1)));
        Self {
            config,
            usual,
            decider,
            surroundings,
            places,
            waiting: AtomicUsize::new(0),
            running: Running::default(),
            roster: Mutex::default(),
        }
    }

    pub(super) fn config(&self) -> &AgentConfig {
        &self.config
    }

    pub(super) fn door(&self) -> Option<&Door> {
        self.surroundings.door.get()
    }

    pub(super) fn decider(&self) -> &Arc<dyn Decider> {
        &self.decider
    }

    pub(super) fn records(&self) -> &dyn Records {
        &*self.surroundings.records
    }

    /// The requests of this agent that run.
    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    /// Does something beside the processes, which the gateway's end waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.surroundings.tasks.spawn_on(task, &self.surroundings.runtime)
    }

    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.surroundings.stopping
    }

    /// The live process that knows most of this conversation and was set up the same way, taken for the request.
    pub(super) fn find(&self, lineage: &Lineage, launch: &Launch, setup: &Setup) -> Option<Match> {
        self.roster.lock().find(lineage, launch, setup)
    }

    /// A process that knows nothing yet: a warm one, a new one, or one that had to be waited for.
    pub(super) async fn fresh(self: &Arc<Self>, launch: &Launch, setup: Setup) -> Result<Claimed, TurnError> {
        if let Some(warm) = self.roster.lock().take_warm(launch, &setup) {
            return Ok(warm);
        }
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => self.wait_for_a_place().await?,
        };
        Ok(self.start(place, launch.clone(), Standing::Busy, Some(setup)))
    }

    /// Notes where a process stands after its turn.
    pub(super) fn settle(&self, id: ProcessId, settled: Settled, idleness: Idleness) {
        let mut roster = self.roster.lock();
        if roster.settle(id, settled, idleness) && self.is_waited_for() {
            roster.evict();
        }
    }

    /// Notes whether a process that waits for its client may make room for others.
    pub(super) fn note(&self, id: ProcessId, idleness: Idleness) {
        let mut roster = self.roster.lock();
        if roster.note(id, idleness) && idleness == Idleness::Idle && self.is_waited_for() {
            roster.evict();
        }
    }

    /// Takes a process out of use if nobody has claimed it.
    pub(super) fn retire(&self, id: ProcessId) -> bool {
        self.roster.lock().retire(id)
    }

    /// Forgets a process that has ended or is about to.
    pub(super) fn gone(&self, id: ProcessId) {
        self.roster.lock().gone(id);
    }

    /// A process has really ended.
    pub(super) fn place_is_free(self: &Arc<Self>) {
        self.warm_up();
    }

    /// An agent works, so others will: keeps as many warm as asked for.
    pub(super) fn refill(self: &Arc<Self>) {
        self.roster.lock().works();
        self.warm_up();
    }

    /// Starts warm processes while there is room for them.
    pub(super) fn warm_up(self: &Arc<Self>) {
        while !self.is_waited_for() && !self.stopping().is_cancelled() {
            let missing = self.roster.lock().missing(self.config.pool.warm, &self.usual);
            let Some((launch, setup)) = missing else { return };
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
            self.start(place, launch, Standing::Warm, setup);
        }
    }

    /// True while requests wait for a process to end.
    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    async fn wait_for_a_place(&self) -> Result<OwnedSemaphorePermit, TurnError> {
        let waiting = Waiting::enter(&self.waiting);
        if waiting.before >= MAX_WAITING {
            return Err(failure::too_many_wait());
        }
        self.roster.lock().evict();
        let place = Arc::clone(&self.places).acquire_owned();
        match tokio::time::timeout(self.config.pool.queue_wait, place).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(failure::stopping()),
            Err(_) => Err(failure::no_process_in_time()),
        }
    }

    fn start(
        self: &Arc<Self>,
        place: OwnedSemaphorePermit,
        launch: Launch,
        standing: Standing,
        setup: Option<Setup>,
    ) -> Claimed {
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        let ahead = match standing {
            Standing::Warm => setup.clone(),
            Standing::Busy | Standing::Settled(_) => None,
        };
        let (id, claimed) = self.roster.lock().add(commands, launch.clone(), standing, setup);
        let actor = Actor { id, pool: Arc::clone(self), launch, ahead, commands: mailbox, place };
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
