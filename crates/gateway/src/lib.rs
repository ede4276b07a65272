//! The service: three client APIs over any back end.
//!
//! ```text
//!  accept ─▶ wire ─▶ door (Host, Origin, key) ─▶ turn (client dialect) ─▶ back end
//!              │       (other requests go through hyper and http's routes)
//!              ◀── bytes: relayed, or events written in the client's dialect
//!            then one log line and one usage record
//! ```
//!
//! Each worker thread has a runtime, a router and connections of its own, so a request never changes threads.

mod accept;
mod agent_key;
mod agent_records;
pub mod approval;
mod clock;
pub mod config;
mod console;
mod http;
mod observed;
mod server;
mod service;
mod session_log;
mod signature;
mod tasks;
mod telemetry;
mod turn;
mod wire;

pub use clock::{Clock, SystemClock};
pub use console::{ConsoleKey, NoRandomness};
pub use server::{Gateway, Parts, Running, ServeError};
