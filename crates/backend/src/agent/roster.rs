//! Which processes of an agent live, where each of them stands, and who may have which.

use std::collections::HashMap;

use tokio::sync::mpsc;
use tokio::time::Instant;
use toolgate_model::lineage::{Lineage, PrefixHash};

use super::actor::Command;
use super::ahead::Ahead;
use super::failure;
use super::job::{Job, Settled};
use super::launch::Launch;
use super::opening::Setup;

/// The processes of one agent.
#[derive(Default)]
pub(super) struct Roster {
    started: u64,
    live: HashMap<ProcessId, Entry>,
    by_lineage: HashMap<PrefixHash, ProcessId>,
    /// The last warm process ended by itself: another would do the same.
    warming_fails: bool,
    /// The model that was asked for last: the next one is likely to ask for it too.
    model: Option<String>,
    ahead: Ahead,
}

/// One process of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProcessId(u64);

struct Entry {
    commands: mpsc::Sender<Command>,
    launch: Launch,
    /// How it was opened; none for a warm one that was not.
    setup: Option<Setup>,
    standing: Standing,
    idleness: Idleness,
    since: Instant,
}

/// Where a process stands.
pub(super) enum Standing {
    /// Nobody has asked for it yet.
    Warm,
    Busy,
    Settled(Settled),
}

/// Whether a process that waits for its client has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    Idle,
    /// A person is asked, or a tool of its own runs: both would be lost with it.
    AtWork,
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

impl Roster {
    /// Adds a process that is about to start.
    pub(super) fn add(
        &mut self,
        commands: mpsc::Sender<Command>,
        launch: Launch,
        standing: Standing,
        setup: Option<Setup>,
    ) -> (ProcessId, Claimed) {
        self.started += 1;
        let id = ProcessId(self.started);
        let claimed = Claimed { commands: commands.clone() };
        let (idleness, since) = (Idleness::Idle, Instant::now());
        self.live.insert(id, Entry { commands, launch, setup, standing, idleness, since });
        (id, claimed)
    }

    /// The live process that knows most of this conversation and was set up the same way, taken for the request.
    pub(super) fn find(&mut self, lineage: &Lineage, launch: &Launch, setup: &Setup) -> Option<Match> {
        for count in (1..lineage.len()).rev() {
            let hash = lineage.at(count);
            let Some(id) = self.by_lineage.get(&hash).copied() else { continue };
            let Some(entry) = self.live.get_mut(&id) else { continue };
            let same = entry.launch == *launch && entry.setup.as_ref().is_some_and(|made| made.fits(setup));
            let Standing::Settled(settled) = &entry.standing else { continue };
            if !same {
                continue;
            }
            let calls = settled.calls.clone();
            entry.standing = Standing::Busy;
            let process = Claimed { commands: entry.commands.clone() };
            let session = entry.setup.as_ref().map(|made| made.session.clone()).unwrap_or_default();
            self.by_lineage.remove(&hash);
            return Some(Match { process, count, calls, session });
        }
        None
    }

    /// A warm process for a conversation that begins: started this way, and opened in these very words or not at all.
    pub(super) fn take_warm(&mut self, launch: &Launch, setup: &Setup) -> Option<Claimed> {
        self.model.clone_from(&launch.model);
        self.ahead.begins(launch, setup);
        let suits = |entry: &&mut Entry| {
            let mut opened = entry.setup.iter();
            entry.is_warm() && entry.launch == *launch && opened.all(|opened| opened.wording == setup.wording)
        };
        let all = self.live.values_mut().filter(suits);
        let entry = all.min_by_key(|entry| (entry.setup.is_none(), entry.since))?;
        entry.standing = Standing::Busy;
        entry.setup = Some(setup.clone());
        Some(Claimed { commands: entry.commands.clone() })
    }

    /// How the next warm process is to be started, and opened ahead, where fewer than `wanted` are of use.
    pub(super) fn missing(&mut self, wanted: usize, usual: &Launch) -> Option<(Launch, Option<Setup>)> {
        self.end_wrong_guesses();
        let warm = self.live.values().filter(|entry| entry.is_warm()).count();
        if warm >= wanted || self.warming_fails {
            return None;
        }
        Some(match self.ahead.guess() {
            Some((launch, setup)) => (launch.clone(), Some(setup.clone())),
            None => (Launch { model: self.model.clone(), ..usual.clone() }, None),
        })
    }

    /// The agent's program works, so warm processes will.
    pub(super) fn works(&mut self) {
        self.warming_fails = false;
    }

    /// Notes where a process stands after its turn; false for one that is ending.
    pub(super) fn settle(&mut self, id: ProcessId, settled: Settled, idleness: Idleness) -> bool {
        let Some(entry) = self.live.get_mut(&id) else { return false };
        self.by_lineage.insert(settled.after, id);
        (entry.standing, entry.idleness) = (Standing::Settled(settled), idleness);
        entry.since = Instant::now();
        true
    }

    /// Notes what a process does while it waits for its client; false for one that is ending.
    pub(super) fn note(&mut self, id: ProcessId, idleness: Idleness) -> bool {
        let Some(entry) = self.live.get_mut(&id) else { return false };
        entry.idleness = idleness;
        true
    }

    /// Takes a process out of use if nobody has claimed it.
    pub(super) fn retire(&mut self, id: ProcessId) -> bool {
        let is_busy = self.live.get(&id).is_some_and(|entry| matches!(entry.standing, Standing::Busy));
        if !is_busy {
            self.forget(id);
        }
        !is_busy
    }

    /// Forgets a process that has ended or is about to.
    pub(super) fn gone(&mut self, id: ProcessId) {
        let Some(entry) = self.forget(id).filter(Entry::is_warm) else { return };
        match entry.setup {
            None => self.warming_fails = true,
            // Perhaps it was its opening that it could not take.
            Some(_) => self.ahead.fails(),
        }
    }

    /// Ends the process that has been idle for longest. A warm one goes first: it knows nothing.
    pub(super) fn evict(&mut self) {
        let idle = self.live.iter().filter_map(|(id, entry)| match (&entry.standing, entry.idleness) {
            (Standing::Warm, _) => Some(((0, entry.since), *id)),
            (Standing::Settled(_), Idleness::Idle) => Some(((1, entry.since), *id)),
            (Standing::Settled(_), Idleness::AtWork) | (Standing::Busy, _) => None,
        });
        if let Some((_, id)) = idle.min() {
            self.end(id);
        }
    }

    /// Ends warm processes that were opened for what is not expected any more: nobody else could use them.
    fn end_wrong_guesses(&mut self) {
        let guess = self.ahead.guess().map(|(_, setup)| setup.wording);
        let is_wrong = |entry: &Entry| {
            let mut opened = entry.setup.iter();
            entry.is_warm() && opened.any(|opened| Some(opened.wording) != guess)
        };
        let wrong = self.live.iter().filter(|(_, entry)| is_wrong(entry)).map(|(id, _)| *id);
        for id in wrong.collect::<Vec<_>>() {
            self.end(id);
        }
    }

    fn end(&mut self, id: ProcessId) {
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

impl Entry {
    fn is_warm(&self) -> bool {
        matches!(self.standing, Standing::Warm)
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

/// The mailbox of a process that has one turn at most never fills; one that is closed belongs to a process that ends.
fn tell_to_end(commands: &mpsc::Sender<Command>) {
    if commands.try_send(Command::End).is_err() {
        tracing::debug!("an agent process was ending already");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Mailbox = mpsc::Receiver<Command>;

    fn start_warm(roster: &mut Roster) -> Option<(ProcessId, Option<Setup>, Mailbox)> {
        let (launch, setup) = roster.missing(1, &Launch::default())?;
        let (commands, mailbox) = mpsc::channel(1);
        let (id, _) = roster.add(commands, launch, Standing::Warm, setup.clone());
        Some((id, setup, mailbox))
    }

    fn begin(roster: &mut Roster, setup: &Setup) -> Option<Claimed> {
        roster.take_warm(&Launch::default(), setup)
    }

    /// A roster whose one warm process was opened ahead in these words.
    fn opened_ahead(setup: &Setup) -> (Roster, ProcessId, Mailbox) {
        let mut roster = Roster::default();
        for _ in 0..2 {
            assert!(begin(&mut roster, setup).is_none());
        }
        let (id, opened, mailbox) = start_warm(&mut roster).expect("one is missing");
        assert_eq!(opened.expect("it is opened").wording, setup.wording);
        assert!(start_warm(&mut roster).is_none(), "one that is opened is as warm as any");
        (roster, id, mailbox)
    }

    #[test]
    fn a_process_opened_ahead_is_for_the_very_same_words_of_the_same_caller() {
        let asked = Setup::replacing("alice", "Be brief.");
        for other in [Setup::replacing("alice", "Be long."), Setup::replacing("bob", "Be brief.")] {
            let (mut roster, _, _mailbox) = opened_ahead(&asked);
            assert!(begin(&mut roster, &other).is_none());
            assert!(begin(&mut roster, &asked).is_some());
        }
        let (mut roster, _, _mailbox) = opened_ahead(&asked);
        let launch = Launch { model: Some("large".to_owned()), ..Launch::default() };
        assert!(roster.take_warm(&launch, &asked).is_none(), "it was started otherwise");
    }

    #[test]
    fn a_wrong_guess_is_ended_and_one_that_anybody_can_have_comes_in_its_place() {
        let (mut roster, _, mut mailbox) = opened_ahead(&Setup::replacing("alice", "Be brief."));
        let other = Setup::replacing("alice", "Be long.");
        assert!(begin(&mut roster, &other).is_none());
        let (_, opened, _next) = start_warm(&mut roster).expect("the other is of no use");
        assert!(opened.is_none());
        assert!(matches!(mailbox.try_recv(), Ok(Command::End)));
        assert!(begin(&mut roster, &other).is_some());
    }

    #[test]
    fn a_process_that_does_not_survive_its_opening_is_followed_by_one_without() {
        let (mut roster, id, _mailbox) = opened_ahead(&Setup::replacing("alice", "Be brief."));
        roster.gone(id);
        let (id, opened, _next) = start_warm(&mut roster).expect("one is missing");
        assert!(opened.is_none());
        roster.gone(id);
        assert!(start_warm(&mut roster).is_none(), "another would do the same");
        roster.works();
        assert!(start_warm(&mut roster).is_some());
    }

    #[test]
    fn a_process_opened_ahead_makes_room_first() {
        let (mut roster, _, mut mailbox) = opened_ahead(&Setup::replacing("alice", "Be brief."));
        roster.evict();
        assert!(matches!(mailbox.try_recv(), Ok(Command::End)));
    }
}
