//! A child process and its pipes. Stdin, stdout and stderr are served concurrently, so neither side can block the
//! other. No process outlives the gateway.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use toolgate_dialect::frame::{FrameError, LineDecoder, MAX_FRAME_BYTES};

/// How much of the end of stderr is kept for error messages.
const MAX_STDERR_BYTES: usize = 4 * 1024;

/// The size of one read.
const READ_BYTES: usize = 64 * 1024;

/// How long a program may take to exit after it has closed its stdout.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for the rest of stderr after the program has exited.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// A running program.
pub(super) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    unwritten: VecDeque<Bytes>,
    lines: LineDecoder,
    read: BytesMut,
    stderr_chunk: BytesMut,
    stderr_tail: VecDeque<u8>,
}

/// What happened at the pipes.
pub(super) enum PipeEvent {
    /// Bytes arrived; there may be new lines.
    Read,
    /// Nothing to react to.
    Quiet,
    /// The program has closed its stdout: it is exiting.
    Closed,
}

impl Process {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let stdout = stdout.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            stdin,
            stdout,
            stderr,
            unwritten: VecDeque::new(),
            lines: LineDecoder::new(MAX_FRAME_BYTES),
            read: BytesMut::with_capacity(READ_BYTES),
            stderr_chunk: BytesMut::new(),
            stderr_tail: VecDeque::new(),
        })
    }

    /// Queues a line for stdin.
    pub(super) fn write(&mut self, line: String) {
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        self.unwritten.push_back(bytes.into());
    }

    /// Waits until something happens at the pipes. Cancel safe: no byte is lost.
    pub(super) async fn next_event(&mut self) -> PipeEvent {
        let Self { stdin, stdout, stderr, unwritten, lines, read, stderr_chunk, .. } = self;
        tokio::select! {
            count = stdout.read_buf(read) => match count {
                Ok(0) | Err(_) => PipeEvent::Closed,
                Ok(_) => {
                    lines.push(read);
                    read.clear();
                    PipeEvent::Read
                }
            },
            outcome = write_some(stdin.as_mut(), unwritten), if !unwritten.is_empty() => {
                if outcome.is_err() {
                    // The program has closed its stdin. Its stdout will show why.
                    *stdin = None;
                    unwritten.clear();
                }
                PipeEvent::Quiet
            }
            count = read_stderr(stderr.as_mut(), stderr_chunk), if stderr.is_some() => {
                self.append_stderr(&count);
                PipeEvent::Quiet
            }
        }
    }

    /// The next complete line.
    pub(super) fn next_line(&mut self) -> Result<Option<&str>, FrameError> {
        self.lines.next_line()
    }

    /// The end of what the program wrote to stderr.
    pub(super) fn stderr_tail(&self) -> String {
        let bytes: Vec<u8> = self.stderr_tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Kills the program and everything it started. If its stdin were closed instead, it would answer the pending calls
    /// with errors of its own and call its model again. It holds no state that could be lost.
    pub(super) async fn end(mut self) {
        if let Some(id) = self.child.id() {
            kill_process_tree(id);
        }
        if let Err(error) = self.child.kill().await {
            tracing::debug!(%error, "an agent process had already exited");
        }
    }

    /// The exit status of a program that has closed its stdout, after the rest of its stderr was read.
    pub(super) async fn status(&mut self) -> Option<ExitStatus> {
        self.stdin = None;
        let status = tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await.ok()?.ok();
        // A descendant may keep the pipe open, so stderr need not end.
        if tokio::time::timeout(STDERR_DRAIN_TIMEOUT, self.drain_stderr()).await.is_err() {
            tracing::debug!("an agent process exited but its stderr is still open");
        }
        status
    }

    async fn drain_stderr(&mut self) {
        while self.stderr.is_some() {
            let count = read_stderr(self.stderr.as_mut(), &mut self.stderr_chunk).await;
            self.append_stderr(&count);
        }
    }

    fn append_stderr(&mut self, count: &io::Result<usize>) {
        let Self { stderr, stderr_chunk, stderr_tail, .. } = self;
        if matches!(count, Ok(0) | Err(_)) {
            *stderr = None;
        }
        stderr_tail.extend(stderr_chunk.iter());
        stderr_chunk.clear();
        let excess = stderr_tail.len().saturating_sub(MAX_STDERR_BYTES);
        stderr_tail.drain(..excess);
    }

    /// The process id.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

async fn write_some(stdin: Option<&mut ChildStdin>, unwritten: &mut VecDeque<Bytes>) -> io::Result<()> {
    let (Some(stdin), Some(front)) = (stdin, unwritten.front_mut()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let written = stdin.write(front).await?;
    front.advance(written);
    if front.is_empty() {
        unwritten.pop_front();
    }
    Ok(())
}

async fn read_stderr(stderr: Option<&mut ChildStderr>, into: &mut BytesMut) -> io::Result<usize> {
    match stderr {
        Some(stderr) => stderr.read_buf(into).await,
        None => std::future::pending().await,
    }
}

/// Kills the process, its group, and descendants in groups of their own.
#[cfg(unix)]
pub(super) fn kill_process_tree(id: u32) {
    use rustix::process::{Signal, kill_process_group};
    // Descendants first: after their parent is gone they cannot be found. The group last: a supervisor that kills the
    // tree belongs to the group itself.
    kill_descendants(id);
    if let Some(group) = pid(id) {
        report_kill(kill_process_group(group, Signal::KILL));
    }
}

#[cfg(not(unix))]
pub(super) fn kill_process_tree(_: u32) {}

/// Kills all descendants of a process.
#[cfg(unix)]
pub(super) fn kill_descendants(id: u32) {
    use rustix::process::{Signal, kill_process};
    for descendant in descendants(id).into_iter().filter_map(pid) {
        report_kill(kill_process(descendant, Signal::KILL));
    }
}

#[cfg(unix)]
fn pid(id: u32) -> Option<rustix::process::Pid> {
    i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn report_kill(outcome: rustix::io::Result<()>) {
    if let Err(error) = outcome {
        tracing::trace!(%error, "a process of an agent had already exited");
    }
}

/// All running descendants of a process.
#[cfg(unix)]
fn descendants(id: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut unseen = vec![id];
    while let Some(parent) = unseen.pop() {
        let children =
            std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let ids = children.split_whitespace().filter_map(|child| child.parse::<u32>().ok());
        for child in ids.take(MAX_DESCENDANTS) {
            found.push(child);
            unseen.push(child);
        }
        if found.len() >= MAX_DESCENDANTS {
            break;
        }
    }
    found
}

/// More processes than an agent's tools start.
#[cfg(unix)]
const MAX_DESCENDANTS: usize = 10_000;
