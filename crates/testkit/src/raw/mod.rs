//! Peers that send exactly the bytes a test names, in the order it names them.
//!
//! [`RawHost`] is a host whose connections are scripts of [`RawStep`]s; [`RawClient`] is a client that the test drives.
//! Neither builds HTTP of its own, so both can send what no HTTP library would.

mod client;
mod host;
mod message;
mod play;
mod step;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use client::RawClient;
pub use host::{RawConnection, RawHost};
pub use message::{RawMessage, messages};
pub use play::RawEnd;
pub use step::RawStep;

/// How long a test waits for something that a working gateway does at once, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(20);
