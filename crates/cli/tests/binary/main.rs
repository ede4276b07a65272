//! Tests of the real binary: command line, output and sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot continue has failed"
)]

#[cfg(target_os = "linux")]
mod agent;
mod approvals;
mod commands;
mod demo;
#[cfg(target_os = "linux")]
mod endless;
mod gateway_process;
mod http_client;
mod keys;
#[cfg(target_os = "linux")]
mod sandbox;
mod shutdown;
mod stuck_log;
#[cfg(target_os = "linux")]
mod supervisor;
mod tls;
