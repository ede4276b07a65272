//! The keeper of an agent's process: a process between the gateway and the program, for the moment when the gateway is
//! killed.
//!
//! A program that finds its stdin_writer closed answers the calls it waits for with errors of its own and asks its model on,
//! which nobody wants and somebody pays for. So the keeper holds the other end of that stdin_writer open, and when the gateway
//! is gone it ends the program and everything it started. A keeper that is killed itself takes its program along: the
//! system sees to that, as it was asked to by the process that then became the program.

use std::ffi::OsString;
use std::io;

/// The word by which the gateway's own program is asked to be a keeper. The gateway's process id, the agent's program
/// and that one's arguments come after it.
pub const SUPERVISE_COMMAND: &str = "keep-agent";

/// The word by which it is asked to become the agent's program. The keeper's process id comes first here.
pub const EXEC_COMMAND: &str = "become-agent";

/// How a process starts the program it runs itself once more. Not by its path: there may be another program by now, as
/// after an update.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Starts the program and returns the code to end with, which is the program's own. Everything passes between it and the gateway untouched.
#[cfg(target_os = "linux")]
pub fn supervise(gateway: u32, program: &OsString, arguments: &[OsString]) -> io::Result<u8> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};

    // Opening one's own stdin_writer for writing gives the other end of the pipe.
    let stdin_writer = std::fs::OpenOptions::new().write(true).open("/proc/self/fd/0")?;
    let gateway_fd = pidfd_open(pid(gateway)?, PidfdFlags::empty())?;
    // Asked after it was opened: until now its id may have gone to another process.
    check_parent(gateway)?;
    let mut child = std::process::Command::new(OWN_PROGRAM)
        .arg(EXEC_COMMAND)
        .arg(std::process::id().to_string())
        .arg(program)
        .args(arguments)
        .spawn()?;
    let child_fd = pidfd_open(pid(child.id())?, PidfdFlags::empty())?;
    loop {
        let mut watched = [PollFd::new(&gateway_fd, PollFlags::IN), PollFd::new(&child_fd, PollFlags::IN)];
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [gateway_exited, child_exited] = watched.map(|watched| !watched.revents().is_empty());
        if gateway_exited && !child_exited {
            // The keeper is of the same group, so this ends it too.
            super::process::kill_process_tree(std::process::id());
        }
        if gateway_exited || child_exited {
            drop(stdin_writer);
            return Ok(exit_code(child.wait()?));
        }
    }
}

/// Becomes the program, which dies with its keeper. Returns only if that cannot be.
#[cfg(target_os = "linux")]
pub fn exec_supervised(supervisor: u32, program: &OsString, arguments: &[OsString]) -> io::Error {
    use rustix::process::{Signal, set_parent_process_death_signal};
    use std::os::unix::process::CommandExt;

    // Asked for before the look at the keeper: one that dies in between is noticed either way.
    let tied = set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
    match tied.and_then(|()| check_parent(supervisor)) {
        Ok(()) => std::process::Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}

#[cfg(target_os = "linux")]
fn check_parent(parent: u32) -> io::Result<()> {
    if rustix::process::getppid() == Some(pid(parent)?) {
        Ok(())
    } else {
        Err(io::Error::other("the process that started this one is gone already"))
    }
}

/// A program that was killed has no code: shells add its signal to 128.
#[cfg(target_os = "linux")]
fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(target_os = "linux")]
fn pid(id: u32) -> io::Result<rustix::process::Pid> {
    let pid = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    pid.ok_or_else(|| io::Error::other(format!("{id} is no process id")))
}

/// Elsewhere the program has to notice by itself that its stdin_writer is closed.
#[cfg(not(target_os = "linux"))]
pub fn supervise(_: u32, _: &OsString, _: &[OsString]) -> io::Result<u8> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Without keepers there is nobody to be kept by.
#[cfg(not(target_os = "linux"))]
pub fn exec_supervised(_: u32, _: &OsString, _: &[OsString]) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
