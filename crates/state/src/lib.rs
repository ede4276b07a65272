//! Persistence: a [`Store`] of responses, usage and agent turns, in SQLite or in memory, chosen by one URL.
//!
//! ```text
//! StoreUrl ── open ──► Arc<dyn Store> ◄── put_response, response … (one call, one durable write)
//!                            ▲
//!      try_record ─► UsageLog ─► UsageLogWorker   (usage: many records, one write)
//! ```
//!
//! No SQL and no database type leaves this crate. It reads neither the clock nor the environment: times and paths are
//! arguments.

mod bus;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
mod housekeeping;
mod memory;
mod question;
mod record;
mod response;
mod rule;
mod session;
mod sqlite;
mod store;
mod time;
mod url;
mod usage;
mod usage_log;

pub use bus::{
    Bus, BusSnapshot, COALESCE_WINDOW, Joined, MAX_BUS_BYTES, MAX_BUS_EVENTS, MAX_DELTA_BYTES, MAX_SESSIONS,
    MAX_SUBSCRIBERS, SessionRow, Subscription, TooManySubscribers,
};
pub use error::StoreError;
pub use housekeeping::{PruneCounts, prune_expired};
pub use memory::MemoryStore;
pub use question::{MAX_QUESTION_BYTES, MAX_QUESTIONS_PER_PAGE, QuestionStore, Resolved, StoredQuestion};
pub use record::{AgentTurnRecord, MAX_RECORD_BYTES, RecordStore, ThreadPart};
pub use response::{
    CallerScope, Deletion, ItemId, MAX_RESPONSE_BYTES, RESPONSE_LIFETIME, ResponseId, ResponseStore,
    StoredItem, StoredResponse,
};
pub use rule::{MAX_STORED_RULES, RuleScope, RuleStore, StoredRule};
pub use session::{
    Callers, CursorError, MAX_PAGE_ROWS, MAX_SESSION_ID_BYTES, SessionChange, SessionCursor, SessionId,
    SessionIdError, SessionPage, SessionRecord, SessionStore, TurnCursor, TurnPage,
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
