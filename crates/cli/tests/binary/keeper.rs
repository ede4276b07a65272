//! The process between the gateway and an agent's program. A shell is the program here, and another one the gateway.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TOOLGATE: &str = env!("CARGO_BIN_EXE_toolgate");

/// The longest a busy machine may take to end a process.
const PATIENCE: Duration = Duration::from_mins(1);

/// A script that says its id and stays, whatever becomes of its input: nobody ever writes to that pipe.
fn stays(folder: &Path) -> String {
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    format!("echo $$; read -r line < {}", pipe.display())
}

fn keeper(program: &str) -> Child {
    Command::new(TOOLGATE)
        .args(["keep-agent", &std::process::id().to_string(), "/bin/sh", "-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A process that has ended and that nobody has asked about yet still has its folder, but no memory.
fn is_running(id: u32) -> bool {
    std::fs::read(Path::new("/proc").join(id.to_string()).join("cmdline")).is_ok_and(|line| !line.is_empty())
}

fn wait_for_the_end_of(processes: &[u32]) {
    let began = Instant::now();
    while let Some(left) = processes.iter().find(|id| is_running(**id)) {
        assert!(began.elapsed() < PATIENCE, "process {left} of {processes:?} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_keeper_passes_on_what_its_program_reads_and_says_and_how_it_ends() {
    let mut keeper = keeper("read -r line; echo \"heard $line\"; exit 7");
    keeper.stdin.as_mut().unwrap().write_all(b"--words\n").unwrap();
    let output = keeper.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(7), &b"heard --words\n"[..]));
}

#[test]
fn a_program_that_cannot_run_is_told_with_the_reason() {
    let keeper = Command::new(TOOLGATE)
        .args(["keep-agent", &std::process::id().to_string(), "/no/such/program"])
        .stdin(Stdio::piped())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&keeper.stderr).into_owned();
    assert_eq!(keeper.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("/no/such/program") && complaint.contains("No such file"), "{complaint}");
}

#[test]
fn a_killed_keeper_takes_its_program_along() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeper = keeper(&stays(folder.path()));
    let mut line = String::new();
    BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let program = line.trim().parse().unwrap();
    assert!(is_running(program));
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    wait_for_the_end_of(&[program]);
}

#[test]
fn a_killed_gateway_leaves_neither_the_keeper_nor_anything_its_program_started() {
    // Both have a session of their own: the keeper as the gateway starts it, the other as a program's tools may.
    let folder = tempfile::tempdir().unwrap();
    let stays = stays(folder.path());
    let program = format!("setsid /bin/sh -c '{stays}' & {stays}");
    let mut gateway = Command::new("/bin/sh")
        .args(["-c", "setsid \"$0\" keep-agent $$ /bin/sh -c \"$1\" <&0 & echo $!; wait", TOOLGATE, &program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let family: [u32; 3] = std::array::from_fn(|_| lines.next().unwrap().unwrap().parse().unwrap());
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    wait_for_the_end_of(&family);
}
