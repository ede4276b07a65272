//! What is remembered: a [`Store`] of responses, usage and agents' turns, over SQLite or memory, chosen by one URL.
//!
//! ```text
//! StoreUrl ── open ──► Arc<dyn Store> ◄── put_response, response … (one call, one durable write)
//!                            ▲
//!      try_record ─► UsageLog ─► UsageLogWorker   (usage: many records, one write)
//! ```
//!
//! No SQL and no database type leaves this crate. It reads no wall clock and no environment: times and
//! places come in as arguments.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
mod housekeeping;
mod memory;
mod record;
mod response;
mod sqlite;
mod store;
mod time;
mod url;
mod usage;
mod usage_log;

pub use error::StoreError;
pub use housekeeping::{Forgotten, forget_old};
pub use memory::MemoryStore;
pub use record::{
    MAX_RECORD_BYTES, MAX_SESSION_ID_BYTES, RECORD_LIFETIME, RecordStore, SessionId, SessionIdError,
    TurnRecord,
};
pub use response::{
    CallerScope, Deletion, MAX_RESPONSE_BYTES, RESPONSE_LIFETIME, ResponseId, ResponseStore, StoredResponse,
};
pub use sqlite::SqliteStore;
pub use store::{Store, open};
pub use time::UnixMillis;
pub use url::{StoreUrl, StoreUrlError};
pub use usage::{
    Label, MAX_LABEL_BYTES, MAX_SUMMARY_ROWS, TokenCount, USAGE_LIFETIME, UsageGroup, UsageRecord,
    UsageStore, UsageTotals,
};
pub use usage_log::{FLUSH_EVERY, QUEUE_RECORDS, ShutdownError, UsageLog, UsageLogWorker, WorkerEnd};
