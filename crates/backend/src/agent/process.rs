//! A child process and its pipes. Reading, writing and stderr go on side by side, so that neither side can block the
//! other; nothing outlives us.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use toolgate_dialect::frame::{FrameError, LineDecoder, MAX_FRAME_BYTES};

/// How much of what the program complains about is kept for error messages.
const MAX_STDERR_BYTES: usize = 4 * 1024;

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;

/// How long the program may take to end its own tools before it is ended itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// A running program.
pub(super) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    unwritten: VecDeque<Bytes>,
    lines: LineDecoder,
    read: BytesMut,
    complaint: BytesMut,
    complained: VecDeque<u8>,
}

/// What happened at the pipes.
pub(super) enum PipeEvent {
    /// There may be new lines.
    Read,
    /// Nothing to react to.
    Quiet,
    /// The program has closed its output: it is ending.
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
            complaint: BytesMut::new(),
            complained: VecDeque::new(),
        })
    }

    /// Puts a line on its way.
    pub(super) fn write(&mut self, line: String) {
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        self.unwritten.push_back(bytes.into());
    }

    /// Waits until something happens at the pipes. May be dropped at any time without losing a byte.
    pub(super) async fn happening(&mut self) -> PipeEvent {
        let Self { stdin, stdout, stderr, unwritten, lines, read, complaint, complained, .. } = self;
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
                    // It has closed its input: its output tells the rest.
                    *stdin = None;
                    unwritten.clear();
                }
                PipeEvent::Quiet
            }
            count = read_complaint(stderr.as_mut(), complaint), if stderr.is_some() => {
                if matches!(count, Ok(0) | Err(_)) {
                    *stderr = None;
                }
                complained.extend(complaint.iter());
                complaint.clear();
                let excess = complained.len().saturating_sub(MAX_STDERR_BYTES);
                complained.drain(..excess);
                PipeEvent::Quiet
            }
        }
    }

    /// The next whole line.
    pub(super) fn next_line(&mut self) -> Result<Option<&str>, FrameError> {
        self.lines.next_line()
    }

    /// The last of what the program complained about.
    pub(super) fn complaint(&self) -> String {
        let bytes: Vec<u8> = self.complained.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Ends the program and everything it started. Gives its status if it had ended by itself.
    pub(super) async fn end(mut self) -> Option<ExitStatus> {
        let ended = self.child.try_wait().ok().flatten();
        // A closed input is the program's own sign to leave; the signal reaches its tools as well.
        self.stdin = None;
        signal_group(&self.child, Signal::Terminate);
        if tokio::time::timeout(FAREWELL, self.child.wait()).await.is_err() {
            signal_group(&self.child, Signal::Kill);
            if let Err(error) = self.child.kill().await {
                tracing::warn!(%error, "an agent's process could not be ended");
            }
        }
        ended
    }

    /// The status of a program that has closed its output.
    pub(super) async fn status(&mut self) -> Option<ExitStatus> {
        self.stdin = None;
        tokio::time::timeout(FAREWELL, self.child.wait()).await.ok()?.ok()
    }

    /// Its id at the system.
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

async fn read_complaint(stderr: Option<&mut ChildStderr>, into: &mut BytesMut) -> io::Result<usize> {
    match stderr {
        Some(stderr) => stderr.read_buf(into).await,
        None => std::future::pending().await,
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

#[cfg(unix)]
fn signal_group(child: &Child, signal: Signal) {
    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    // A child that was waited for has no id any more, so no stranger is ever hit.
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group
        && let Err(error) = rustix::process::kill_process_group(group, signal)
    {
        tracing::debug!(%error, "an agent's process group was gone already");
    }
}

#[cfg(not(unix))]
fn signal_group(_: &Child, _: Signal) {}
