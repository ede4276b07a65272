//! Signals end the gateway properly.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::http_client::connect;
use crate::running::{Running, toolgate};

fn send(signal: &str, gateway: &Running) {
    let status = Command::new("kill").args([signal, &gateway.child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_signal_ends_the_gateway_with_success() {
    for signal in ["-TERM", "-INT"] {
        let mut gateway = Running::without_config();
        assert_eq!(gateway.get("/healthz").status, 200);
        send(signal, &gateway);
        gateway.rest_of_output();
        let status = gateway.child.wait().unwrap();
        assert!(status.success(), "{signal}: {status}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let home = tempfile::tempdir().unwrap();
    let mut command = toolgate(&home, &["--listen", "127.0.0.1:0"]);
    command.env("TOOLGATE_LOG", "info").stderr(Stdio::piped());
    let mut gateway = Running::spawn(home, command);

    // A request whose body never comes keeps the gateway from ending; `100 Continue` shows that it is waiting.
    let mut stream = connect(gateway.address);
    let address = gateway.address;
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n"
    )
    .unwrap();
    let mut answer = [0; "HTTP/1.1 100 ".len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 ");

    send("-TERM", &gateway);
    let log = BufReader::new(gateway.child.stderr.take().unwrap());
    assert!(
        log.lines().map_while(Result::ok).any(|line| line.contains("stopping")),
        "the first is acknowledged"
    );
    send("-TERM", &gateway);
    assert_eq!(gateway.child.wait().unwrap().code(), Some(130));
}
