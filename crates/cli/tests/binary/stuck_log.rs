//! A gateway whose log is not read keeps serving.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway_process::{GatewayProcess, toolgate};

/// Each request logs some 400 bytes; together they are more than the pipe (64 KiB) and the queue (256 KiB) hold.
const REQUESTS: usize = 1_500;
const LONG_MODEL_NAME: usize = 200;

/// The slowest answer a busy machine may give; a gateway that waits for its log would never answer.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(10);

/// Starts a gateway whose stderr is a pipe, fills the pipe and the queue, and checks each answer.
fn gateway_with_full_log() -> GatewayProcess {
    let home = tempfile::tempdir().unwrap();
    let mut command = toolgate(&home, &["--listen", "127.0.0.1:0", "--workers", "1"]);
    command.env("TOOLGATE_LOG", "info").stderr(Stdio::piped());
    let gateway = GatewayProcess::spawn(home, command);
    let ask = |model: &str| -> Value {
        json!({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]})
    };
    let unknown = ask(&"x".repeat(LONG_MODEL_NAME));
    for _ in 0..REQUESTS {
        let began = Instant::now();
        assert_eq!(gateway.post("/v1/messages", &unknown).status, 404);
        assert!(began.elapsed() < MAX_ANSWER_TIME);
    }
    assert_eq!(gateway.post("/v1/messages", &ask("demo")).status, 200);
    gateway
}

#[test]
fn requests_are_served_while_stderr_is_stuck_and_dropped_lines_are_reported() {
    let mut gateway = gateway_with_full_log();
    let log = BufReader::new(gateway.child.stderr.take().unwrap());
    let reports = |line: &String| line.contains("log lines were dropped") && line.contains("lines=");
    assert!(log.lines().map_while(Result::ok).any(|line| reports(&line)));
}

#[cfg(unix)]
#[test]
fn a_stuck_stderr_does_not_prevent_shutdown() {
    let mut gateway = gateway_with_full_log();
    let id = gateway.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(gateway.child.wait().unwrap().success());
}
