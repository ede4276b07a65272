//! Shutdown by signals.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::gateway_process::{GatewayProcess, toolgate};
use crate::http_client::connect;

fn send(signal: &str, gateway: &GatewayProcess) {
    let status = Command::new("kill").args([signal, &gateway.child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_signal_shuts_the_gateway_down() {
    for signal in ["-TERM", "-INT"] {
        let mut gateway = GatewayProcess::without_config();
        assert_eq!(gateway.get("/healthz").status, 200);
        send(signal, &gateway);
        gateway.rest_of_output();
        let status = gateway.child.wait().unwrap();
        assert!(status.success(), "{signal}: {status}");
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    let home = tempfile::tempdir().unwrap();
    let mut command = toolgate(&home, &["--listen", "127.0.0.1:0"]);
    command.env("TOOLGATE_LOG", "info").stderr(Stdio::piped());
    let mut gateway = GatewayProcess::spawn(home, command);

    // A request without its body keeps the gateway from stopping; `100 Continue` shows that it waits for the body.
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
        "the first signal is logged"
    );
    send("-TERM", &gateway);
    assert_eq!(gateway.child.wait().unwrap().code(), Some(130));
}
