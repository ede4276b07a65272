//! The owner of one process. It selects over the process's output, commands and decisions, so neither a slow person
//! nor a slow client can block it.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_dialect::claude_stream_json::{AgentLine, PermissionRequest};
use toolgate_model::TurnError;
use toolgate_model::approval::{Decision, ToolUse};

use super::config::AgentConfig;
use super::core::Core;
use super::cost::CostMeter;
use super::errors;
use super::folders::ProcessFolders;
use super::gateway_access::ProcessKey;
use super::launch::{self, Launch};
use super::opening::Setup;
use super::pending_approvals::PendingApprovals;
use super::pool::ProcessPool;
use super::process::{PipeEvent, Process};
use super::process_table::{ProcessActivity, ProcessId};
use super::record_queue::RecordQueue;
use super::turn_job::{CoreEvent, LastTurn, TurnJob};
use super::turn_steps::PendingBuiltins;

/// What the pool can tell an actor to do.
pub(super) enum ActorCommand {
    /// Serve this turn.
    Begin(Box<TurnJob>),
    /// End the process.
    End,
}

/// The owner of one process.
pub(super) struct Actor {
    pub(super) id: ProcessId,
    pub(super) pool: Arc<ProcessPool>,
    pub(super) launch: Launch,
    /// The setup to open the process with before a request claims it.
    pub(super) preopen: Option<Setup>,
    pub(super) commands: mpsc::Receiver<ActorCommand>,
    /// One of the pool's process slots, released when the process is gone.
    pub(super) slot: OwnedSemaphorePermit,
}

/// A process and what was made for it.
struct RunningProcess {
    process: Process,
    key: ProcessKey,
    folders: ProcessFolders,
}

/// Why a process ends.
enum ExitReason {
    /// The pool asked for it, or the pool is gone.
    Requested,
    /// The client closed its connection.
    ClientLeft,
    /// The client did not come back within the hold time.
    HoldExpired,
    /// The process exited by itself or became unusable.
    Failed(TurnError),
}

impl ExitReason {
    /// The error for a turn that reached the mailbox too late to be started.
    fn error(&self) -> TurnError {
        match self {
            Self::Failed(error) => error.clone(),
            Self::Requested | Self::ClientLeft | Self::HoldExpired => errors::exited(None, ""),
        }
    }
}

impl Actor {
    pub(super) async fn run(mut self) {
        let mut core = Core::new(CostMeter::new(&self.pool.config().model));
        if let Some(Setup { opening, tools, .. }) = self.preopen.take() {
            core.open(&opening, tools);
        }
        let mut record_queue = RecordQueue::new(Arc::clone(&self.pool));
        match self.start_process() {
            Ok(RunningProcess { mut process, key, folders }) => {
                tracing::debug!(agent = %self.pool.config().name, process = process.id(), "an agent process started");
                let end = self.serve(&mut core, &mut record_queue, &mut process).await;
                self.pool.remove(self.id);
                let last = end.error();
                if let ExitReason::Failed(error) = &end {
                    self.log(error);
                }
                // The client may retry at once. By then the process must be dead and its progress on record.
                process.end().await;
                drop(key);
                match core.unfinished_record() {
                    Some(record) => record_queue.push(record, || report_exit(core, end)),
                    None => report_exit(core, end),
                }
                // A request that claimed the process at the last moment has put its turn into the mailbox.
                self.refuse_all(&last);
                drop(self.slot);
                self.pool.process_exited();
                folders.delete().await;
            }
            Err(error) => {
                self.pool.remove(self.id);
                let error = errors::cannot_start(&self.pool.config().program, &error);
                self.log(&error);
                // A request that claimed the process may not have sent its turn yet; it gets this error too.
                while let Some(command) = self.commands.recv().await {
                    refuse(command, &error);
                }
                drop(self.slot);
                self.pool.process_exited();
            }
        }
    }

    /// Starts the program in its own private folders, with a key of its own.
    fn start_process(&self) -> io::Result<RunningProcess> {
        let config = self.pool.config();
        let access = self.pool.process_access()?;
        let folders = ProcessFolders::create(&config.folder)?;
        let command = launch::command(config, &self.launch, &access, &folders)?;
        Ok(RunningProcess { process: Process::start(command)?, key: access.key, folders })
    }

    /// Logs why a process failed. The client does not get the cause: it may contain paths.
    fn log(&self, error: &TurnError) {
        if let Some(cause) = &error.source {
            tracing::warn!(agent = %self.pool.config().name, %error, %cause, "an agent process failed");
        }
    }

    fn refuse_all(&mut self, error: &TurnError) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            refuse(command, error);
        }
    }

    async fn serve(
        &mut self,
        core: &mut Core,
        record_queue: &mut RecordQueue,
        process: &mut Process,
    ) -> ExitReason {
        let mut approvals = PendingApprovals::default();
        let stopping = self.pool.stopping().clone();
        let mut deadline = Deadline::None;
        let mut last_message_at = Instant::now();
        let mut reported = ProcessActivity::Idle;
        loop {
            for line in core.take_lines() {
                process.write(line);
            }
            let now = activity(core, &approvals);
            if now != reported && core.reply_sender().is_none() {
                self.pool.set_activity(self.id, now);
                reported = now;
            }
            let at = deadline.at();
            let client = core.reply_sender().map(|reply_sender| reply_sender.client_closed().clone());
            tokio::select! {
                biased;
                () = stopping.cancelled() => return ExitReason::Failed(errors::stopping()),
                command = self.commands.recv() => match command {
                    Some(ActorCommand::Begin(turn_job)) => {
                        core.begin(*turn_job);
                        deadline = Deadline::Stall(Instant::now() + self.pool.config().stall_timeout);
                    }
                    Some(ActorCommand::End) | None => return ExitReason::Requested,
                },
                () = client_closed(client) => return ExitReason::ClientLeft,
                line = approvals.next_answer() => {
                    core.queue_line(line);
                    deadline = deadline.restarted(self.pool.config());
                }
                event = process.next_event() => match event {
                    PipeEvent::Quiet => {}
                    PipeEvent::Closed => {
                        let status = process.status().await;
                        return ExitReason::Failed(errors::exited(status, &process.stderr_tail()));
                    }
                    PipeEvent::Read => {
                        let read = match read(core, process) {
                            Ok(read) => read,
                            Err(error) => return ExitReason::Failed(error),
                        };
                        if read.messages > 0 {
                            last_message_at = Instant::now();
                        }
                        if read.messages > 0 && (core.reply_sender().is_some() || core.pending_builtins() != PendingBuiltins::None) {
                            deadline = deadline.restarted(self.pool.config());
                        }
                        for event in read.events {
                            match event {
                                CoreEvent::FirstEvent => self.pool.refill(),
                                CoreEvent::Settled { settled, last, reply_sender, record, run_guards } => {
                                    // Before the client gets the end of its reply: its next request may come at once.
                                    reported = activity(core, &approvals);
                                    self.pool.settle(self.id, settled, reported);
                                    record_queue.push(record, move || {
                                        run_guards.complete();
                                        drop(run_guards);
                                        reply_sender.send(last);
                                        reply_sender.finish();
                                    });
                                    deadline = Deadline::Hold(Instant::now() + self.pool.config().pool.hold);
                                }
                                CoreEvent::Progress(record) => record_queue.push(record, || ()),
                                CoreEvent::Failed(error) => return ExitReason::Failed(error),
                                CoreEvent::ApprovalNeeded { id, request } => {
                                    let (flushed, decision) = (record_queue.flushed(), self.decide(core, &request));
                                    let report = core.watch().when_allowed(request.call.as_deref());
                                    // A tool may run only after its call is on record, so that no retry runs it again.
                                    let decision = flushed.then(|()| decision).inspect(|decision| {
                                        if matches!(decision, Decision::Allow { .. }) {
                                            report();
                                        }
                                    });
                                    let decision = decision.boxed();
                                    approvals.add(id, request, decision);
                                }
                                CoreEvent::ApprovalWithdrawn(id) => approvals.withdraw(&id),
                            }
                        }
                    }
                },
                () = tokio::time::sleep_until(at), if deadline != Deadline::None => match deadline {
                    // A person is deciding, and the decision would be lost with the process.
                    Deadline::Hold(_) | Deadline::Stall(_) if approvals.any_open() => {
                        deadline = deadline.restarted(self.pool.config());
                    }
                    // A built-in tool is running, or hangs.
                    Deadline::Hold(_) if core.pending_builtins() == PendingBuiltins::Runnable && last_message_at.elapsed() < self.pool.config().stall_timeout => {
                        deadline = deadline.restarted(self.pool.config());
                    }
                    Deadline::Hold(_) if self.pool.retire(self.id) => return ExitReason::HoldExpired,
                    // A request has just claimed it: the command is on its way.
                    Deadline::Hold(_) | Deadline::None => deadline = Deadline::None,
                    Deadline::Stall(_) => return ExitReason::Failed(errors::stalled()),
                },
            }
        }
    }

    fn decide(&self, core: &Core, request: &PermissionRequest) -> BoxFuture<'static, Decision> {
        let LastTurn { turn, session, caller } = core.last_turn.clone();
        let PermissionRequest {
            tool,
            input,
            call,
            sub_agent,
            title,
            description,
            reason,
            blocked_path,
            suggestions,
        } = request.clone();
        self.pool.decider().decide(ToolUse {
            agent: self.pool.config().name.to_string(),
            caller: caller.to_string(),
            session,
            turn: Some(turn.to_string()),
            call,
            sub_agent,
            tool,
            input,
            title,
            description,
            reason,
            blocked_path,
            suggestions,
        })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Deadline {
    None,
    /// The program must write a message before this time.
    Stall(Instant),
    /// The client must come back before this time.
    Hold(Instant),
}

impl Deadline {
    /// The same deadline, counted from now.
    fn restarted(self, config: &AgentConfig) -> Self {
        match self {
            Self::None => Self::None,
            Self::Stall(_) => Self::Stall(Instant::now() + config.stall_timeout),
            Self::Hold(_) => Self::Hold(Instant::now() + config.pool.hold),
        }
    }

    fn at(self) -> Instant {
        match self {
            Self::None => Instant::now(),
            Self::Stall(at) | Self::Hold(at) => at,
        }
    }
}

/// The result of reading the lines that have arrived.
#[derive(Default)]
struct ReadLines {
    /// The number of JSON messages. Other output does not count as progress.
    messages: usize,
    events: Vec<CoreEvent>,
}

fn read(core: &mut Core, process: &mut Process) -> Result<ReadLines, TurnError> {
    let mut read = ReadLines::default();
    while let Some(line) = process.next_line().map_err(errors::unreadable_line)? {
        read.messages += usize::from(line.starts_with('{'));
        read.events.append(&mut core.handle_line(AgentLine::read(line).map_err(errors::unreadable_line)?));
    }
    Ok(read)
}

/// What a process is doing while it waits for its client.
fn activity(core: &Core, approvals: &PendingApprovals) -> ProcessActivity {
    let works = approvals.any_open() || core.pending_builtins() == PendingBuiltins::Runnable;
    if works { ProcessActivity::Working } else { ProcessActivity::Idle }
}

fn refuse(command: ActorCommand, error: &TurnError) {
    match command {
        ActorCommand::Begin(turn_job) => turn_job.reply_sender.fail(error.clone()),
        ActorCommand::End => {}
    }
}

async fn client_closed(client: Option<CancellationToken>) {
    match client {
        Some(client) => client.cancelled().await,
        None => std::future::pending().await,
    }
}

fn report_exit(mut core: Core, end: ExitReason) {
    let Some(reply_sender) = core.take_reply_sender() else { return };
    match end {
        ExitReason::Failed(error) => reply_sender.fail(error),
        ExitReason::Requested | ExitReason::HoldExpired => reply_sender.fail(errors::stopping()),
        ExitReason::ClientLeft => drop(reply_sender),
    }
}
