//! The one owner of a process: it selects over lines, commands and decisions, so that neither a person nor a client
//! who takes their time can block anything.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_dialect::claude_stream_json::{Line, PermissionAsk};
use toolgate_model::TurnError;

use super::charges::Charges;
use super::config::AgentConfig;
use super::core::Core;
use super::decide::{Decision, Question};
use super::failure;
use super::job::{Happening, Job};
use super::launch::{self, Launch};
use super::ledger::Ledger;
use super::opening::Setup;
use super::pool::Pool;
use super::process::{PipeEvent, Process};
use super::questions::Questions;
use super::roster::{Idleness, ProcessId};
use super::steps::OwnWork;

/// What the owner of a process may be told.
pub(super) enum Command {
    /// To serve this turn.
    Begin(Box<Job>),
    /// To end.
    End,
}

/// The owner of one process.
pub(super) struct Actor {
    pub(super) id: ProcessId,
    pub(super) pool: Arc<Pool>,
    pub(super) launch: Launch,
    /// How it is opened before anybody asks for it.
    pub(super) ahead: Option<Setup>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Its place among the processes that may live; free again when it is gone.
    pub(super) place: OwnedSemaphorePermit,
}

/// Why a process ends.
enum End {
    /// It was told to, or nobody will need it any more.
    Told,
    /// Its client has left.
    ClientLeft,
    /// It waited for its client for too long and was put to sleep.
    Slept,
    /// It ended itself, or is of no use any more.
    Failed(TurnError),
}

impl End {
    /// What a turn is told that came too late for the process to begin it.
    fn error(&self) -> TurnError {
        match self {
            Self::Failed(error) => error.clone(),
            Self::Told | Self::ClientLeft | Self::Slept => failure::ended(None, ""),
        }
    }
}

impl Actor {
    pub(super) async fn run(mut self) {
        let mut core = Core::new(Charges::with(&self.pool.config().model));
        if let Some(Setup { opening, tools, .. }) = self.ahead.take() {
            core.open(&opening, tools);
        }
        let mut ledger = Ledger::new(Arc::clone(&self.pool));
        let command = launch::command(self.pool.config(), &self.launch, self.pool.door());
        match Process::start(command) {
            Ok(mut process) => {
                tracing::debug!(agent = %self.pool.config().name, process = process.id(), "an agent process started");
                let end = self.serve(&mut core, &mut ledger, &mut process).await;
                self.pool.gone(self.id);
                let last = end.error();
                // The client may ask again at once, and by then it must be known how far this turn came, and nothing
                // of it may still go on.
                process.end().await;
                match core.cut_short() {
                    Some(record) => ledger.keep(record, || tell(core, end)),
                    None => tell(core, end),
                }
                // Whoever claimed it in its last moment has a turn in the mailbox.
                self.refuse_all(&last);
            }
            Err(error) => {
                self.pool.gone(self.id);
                let error = failure::cannot_start(&self.pool.config().program, error);
                tracing::warn!(agent = %self.pool.config().name, %error, "an agent process could not be started");
                // Whoever claimed it may still be about to send the turn, and is to hear why it cannot be.
                while let Some(command) = self.commands.recv().await {
                    refuse(command, &error);
                }
            }
        }
        drop(self.place);
        self.pool.place_is_free();
    }

    fn refuse_all(&mut self, error: &TurnError) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            refuse(command, error);
        }
    }

    async fn serve(&mut self, core: &mut Core, ledger: &mut Ledger, process: &mut Process) -> End {
        let mut questions = Questions::default();
        let stopping = self.pool.stopping().clone();
        let mut deadline = Deadline::None;
        let mut heard_at = Instant::now();
        let mut noted = Idleness::Idle;
        loop {
            for line in core.take_lines() {
                process.write(line);
            }
            let now = idleness(core, &questions);
            if now != noted && core.outbox().is_none() {
                self.pool.note(self.id, now);
                noted = now;
            }
            let at = deadline.at();
            let client = core.outbox().map(|outbox| outbox.left().clone());
            tokio::select! {
                biased;
                () = stopping.cancelled() => return End::Failed(failure::stopping()),
                command = self.commands.recv() => match command {
                    Some(Command::Begin(job)) => {
                        core.begin(*job);
                        deadline = Deadline::Silence(Instant::now() + self.pool.config().silence);
                    }
                    Some(Command::End) | None => return End::Told,
                },
                () = left(client) => return End::ClientLeft,
                line = questions.next_answer() => {
                    core.write(line);
                    deadline = deadline.renewed(self.pool.config());
                }
                event = process.happening() => match event {
                    PipeEvent::Quiet => {}
                    PipeEvent::Closed => {
                        let status = process.status().await;
                        return End::Failed(failure::ended(status, &process.complaint()));
                    }
                    PipeEvent::Read => {
                        let heard = match read(core, process) {
                            Ok(heard) => heard,
                            Err(error) => return End::Failed(error),
                        };
                        if heard.messages > 0 {
                            heard_at = Instant::now();
                        }
                        if heard.messages > 0 && (core.outbox().is_some() || core.own_work() != OwnWork::None) {
                            deadline = deadline.renewed(self.pool.config());
                        }
                        for happening in heard.happenings {
                            match happening {
                                Happening::FirstEvent => self.pool.refill(),
                                Happening::Settled { standing, last, outbox, record, talk, alone } => {
                                    // Noted before the client knows: its next request may come at once.
                                    noted = idleness(core, &questions);
                                    self.pool.settle(self.id, standing, noted);
                                    for part in talk {
                                        ledger.keep(part, || ());
                                    }
                                    ledger.keep(record, move || {
                                        drop(alone);
                                        outbox.send(last);
                                        outbox.finish();
                                    });
                                    deadline = Deadline::Hold(Instant::now() + self.pool.config().pool.hold);
                                }
                                Happening::Learned(record) => ledger.keep(record, || ()),
                                Happening::Failed(error) => return End::Failed(error),
                                Happening::Asked { id, ask } => {
                                    let (safe, decision) = (ledger.safe(), self.decide(core, &ask));
                                    // What is on record is never run again, so it runs only then.
                                    let decision = safe.then(|()| decision).boxed();
                                    questions.ask(id, ask, decision);
                                }
                                Happening::Withdrawn(id) => questions.withdraw(&id),
                            }
                        }
                    }
                },
                () = tokio::time::sleep_until(at), if deadline != Deadline::None => match deadline {
                    // It is somebody else's turn to say something, and asleep it could not hear it.
                    Deadline::Hold(_) | Deadline::Silence(_) if questions.are_open() => {
                        deadline = deadline.renewed(self.pool.config());
                    }
                    // Its client is not the only one it waits for: a tool of its own runs, or hangs.
                    Deadline::Hold(_) if core.own_work() == OwnWork::Now && heard_at.elapsed() < self.pool.config().silence => {
                        deadline = deadline.renewed(self.pool.config());
                    }
                    Deadline::Hold(_) if self.pool.retire(self.id) => return End::Slept,
                    // It was claimed at this very moment: the command is on its way.
                    Deadline::Hold(_) | Deadline::None => deadline = Deadline::None,
                    Deadline::Silence(_) => return End::Failed(failure::silent()),
                },
            }
        }
    }

    fn decide(&self, core: &Core, ask: &PermissionAsk) -> BoxFuture<'static, Decision> {
        let (turn, session) = core.place();
        let question = Question {
            turn,
            session,
            tool: ask.tool.clone(),
            input: ask.input.clone(),
            suggestions: ask.suggestions.clone(),
            reason: ask.reason.clone(),
        };
        self.pool.decider().decide(question)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Deadline {
    None,
    /// The program must say something until then.
    Silence(Instant),
    /// The client must come back until then.
    Hold(Instant),
}

impl Deadline {
    /// The same, from now on.
    fn renewed(self, config: &AgentConfig) -> Self {
        match self {
            Self::None => Self::None,
            Self::Silence(_) => Self::Silence(Instant::now() + config.silence),
            Self::Hold(_) => Self::Hold(Instant::now() + config.pool.hold),
        }
    }

    fn at(self) -> Instant {
        match self {
            Self::None => Instant::now(),
            Self::Silence(at) | Self::Hold(at) => at,
        }
    }
}

/// What the program's last lines said.
#[derive(Default)]
struct Heard {
    /// How many of them were messages: other noise is no sign that it works.
    messages: usize,
    happenings: Vec<Happening>,
}

fn read(core: &mut Core, process: &mut Process) -> Result<Heard, TurnError> {
    let mut heard = Heard::default();
    while let Some(line) = process.next_line().map_err(failure::broken)? {
        heard.messages += usize::from(line.starts_with('{'));
        heard.happenings.append(&mut core.line(Line::read(line).map_err(failure::broken)?));
    }
    Ok(heard)
}

/// What a process does while it waits for its client.
fn idleness(core: &Core, questions: &Questions) -> Idleness {
    let works = questions.are_open() || core.own_work() == OwnWork::Now;
    if works { Idleness::AtWork } else { Idleness::Idle }
}

fn refuse(command: Command, error: &TurnError) {
    match command {
        Command::Begin(job) => job.outbox.fail(error.clone()),
        Command::End => {}
    }
}

async fn left(client: Option<CancellationToken>) {
    match client {
        Some(client) => client.cancelled().await,
        None => std::future::pending().await,
    }
}

fn tell(mut core: Core, end: End) {
    let Some(outbox) = core.abandon() else { return };
    match end {
        End::Failed(error) => outbox.fail(error),
        End::Told | End::Slept => outbox.fail(failure::stopping()),
        End::ClientLeft => drop(outbox),
    }
}
