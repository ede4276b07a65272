//! The processes of one agent: a few warm ones, those at work, and those that wait for their client. At most `max`
//! live; the one idle for longest makes room for others, and loses nothing by it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_dialect::claude_stream_json::AgentTools;
use toolgate_dialect::claude_stream_json::write::Opening;
use toolgate_model::TurnError;
use toolgate_model::lineage::{Lineage, PrefixHash};

use super::actor::{Actor, Command};
use super::config::AgentConfig;
use super::decide::Decider;
use super::failure;
use super::job::{Job, Settled};
use super::launch::{Door, Launch};
use super::records::Records;
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
    state: Mutex<State>,
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

/// One process of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProcessId(u64);

#[derive(Default)]
struct State {
    started: u64,
    live: HashMap<ProcessId, Entry>,
    by_lineage: HashMap<PrefixHash, ProcessId>,
    /// The last warm process ended by itself: another would do the same.
    warming_fails: bool,
    /// The model that was asked for last: the next one is likely to ask for it too.
    model: Option<String>,
}

struct Entry {
    commands: mpsc::Sender<Command>,
    launch: Launch,
    setup: Option<Setup>,
    standing: Standing,
    idleness: Idleness,
    since: Instant,
}

/// Whether a process that waits for its client has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    Idle,
    /// A person is asked, or a tool of its own runs: both would be lost with it.
    AtWork,
}

/// What a process was told at its opening, and keeps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setup {
    pub(super) opening: Opening,
    pub(super) tools: AgentTools,
    pub(super) session: String,
}

enum Standing {
    Warm,
    Busy,
    Settled(Settled),
}

/// A process that belongs to one request.
pub(super) struct Claimed {
    commands: mpsc::Sender<Command>,
}

/// A live process that knows the beginning of a conversation.
pub(super) struct Match {
    pub(super) process: Claimed,
    /// How many of the request's messages it knows.
    pub(super) count: usize,
    /// The calls it waits for.
    pub(super) calls: Vec<String>,
    pub(super) session: String,
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
            state: Mutex::default(),
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
        let mut state = self.state.lock();
        for count in (1..lineage.len()).rev() {
            let hash = lineage.at(count);
            let Some(id) = state.by_lineage.get(&hash).copied() else { continue };
            let Some(entry) = state.live.get_mut(&id) else { continue };
            let same = entry.launch == *launch && entry.setup.as_ref().is_some_and(|made| made.fits(setup));
            let Standing::Settled(settled) = &entry.standing else { continue };
            if !same {
                continue;
            }
            let calls = settled.calls.clone();
            entry.standing = Standing::Busy;
            let process = Claimed { commands: entry.commands.clone() };
            let session = entry.setup.as_ref().map(|made| made.session.clone()).unwrap_or_default();
            state.by_lineage.remove(&hash);
            return Some(Match { process, count, calls, session });
        }
        None
    }

    /// A process that knows nothing yet: a warm one, a new one, or one that had to be waited for.
    pub(super) async fn fresh(self: &Arc<Self>, launch: &Launch, setup: Setup) -> Result<Claimed, TurnError> {
        self.state.lock().model.clone_from(&launch.model);
        if let Some(warm) = self.take_warm(launch, &setup) {
            return Ok(warm);
        }
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => self.wait_for_a_place().await?,
        };
        Ok(self.start(place, launch.clone(), Some(setup)))
    }

    /// Notes where a process stands after its turn.
    pub(super) fn settle(&self, id: ProcessId, settled: Settled, idleness: Idleness) {
        let mut state = self.state.lock();
        let Some(entry) = state.live.get_mut(&id) else { return };
        let after = settled.after;
        (entry.standing, entry.idleness) = (Standing::Settled(settled), idleness);
        entry.since = Instant::now();
        state.by_lineage.insert(after, id);
        if self.waiting.load(Ordering::Acquire) > 0 {
            state.evict();
        }
    }

    /// Notes whether a process that waits for its client may make room for others.
    pub(super) fn note(&self, id: ProcessId, idleness: Idleness) {
        let mut state = self.state.lock();
        let Some(entry) = state.live.get_mut(&id) else { return };
        entry.idleness = idleness;
        if idleness == Idleness::Idle && self.waiting.load(Ordering::Acquire) > 0 {
            state.evict();
        }
    }

    /// Takes a process out of use if nobody has claimed it.
    pub(super) fn retire(&self, id: ProcessId) -> bool {
        let mut state = self.state.lock();
        let is_busy = state.live.get(&id).is_some_and(|entry| matches!(entry.standing, Standing::Busy));
        if !is_busy {
            state.forget(id);
        }
        !is_busy
    }

    /// Forgets a process that has ended or is about to.
    pub(super) fn gone(&self, id: ProcessId) {
        let mut state = self.state.lock();
        let entry = state.forget(id);
        if entry.is_some_and(|entry| matches!(entry.standing, Standing::Warm)) {
            state.warming_fails = true;
        }
    }

    /// A process has really ended.
    pub(super) fn place_is_free(self: &Arc<Self>) {
        self.warm_up();
    }

    /// An agent works, so others will: keeps as many warm as asked for.
    pub(super) fn refill(self: &Arc<Self>) {
        self.state.lock().warming_fails = false;
        self.warm_up();
    }

    /// Starts warm processes while there is room for them.
    pub(super) fn warm_up(self: &Arc<Self>) {
        loop {
            let model = {
                let state = self.state.lock();
                let is_warm = |entry: &&Entry| matches!(entry.standing, Standing::Warm);
                let enough = state.live.values().filter(is_warm).count() >= self.config.pool.warm;
                let needed_elsewhere = self.waiting.load(Ordering::Acquire) > 0;
                if enough || needed_elsewhere || state.warming_fails || self.stopping().is_cancelled() {
                    return;
                }
                state.model.clone()
            };
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
            self.start(place, Launch { model, ..self.usual.clone() }, None);
        }
    }

    fn take_warm(&self, launch: &Launch, setup: &Setup) -> Option<Claimed> {
        let mut state = self.state.lock();
        let fits = |entry: &&mut Entry| matches!(entry.standing, Standing::Warm) && entry.launch == *launch;
        let entry = state.live.values_mut().filter(fits).min_by_key(|entry| entry.since)?;
        entry.standing = Standing::Busy;
        entry.setup = Some(setup.clone());
        Some(Claimed { commands: entry.commands.clone() })
    }

    async fn wait_for_a_place(&self) -> Result<OwnedSemaphorePermit, TurnError> {
        let waiting = Waiting::enter(&self.waiting);
        if waiting.before >= MAX_WAITING {
            return Err(failure::too_many_wait());
        }
        self.state.lock().evict();
        let place = Arc::clone(&self.places).acquire_owned();
        match tokio::time::timeout(self.config.pool.queue_wait, place).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(failure::stopping()),
            Err(_) => Err(failure::no_process_in_time()),
        }
    }

    fn start(self: &Arc<Self>, place: OwnedSemaphorePermit, launch: Launch, setup: Option<Setup>) -> Claimed {
        let (commands, mailbox) = mpsc::channel(MAILBOX);
        let standing = if setup.is_some() { Standing::Busy } else { Standing::Warm };
        let mut state = self.state.lock();
        state.started += 1;
        let id = ProcessId(state.started);
        let entry = Entry {
            commands: commands.clone(),
            launch: launch.clone(),
            setup,
            standing,
            idleness: Idleness::Idle,
            since: Instant::now(),
        };
        state.live.insert(id, entry);
        drop(state);
        let actor = Actor { id, pool: Arc::clone(self), launch, commands: mailbox, place };
        drop(self.spawn(actor.run()));
        Claimed { commands }
    }
}

impl Claimed {
    /// Gives the process its turn. A process that is gone fails the turn, which then tells so itself.
    pub(super) fn begin(&self, job: Job) {
        let refused = match self.commands.try_send(Command::Begin(Box::new(job))) {
            Ok(()) => return,
            Err(mpsc::error::TrySendError::Full(command) | mpsc::error::TrySendError::Closed(command)) => {
                command
            }
        };
        if let Command::Begin(job) = refused {
            job.outbox.fail(failure::ended(None, ""));
        }
    }

    /// Ends a process that the conversation has gone past.
    pub(super) fn end(self) {
        tell_to_end(&self.commands);
    }
}

impl Setup {
    fn fits(&self, asked: &Self) -> bool {
        let Self { opening, tools, session: _ } = self;
        (opening, tools) == (&asked.opening, &asked.tools)
    }
}

impl State {
    /// Ends the process that has been idle for longest. A warm one goes first: it knows nothing.
    fn evict(&mut self) {
        let idle = self.live.iter().filter_map(|(id, entry)| match (&entry.standing, entry.idleness) {
            (Standing::Warm, _) => Some(((0, entry.since), *id)),
            (Standing::Settled(_), Idleness::Idle) => Some(((1, entry.since), *id)),
            (Standing::Settled(_), Idleness::AtWork) | (Standing::Busy, _) => None,
        });
        let Some((_, id)) = idle.min() else { return };
        if let Some(entry) = self.forget(id) {
            tell_to_end(&entry.commands);
        }
    }

    fn forget(&mut self, id: ProcessId) -> Option<Entry> {
        let entry = self.live.remove(&id)?;
        if let Standing::Settled(settled) = &entry.standing
            && self.by_lineage.get(&settled.after) == Some(&id)
        {
            self.by_lineage.remove(&settled.after);
        }
        Some(entry)
    }
}

/// The mailbox of a process that has one turn at most never fills; one that is closed belongs to a process that ends.
fn tell_to_end(commands: &mpsc::Sender<Command>) {
    if commands.try_send(Command::End).is_err() {
        tracing::debug!("an agent process was ending already");
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
