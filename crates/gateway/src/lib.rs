//! The service: three client APIs over any back end.
//!
//! ```text
//!  socket ─▶ door (Host, Origin, key) ─▶ http (path ─▶ client dialect) ─▶ turn ─▶ back end
//!                                                                          │
//!            bytes ◀── relayed, or events written in the client's dialect ─┘  one line in the log, one usage record
//! ```
//!
//! Each worker thread has a runtime, a router and connections of its own, so a request never changes threads.

mod agent_records;
pub mod approval;
mod clock;
pub mod config;
mod house_key;
mod http;
mod server;
mod service;
mod tasks;
mod telemetry;
mod turn;
mod wire;

pub use clock::{Clock, SystemClock};
pub use server::{Gateway, Parts, Running, ServeError};
