//! The live processes of an agent, the state of each, and the rules for claiming one.

use std::cmp::Reverse;
use std::collections::HashMap;

use tokio::sync::mpsc;
use tokio::time::Instant;
use toolgate_model::lineage::{Lineage, PrefixHash};

use super::actor::ActorCommand;
use super::errors;
use super::launch::Launch;
use super::opening::Setup;
use super::preopen::PreopenGuess;
use super::process_queue::{ProcessQueue, Ticket};
use super::turn_job::{Settled, TurnJob};

/// The processes of one agent.
#[derive(Default)]
pub(super) struct ProcessTable {
    started: u64,
    live: HashMap<ProcessId, ProcessEntry>,
    by_lineage: HashMap<PrefixHash, ProcessId>,
    /// The last warm process exited by itself, so another would too.
    warm_start_failed: bool,
    /// The model of the last request; the next request probably asks for the same one.
    model: Option<String>,
    preopen: PreopenGuess,
    pub(super) queue: ProcessQueue,
}

/// Identifies a process of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProcessId(u64);

struct ProcessEntry {
    commands: mpsc::Sender<ActorCommand>,
    launch: Launch,
    /// How it was opened; `None` for a warm process that is not opened yet.
    setup: Option<Setup>,
    state: ProcessState,
    activity: ProcessActivity,
    since: Instant,
}

/// The state of a process.
pub(super) enum ProcessState {
    /// No request has claimed it yet.
    Warm,
    Busy,
    Settled(Settled),
}

/// What a process does while it waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessActivity {
    Idle,
    /// A person is deciding or a built-in tool is running; ending the process would lose that.
    Working,
}

/// A process that belongs to one request.
pub(super) struct ClaimedProcess {
    commands: mpsc::Sender<ActorCommand>,
}

/// A claimed live process that holds the start of a conversation.
pub(super) struct LiveMatch {
    pub(super) process: ClaimedProcess,
    /// How many of the request's messages it has.
    pub(super) count: usize,
    /// The calls it waits for.
    pub(super) calls: Vec<String>,
    pub(super) session: String,
}

impl ProcessTable {
    /// Adds a process that is about to start.
    pub(super) fn add(
        &mut self,
        commands: mpsc::Sender<ActorCommand>,
        launch: Launch,
        state: ProcessState,
        setup: Option<Setup>,
    ) -> (ProcessId, ClaimedProcess) {
        self.started += 1;
        let id = ProcessId(self.started);
        let claimed = ClaimedProcess { commands: commands.clone() };
        let (activity, since) = (ProcessActivity::Idle, Instant::now());
        self.live.insert(id, ProcessEntry { commands, launch, setup, state, activity, since });
        (id, claimed)
    }

    /// Claims the live process that holds most of this conversation and has the same setup.
    pub(super) fn find(&mut self, lineage: &Lineage, launch: &Launch, setup: &Setup) -> Option<LiveMatch> {
        for count in (1..lineage.len()).rev() {
            let hash = lineage.at(count);
            let Some(id) = self.by_lineage.get(&hash).copied() else { continue };
            let Some(entry) = self.live.get_mut(&id) else { continue };
            let same =
                entry.launch == *launch && entry.setup.as_ref().is_some_and(|made| made.matches(setup));
            let ProcessState::Settled(settled) = &entry.state else { continue };
            if !same {
                continue;
            }
            let calls = settled.calls.clone();
            entry.state = ProcessState::Busy;
            let process = ClaimedProcess { commands: entry.commands.clone() };
            let session = entry.setup.as_ref().map(|made| made.session.clone()).unwrap_or_default();
            self.by_lineage.remove(&hash);
            return Some(LiveMatch { process, count, calls, session });
        }
        None
    }

    /// Claims a warm process for a new conversation: launched this way, and either not opened yet or opened with
    /// exactly this setup.
    pub(super) fn take_warm(&mut self, launch: &Launch, setup: &Setup) -> Option<ClaimedProcess> {
        self.model.clone_from(&launch.model);
        self.preopen.observe(launch, setup);
        let suits = |entry: &&mut ProcessEntry| {
            let opened_for = entry.setup.as_ref().map(|opened| opened.fingerprint);
            let fits = opened_for.is_none_or(|fingerprint| fingerprint == setup.fingerprint);
            entry.is_warm() && entry.launch == *launch && fits
        };
        let all = self.live.values_mut().filter(suits);
        let entry = all.min_by_key(|entry| (entry.setup.is_none(), entry.since))?;
        entry.state = ProcessState::Busy;
        entry.setup = Some(setup.clone());
        Some(ClaimedProcess { commands: entry.commands.clone() })
    }

    /// How to launch and preopen the next warm process, if fewer than `wanted` are usable.
    pub(super) fn next_warm(&mut self, wanted: usize, usual: &Launch) -> Option<(Launch, Option<Setup>)> {
        self.end_unusable_preopened();
        let warm = self.live.values().filter(|entry| entry.is_warm()).count();
        if warm >= wanted || self.warm_start_failed {
            return None;
        }
        Some(match self.preopen.guess() {
            Some((launch, setup)) => (launch.clone(), Some(setup.clone())),
            None => (Launch { model: self.model.clone(), ..usual.clone() }, None),
        })
    }

    /// The agent's program works, so warm processes may be started again.
    pub(super) fn mark_healthy(&mut self) {
        self.warm_start_failed = false;
    }

    /// Records the state of a process after its turn; false if it is ending.
    pub(super) fn settle(&mut self, id: ProcessId, settled: Settled, activity: ProcessActivity) -> bool {
        let Some(entry) = self.live.get_mut(&id) else { return false };
        self.by_lineage.insert(settled.after, id);
        (entry.state, entry.activity) = (ProcessState::Settled(settled), activity);
        entry.since = Instant::now();
        true
    }

    /// Records what a process does while it waits for its client; false if it is ending.
    pub(super) fn set_activity(&mut self, id: ProcessId, activity: ProcessActivity) -> bool {
        let Some(entry) = self.live.get_mut(&id) else { return false };
        entry.activity = activity;
        true
    }

    /// Removes a process unless a request has claimed it.
    pub(super) fn retire(&mut self, id: ProcessId) -> bool {
        let is_busy = self.live.get(&id).is_some_and(|entry| matches!(entry.state, ProcessState::Busy));
        if !is_busy {
            self.take(id);
        }
        !is_busy
    }

    /// Removes a process that has ended or is about to.
    pub(super) fn remove(&mut self, id: ProcessId) {
        let Some(entry) = self.take(id).filter(ProcessEntry::is_warm) else { return };
        match entry.setup {
            None => self.warm_start_failed = true,
            // The opening may have caused the exit.
            Some(_) => self.preopen.reset_after_miss(),
        }
    }

    /// True if this request gets the next free slot.
    pub(super) fn is_next(&self, ticket: Ticket) -> bool {
        self.queue.next(|caller| self.held_by(caller)) == Some(ticket)
    }

    /// The number of processes that serve a caller.
    fn held_by(&self, caller: &str) -> usize {
        self.live.values().filter(|entry| entry.caller() == Some(caller)).count()
    }

    /// Ends an idle process. Warm ones go first: they hold no conversation. Then those of the caller with the most
    /// processes, and among them the one that has been idle longest.
    pub(super) fn evict(&mut self) {
        let largest_share_first =
            |entry: &ProcessEntry| Reverse(entry.caller().map_or(0, |caller| self.held_by(caller)));
        let idle = self.live.iter().filter_map(|(id, entry)| match (&entry.state, entry.activity) {
            (ProcessState::Warm, _) => Some(((0, Reverse(0), entry.since), *id)),
            (ProcessState::Settled(_), ProcessActivity::Idle) => {
                Some(((1, largest_share_first(entry), entry.since), *id))
            }
            (ProcessState::Settled(_), ProcessActivity::Working) | (ProcessState::Busy, _) => None,
        });
        if let Some((_, id)) = idle.min() {
            self.end(id);
        }
    }

    /// Ends warm processes that were preopened for a setup that is no longer expected: no other request can use them.
    fn end_unusable_preopened(&mut self) {
        let guess = self.preopen.guess().map(|(_, setup)| setup.fingerprint);
        let is_wrong = |entry: &ProcessEntry| {
            let opened_for = entry.setup.as_ref().map(|opened| opened.fingerprint);
            entry.is_warm() && opened_for.is_some() && opened_for != guess
        };
        let wrong = self.live.iter().filter(|(_, entry)| is_wrong(entry)).map(|(id, _)| *id);
        for id in wrong.collect::<Vec<_>>() {
            self.end(id);
        }
    }

    fn end(&mut self, id: ProcessId) {
        if let Some(entry) = self.take(id) {
            request_end(&entry.commands);
        }
    }

    fn take(&mut self, id: ProcessId) -> Option<ProcessEntry> {
        let entry = self.live.remove(&id)?;
        if let ProcessState::Settled(settled) = &entry.state
            && self.by_lineage.get(&settled.after) == Some(&id)
        {
            self.by_lineage.remove(&settled.after);
        }
        Some(entry)
    }
}

impl ProcessEntry {
    fn is_warm(&self) -> bool {
        matches!(self.state, ProcessState::Warm)
    }

    /// The caller it serves; a warm process serves nobody yet.
    fn caller(&self) -> Option<&str> {
        let setup = self.setup.as_ref().filter(|_| !self.is_warm())?;
        Some(&setup.caller)
    }
}

impl ClaimedProcess {
    /// Passes the turn to the process. If the process is gone, the turn fails through its reply channel.
    pub(super) fn begin(&self, turn_job: TurnJob) {
        let refused = match self.commands.try_send(ActorCommand::Begin(Box::new(turn_job))) {
            Ok(()) => return,
            Err(mpsc::error::TrySendError::Full(command) | mpsc::error::TrySendError::Closed(command)) => {
                command
            }
        };
        if let ActorCommand::Begin(turn_job) = refused {
            turn_job.reply_sender.fail(errors::exited(None, ""));
        }
    }

    /// Ends a process that can no longer serve its conversation.
    pub(super) fn end(self) {
        request_end(&self.commands);
    }
}

/// The mailbox never fills, because a process has at most one turn. If it is closed, the process is already ending.
fn request_end(commands: &mpsc::Sender<ActorCommand>) {
    if commands.try_send(ActorCommand::End).is_err() {
        tracing::debug!("an agent process was already ending");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    type Mailbox = mpsc::Receiver<ActorCommand>;

    fn start_warm(processes: &mut ProcessTable) -> Option<(ProcessId, Option<Setup>, Mailbox)> {
        let (launch, setup) = processes.next_warm(1, &Launch::default())?;
        let (commands, mailbox) = mpsc::channel(1);
        let (id, _) = processes.add(commands, launch, ProcessState::Warm, setup.clone());
        Some((id, setup, mailbox))
    }

    fn begin(processes: &mut ProcessTable, setup: &Setup) -> Option<ClaimedProcess> {
        processes.take_warm(&Launch::default(), setup)
    }

    /// A table whose only warm process was preopened with this setup.
    fn preopened(setup: &Setup) -> (ProcessTable, ProcessId, Mailbox) {
        let mut processes = ProcessTable::default();
        for _ in 0..2 {
            assert!(begin(&mut processes, setup).is_none());
        }
        let (id, opened, mailbox) = start_warm(&mut processes).expect("a warm process is missing");
        assert_eq!(opened.expect("it is preopened").fingerprint, setup.fingerprint);
        assert!(start_warm(&mut processes).is_none(), "a preopened process counts as warm");
        (processes, id, mailbox)
    }

    #[test]
    fn a_preopened_process_serves_only_the_same_setup_of_the_same_caller() {
        let expected = Setup::replacing("alice", "Be brief.");
        for other in [Setup::replacing("alice", "Be long."), Setup::replacing("bob", "Be brief.")] {
            let (mut processes, _, _mailbox) = preopened(&expected);
            assert!(begin(&mut processes, &other).is_none());
            assert!(begin(&mut processes, &expected).is_some());
        }
        let (mut processes, _, _mailbox) = preopened(&expected);
        let launch = Launch { model: Some("large".to_owned()), ..Launch::default() };
        assert!(processes.take_warm(&launch, &expected).is_none(), "its launch options differ");
    }

    #[test]
    fn a_wrong_guess_is_ended_and_replaced_by_an_unopened_process() {
        let (mut processes, _, mut mailbox) = preopened(&Setup::replacing("alice", "Be brief."));
        let other = Setup::replacing("alice", "Be long.");
        assert!(begin(&mut processes, &other).is_none());
        let (_, opened, _next) = start_warm(&mut processes).expect("the preopened process is unusable");
        assert!(opened.is_none());
        assert!(matches!(mailbox.try_recv(), Ok(ActorCommand::End)));
        assert!(begin(&mut processes, &other).is_some());
    }

    #[test]
    fn a_process_that_fails_while_opening_is_replaced_by_an_unopened_one() {
        let (mut processes, id, _mailbox) = preopened(&Setup::replacing("alice", "Be brief."));
        processes.remove(id);
        let (id, opened, _next) = start_warm(&mut processes).expect("a warm process is missing");
        assert!(opened.is_none());
        processes.remove(id);
        assert!(start_warm(&mut processes).is_none(), "another would fail too");
        processes.mark_healthy();
        assert!(start_warm(&mut processes).is_some());
    }

    /// Adds a process that waits for its client, and returns its mailbox.
    fn settle_for(processes: &mut ProcessTable, caller: &str) -> Mailbox {
        let (commands, mailbox) = mpsc::channel(1);
        let setup = Some(Setup::replacing(caller, "Be brief."));
        let (id, _) = processes.add(commands, Launch::default(), ProcessState::Busy, setup);
        let after = Lineage::of(&format!("{caller} {id:?}"), &[]).whole();
        assert!(processes.settle(id, Settled { after, calls: Vec::new() }, ProcessActivity::Idle));
        mailbox
    }

    #[test]
    fn the_caller_with_the_most_processes_loses_one_first() {
        let mut processes = ProcessTable::default();
        let callers = ["alice", "bob", "bob", "carol"];
        let mut mailboxes: Vec<Mailbox> =
            callers.iter().map(|caller| settle_for(&mut processes, caller)).collect();
        let mut order = Vec::new();
        for _ in callers {
            processes.evict();
            let ended = mailboxes.iter_mut().position(|mailbox| mailbox.try_recv().is_ok());
            order.push(ended.expect("one is ended"));
        }
        assert_eq!(order, [1, 0, 2, 3]);
    }

    #[test]
    fn a_free_slot_goes_to_the_caller_with_the_fewest_processes() {
        let mut processes = ProcessTable::default();
        let _held = [settle_for(&mut processes, "alice"), settle_for(&mut processes, "alice")];
        let alice = processes.queue.enter(&Arc::from("alice")).expect("a place");
        assert!(processes.is_next(alice), "nobody else waits");
        let bob = processes.queue.enter(&Arc::from("bob")).expect("a place");
        assert!(processes.is_next(bob) && !processes.is_next(alice));
        processes.queue.leave(bob);
        assert!(processes.is_next(alice));
    }

    #[test]
    fn a_preopened_process_is_evicted_first() {
        let (mut processes, _, mut mailbox) = preopened(&Setup::replacing("alice", "Be brief."));
        processes.evict();
        assert!(matches!(mailbox.try_recv(), Ok(ActorCommand::End)));
    }
}
