//! The supervisor of an agent process. One shell plays the program here, and another one the gateway.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TOOLGATE: &str = env!("CARGO_BIN_EXE_toolgate");

/// The longest a busy machine may take to end a process.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A script that prints its process id and then blocks on a pipe that nobody writes to.
fn blocking_script(folder: &Path) -> String {
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    format!("echo $$; read -r line < {}", pipe.display())
}

fn supervisor(program: &str) -> Child {
    Command::new(TOOLGATE)
        .args(["keep-agent", &std::process::id().to_string(), "/bin/sh", "-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A zombie still has a folder in `/proc`, but its command line is empty.
fn is_running(id: u32) -> bool {
    std::fs::read(Path::new("/proc").join(id.to_string()).join("cmdline")).is_ok_and(|line| !line.is_empty())
}

fn wait_for_exit(processes: &[u32]) {
    let began = Instant::now();
    while let Some(left) = processes.iter().find(|id| is_running(**id)) {
        assert!(began.elapsed() < TIMEOUT, "process {left} of {processes:?} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_supervisor_passes_on_stdin_stdout_and_the_exit_code() {
    let mut supervisor = supervisor("read -r line; echo \"heard $line\"; exit 7");
    supervisor.stdin.as_mut().unwrap().write_all(b"--words\n").unwrap();
    let output = supervisor.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(7), &b"heard --words\n"[..]));
}

#[test]
fn a_program_that_cannot_run_is_an_error_with_the_reason() {
    let supervisor = Command::new(TOOLGATE)
        .args(["keep-agent", &std::process::id().to_string(), "/no/such/program"])
        .stdin(Stdio::piped())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&supervisor.stderr).into_owned();
    assert_eq!(supervisor.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("/no/such/program") && stderr.contains("No such file"), "{stderr}");
}

#[test]
fn a_killed_supervisor_takes_its_program_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = supervisor(&blocking_script(folder.path()));
    let mut line = String::new();
    BufReader::new(supervisor.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let program = line.trim().parse().unwrap();
    assert!(is_running(program));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    wait_for_exit(&[program]);
}

#[test]
fn a_killed_gateway_leaves_neither_supervisor_nor_program_nor_descendants() {
    // The supervisor and the program's child each have their own session, as tools may have.
    let folder = tempfile::tempdir().unwrap();
    let script = blocking_script(folder.path());
    let program = format!("setsid /bin/sh -c '{script}' & {script}");
    let mut gateway = Command::new("/bin/sh")
        .args(["-c", "setsid \"$0\" keep-agent $$ /bin/sh -c \"$1\" <&0 & echo $!; wait", TOOLGATE, &program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let processes: [u32; 3] = std::array::from_fn(|_| lines.next().unwrap().unwrap().parse().unwrap());
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    wait_for_exit(&processes);
}

#[test]
fn a_process_that_left_its_parent_ends_with_the_program() {
    // A daemon: its parent has exited, and it has its own session.
    let folder = tempfile::tempdir().unwrap();
    let script = blocking_script(folder.path());
    let daemon = format!("(setsid /bin/sh -c '{script}' &)");
    let mut left = supervisor(&format!("{daemon}; read -r line"));
    let mut line = String::new();
    BufReader::new(left.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let id = line.trim().parse().unwrap();
    assert!(is_running(id));
    left.stdin.as_mut().unwrap().write_all(b"end\n").unwrap();
    left.wait().unwrap();
    wait_for_exit(&[id]);
}
