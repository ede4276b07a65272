//! The real binary from outside: started as people start it, talked to over a socket.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[cfg(target_os = "linux")]
mod agent;
mod callers;
mod commands;
mod demo;
#[cfg(target_os = "linux")]
mod endless;
mod http_client;
mod running;
mod shutdown;
mod stuck_log;
#[cfg(target_os = "linux")]
mod supervisor;
mod tls;
