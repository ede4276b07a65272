//! Signals end the gateway properly.

#![cfg(unix)]

use std::process::Command;

use crate::running::Running;

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
