//! Back ends: a back end turns a [`Turn`] into a stream of events, or into the host's own bytes where the client
//! speaks the same dialect.
//!
//! ```text
//!  model name ─Router─▶ Route ─┬─ http::Upstream  request ─▶ bytes ─▶ host ─▶ frames ─▶ events
//!                              │                  (same dialect: original bytes ─▶ host ─▶ bytes, metered)
//!                              ├─ prompted        tools as text around either of these two
//!                              ├─ agent           Claude Code as a child process
//!                              └─ demo            a scripted model inside the binary
//! ```
//!
//! Dropping what a back end gave cancels the turn at the host at once (T20).

mod agent;
pub mod config;
mod demo;
mod host_headers;
mod http;
mod idle_timer;
mod nearest;
mod pattern;
mod prompted;
mod receipt;
mod route;
mod stats;
mod turn;

pub use agent::{
    AgentRecord, AgentRecordStore, Agents, Decider, DenyAll, EXEC_COMMAND, GatewayAccess, NoObserver,
    NoRecords, Observer, ProcessKey, ReplyDelivery, SUPERVISE_COMMAND, SandboxSupport, SupervisedProgram,
    TranscriptPart, exec_supervised, supervise,
};
pub use host_headers::HostHeaders;
pub use http::{AssembleError, Tls};
pub use idle_timer::IdleTimer;
pub use nearest::nearest;
pub use pattern::ModelPattern;
pub use receipt::{DeliveryObserver, Receipt};
pub use route::{Route, Router};
pub use stats::{StatsRegistry, UpstreamStats};
pub use turn::{
    Answer, AnswerBody, Backend, Batch, ClientTurn, EventStream, Recoveries, Relay, RelayStream, RelayTurn,
    ReplyOrigin, RequestIdentity, RetryHint, SessionSlot, Turn, WholeBody,
};
