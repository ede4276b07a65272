//! A child process that cannot outlive its parent: the tests and the benchmark start gateways and
//! scripted models with it, and leave none behind, however they end.
//!
//! The program runs below a small shell that waits on its own stdin. That pipe closes when the [`Tethered`]
//! is dropped and also when the parent is killed, and then the shell ends the program.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Error, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long a program may take until it says where it listens.
pub const READY_LIMIT: Duration = Duration::from_secs(30);

/// Lines kept for the error message when a program does not come up.
const LINES_KEPT: usize = 20;

/// Lines that may wait between the reader threads and the parent; past it they go to the log only.
const LINES_QUEUED: usize = 256;

/// Prints the program's process id, lets go of the output (so that its end is seen), waits for the end of its
/// own input, and kills the program: a polite signal could be ignored, and nobody would be left to insist.
/// The program reads the same pipe, for those that end by themselves when it closes.
const SHELL: &str = r#"
exec 3<&0
"$0" "$@" <&3 3<&- &
echo "pid $!"
exec >&- 2>&-
while read -r _; do :; done
kill -9 "$!"
wait "$!"
"#;

/// A running program, ended and awaited when dropped.
pub struct Tethered {
    shell: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: VecDeque<String>,
    pid: u32,
    log: PathBuf,
}

impl Tethered {
    /// Starts `program`; what it prints goes to `log`, and its lines can be awaited with
    /// [`Tethered::wait_for_url`].
    pub fn start(program: &Path, arguments: &[&str], log: &Path) -> Result<Self, Error> {
        let log_file = File::create(log).map_err(|cause| doing("creating the log", log, &cause))?;
        let mut shell = Command::new("sh")
            .arg("-c")
            .arg(SHELL)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|cause| doing("starting", program, &cause))?;
        let (sender, lines) = sync_channel(LINES_QUEUED);
        if let Some(stderr) = shell.stderr.take() {
            copy_lines(stderr, log_file.try_clone()?, sender.clone());
        }
        if let Some(stdout) = shell.stdout.take() {
            copy_lines(stdout, log_file, sender);
        }
        let stdin = shell.stdin.take();
        let mut program = Self { shell, stdin, lines, seen: VecDeque::new(), pid: 0, log: log.to_owned() };
        program.pid = program.wait_for(|line| line.strip_prefix("pid ")?.parse().ok())?;
        Ok(program)
    }

    /// The process id of the program itself, not of the shell above it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The first address of the form `http://127.0.0.1:PORT…` that the program prints.
    pub fn wait_for_url(&mut self) -> Result<String, Error> {
        self.wait_for(url_in)
    }

    /// Lines of the program and of the shell come in any order, so those already seen are looked at first.
    fn wait_for<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
        if let Some(found) = self.seen.iter().find_map(|line| wanted(line)) {
            return Ok(found);
        }
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let why = match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let found = wanted(&line);
                    self.remember(line);
                    if let Some(found) = found {
                        return Ok(found);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => format!("it was not ready within {READY_LIMIT:?}"),
                Err(RecvTimeoutError::Disconnected) => "it ended".to_owned(),
            };
            let said: Vec<&str> = self.seen.iter().map(String::as_str).collect();
            let log = self.log.display();
            return Err(Error::other(format!("{why}; its log is {log}, and it said:\n{}", said.join("\n"))));
        }
    }

    fn remember(&mut self, line: String) {
        if self.seen.len() == LINES_KEPT {
            self.seen.pop_front();
        }
        self.seen.push_back(line);
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        // Closing the pipe is the signal; the shell then stops the program and ends.
        drop(self.stdin.take());
        if let Err(cause) = self.shell.wait() {
            // Nobody is left to return this to, and a process left behind must not go unnoticed.
            let note = format!("could not wait for process {}: {cause}\n", self.pid);
            if std::io::stderr().write_all(note.as_bytes()).is_err() {}
        }
    }
}

/// Finds `http://127.0.0.1:PORT` and the path after it in a line meant for people.
fn url_in(line: &str) -> Option<String> {
    let start = line.find("http://127.0.0.1:")?;
    // In brackets a program names the hosts it talks to.
    if line[..start].ends_with('(') {
        return None;
    }
    let rest = &line[start..];
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ":/._-".contains(c))).unwrap_or(rest.len());
    let url = rest[..end].trim_end_matches(['/', '.', ':']);
    Some(url.to_owned())
}

fn copy_lines(from: impl Read + Send + 'static, mut log: File, to: SyncSender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { return };
            if writeln!(log, "{line}").is_err() {
                return;
            }
            // A full queue means that the parent has stopped listening: the log is enough then.
            if to.try_send(line).is_err() {}
        }
    });
}

fn doing(what: &str, path: &Path, cause: &Error) -> Error {
    Error::new(cause.kind(), format!("{what} {}: {cause}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Result<Tethered, Error> {
        let log = std::env::temp_dir().join(format!("tether-{}-{}.log", std::process::id(), script.len()));
        Tethered::start(Path::new("/bin/sh"), &["-c", script], &log)
    }

    #[test]
    fn an_address_is_found_in_a_sentence() {
        assert_eq!(
            url_in("ready: try http://127.0.0.1:8787/v1, now").as_deref(),
            Some("http://127.0.0.1:8787/v1")
        );
        assert_eq!(url_in("console http://127.0.0.1:99/").as_deref(), Some("http://127.0.0.1:99"));
        assert_eq!(url_in("listening"), None);
    }

    #[test]
    fn a_program_is_gone_when_its_owner_is_dropped() {
        let mut program = start("echo http://127.0.0.1:1; exec sleep 1000").unwrap();
        assert_eq!(program.wait_for_url().unwrap(), "http://127.0.0.1:1");
        let alive = format!("/proc/{}", program.pid());
        assert!(Path::new(&alive).exists());
        drop(program);
        assert!(!Path::new(&alive).exists());
    }

    #[test]
    fn a_program_that_ends_at_once_is_an_error_with_its_words() {
        let error = start("echo no such key >&2").unwrap().wait_for_url().unwrap_err().to_string();
        assert!(error.contains("it ended") && error.contains("no such key"), "{error}");
    }
}
