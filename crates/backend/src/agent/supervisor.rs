//! The supervisor of an agent process. It runs between the gateway and the program and cleans up when the gateway is
//! killed.
//!
//! A program whose stdin closes answers its pending calls with errors of its own and calls its model again, which costs
//! money for nothing. The supervisor therefore keeps the write end of stdin open, and kills the program with all its
//! descendants when the gateway is gone. If the supervisor itself is killed, the kernel kills the program: the child
//! requests a parent-death signal before it executes the program.

use std::ffi::OsString;
use std::io;

#[cfg(target_os = "linux")]
use super::sandbox::Sandbox;

/// The hidden subcommand that makes the gateway's executable a supervisor. Its arguments are the gateway's process id,
/// the agent's program and the program's arguments, and before them the option [`SANDBOX_OPTION`].
pub const SUPERVISE_COMMAND: &str = "keep-agent";

/// The hidden subcommand that executes the agent's program. It takes the same arguments, but the supervisor's process
/// id.
pub const EXEC_COMMAND: &str = "become-agent";

/// The option with the program's sandbox, as JSON. An argument and not a variable: the program inherits those.
pub(super) const SANDBOX_OPTION: &str = "--sandbox";

/// A program to run under supervision.
#[derive(Clone, Debug)]
pub struct SupervisedProgram {
    /// Its sandbox, as the gateway wrote it; `None` for no restrictions.
    pub sandbox: Option<String>,
    /// Its path.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// How a process starts its own executable again. A path could point to another version after an update.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Runs the program and returns its exit code. The program inherits the supervisor's stdin, stdout and stderr. When it
/// exits, everything that it started is ended.
#[cfg(target_os = "linux")]
pub fn supervise(gateway: u32, supervised: &SupervisedProgram) -> io::Result<u8> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, getpid, pidfd_open, set_child_subreaper};

    // Opening the read end of a pipe for writing gives its write end.
    let stdin_writer = std::fs::OpenOptions::new().write(true).open("/proc/self/fd/0")?;
    let gateway_fd = pidfd_open(pid(gateway)?, PidfdFlags::empty())?;
    // Checked after opening the pidfd: before that, the id may have been reused by another process.
    check_parent(gateway)?;
    // A process whose parent exits becomes a child of the supervisor, so that it can be found and ended.
    set_child_subreaper(Some(getpid()))?;
    let SupervisedProgram { sandbox, program, arguments } = supervised;
    let child = std::process::Command::new(OWN_PROGRAM)
        .arg(EXEC_COMMAND)
        .args(sandbox.iter().flat_map(|sandbox| [SANDBOX_OPTION, sandbox]))
        .arg(std::process::id().to_string())
        .arg(program)
        .args(arguments)
        .spawn()?;
    let child = pid(child.id())?;
    let child_fd = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let mut watched = [PollFd::new(&gateway_fd, PollFlags::IN), PollFd::new(&child_fd, PollFlags::IN)];
        match poll(&mut watched, Some(&REAP_INTERVAL)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [gateway_exited, child_exited] = watched.map(|watched| !watched.revents().is_empty());
        if gateway_exited && !child_exited {
            // The supervisor belongs to the same process group, so this kills it too.
            super::process::kill_process_tree(std::process::id());
        }
        if let Some(status) = reap(child)? {
            drop(stdin_writer);
            super::process::kill_descendants(std::process::id());
            return Ok(exit_code(status));
        }
    }
}

/// How often processes are reaped that outlived their parents. They occupy nothing but an entry in a table.
#[cfg(target_os = "linux")]
const REAP_INTERVAL: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };

/// Reaps all children that have exited. Returns the status of the program if it is among them.
#[cfg(target_os = "linux")]
fn reap(program: rustix::process::Pid) -> io::Result<Option<rustix::process::WaitStatus>> {
    use rustix::process::{WaitOptions, wait};

    while let Some((exited, status)) = wait(WaitOptions::NOHANG)? {
        if exited == program {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

/// Replaces this process with the program in its sandbox, which dies with its supervisor. Returns only on failure.
#[cfg(target_os = "linux")]
pub fn exec_supervised(supervisor: u32, supervised: &SupervisedProgram) -> io::Error {
    use std::os::unix::process::CommandExt;

    let SupervisedProgram { sandbox, program, arguments } = supervised;
    let restricted = sandbox.as_deref().map_or(Ok(()), restrict);
    match restricted.and_then(|()| tie_to_parent(supervisor)) {
        Ok(()) => std::process::Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}

#[cfg(target_os = "linux")]
fn restrict(sandbox: &str) -> io::Result<()> {
    let sandbox: Sandbox = serde_json::from_str(sandbox)?;
    sandbox.enforce().map_err(|error| io::Error::other(format!("entering the sandbox failed: {error}")))
}

/// Makes the kernel kill this process when its parent dies. Called last: a change of privileges may undo it.
#[cfg(target_os = "linux")]
fn tie_to_parent(parent: u32) -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};

    // Set before checking the parent: if the parent dies in between, one of the two notices.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    check_parent(parent)
}

#[cfg(target_os = "linux")]
fn check_parent(parent: u32) -> io::Result<()> {
    if rustix::process::getppid() == Some(pid(parent)?) {
        Ok(())
    } else {
        Err(io::Error::other("the parent process is gone"))
    }
}

/// A program that was killed by a signal has no exit code; as in shells it becomes 128 plus the signal.
#[cfg(target_os = "linux")]
fn exit_code(status: rustix::process::WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(target_os = "linux")]
fn pid(id: u32) -> io::Result<rustix::process::Pid> {
    let pid = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    pid.ok_or_else(|| io::Error::other(format!("{id} is not a valid process id")))
}

/// Linux only. On other systems the program must notice by itself that its stdin is closed.
#[cfg(not(target_os = "linux"))]
pub fn supervise(_: u32, _: &SupervisedProgram) -> io::Result<u8> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Linux only.
#[cfg(not(target_os = "linux"))]
pub fn exec_supervised(_: u32, _: &SupervisedProgram) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
