//! The service's configuration, in types that cannot hold invalid values. The `cli` reads the files.

use std::net::SocketAddr;
use std::time::Duration;

pub use toolgate_backend::ModelPattern;

use crate::approval::ApprovalConfig;

/// Where the service listens, who may call, and its bounds.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The address it listens on, which a `Host` header may always name.
    pub listen: SocketAddr,
    /// Threads that serve requests, each with its own runtime and connections. At least one runs.
    pub workers: usize,
    /// Names beside `localhost`, the loopback addresses and `listen` that a `Host` header may carry: `gate.lan`, or
    /// `gate.lan:8080` for one port only.
    pub hosts: Vec<String>,
    /// The callers' keys. Without any, only clients on this machine may call.
    pub keys: Vec<Key>,
    /// What agents may do with their own tools.
    pub approvals: ApprovalConfig,
    /// What is kept of conversations.
    pub record: RecordConfig,
    /// The bounds.
    pub limits: Limits,
}

impl GatewayConfig {
    /// For this machine only, without keys, one worker.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            workers: 1,
            hosts: Vec::new(),
            keys: Vec::new(),
            approvals: ApprovalConfig::default(),
            record: RecordConfig::default(),
            limits: Limits::default(),
        }
    }
}

/// What is kept of conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordConfig {
    /// Which sessions.
    pub sessions: RecordedSessions,
    /// How long sessions and answered questions are kept after their last change.
    pub keep: Duration,
}

/// Which sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedSessions {
    /// Those of agents, whose hidden steps no client has.
    Agents,
    /// Those of every model.
    All,
    /// None: what retries need is deleted after [`RETRY_WINDOW`].
    None,
}

/// How long an identical request may count as a retry.
pub const RETRY_WINDOW: Duration = Duration::from_mins(10);

impl Default for RecordConfig {
    fn default() -> Self {
        Self { sessions: RecordedSessions::Agents, keep: Duration::from_hours(30 * 24) }
    }
}

impl RecordConfig {
    /// How long something is kept after its last change.
    pub fn lifetime(&self) -> Duration {
        match self.sessions {
            RecordedSessions::Agents | RecordedSessions::All => self.keep,
            RecordedSessions::None => RETRY_WINDOW,
        }
    }
}

/// A caller's key. The key itself is never kept, only its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The caller's name, under which its data is stored.
    pub name: String,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// The models it may use. An empty list allows none.
    pub models: Vec<ModelPattern>,
}

/// Bounds of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body in bytes.
    pub body_bytes: usize,
    /// How often a silent stream sends a ping (T19).
    pub ping_every: Duration,
    /// How long a stream waits for its first event. Then it begins with status 200 and pings, and an error becomes an
    /// event.
    pub commit_after: Duration,
    /// How long open streams may continue after a shutdown was requested.
    pub shutdown_grace: Duration,
    /// The most open connections of clients, over all workers. Further ones are refused.
    pub connections: usize,
    /// How long clients may take.
    pub deadlines: ClientDeadlines,
}

/// Every wait for a client is bounded by one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDeadlines {
    /// From the first byte of a request to the end of its head, also of HTTP/2's preface. A body is measured in windows
    /// of this length.
    pub head: Duration,
    /// Between two requests on a connection.
    pub idle: Duration,
    /// The fewest bytes per second of a request body, on average over a window.
    pub body_rate: usize,
    /// How long a client may take nothing of a reply that is ready for it.
    pub stalled: Duration,
}

impl Default for ClientDeadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            idle: Duration::from_mins(2),
            body_rate: 128,
            stalled: Duration::from_mins(2),
        }
    }
}

impl Default for Limits {
    /// 32 MiB is what the largest host accepts. Stall watchdogs of clients bite at 20 s, hence pings every 15 s.
    fn default() -> Self {
        Self {
            body_bytes: 32 * 1024 * 1024,
            ping_every: Duration::from_secs(15),
            commit_after: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(20),
            connections: 10_000,
            deadlines: ClientDeadlines::default(),
        }
    }
}
