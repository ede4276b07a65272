//! Usage: the tokens and times of each turn, and totals over many turns.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::{CallerScope, StoreError, UnixMillis};

/// The longest [`Label`]. Clients choose the model's name, so it needs a bound; real names are a tenth of this.
pub const MAX_LABEL_BYTES: usize = 256;

/// The most rows of one summary: more than anybody reads, in little memory.
pub const MAX_SUMMARY_ROWS: usize = 1_000;

/// How long usage is kept: a year, and a month to evaluate it.
pub const USAGE_LIFETIME: Duration = Duration::from_hours(400 * 24);

/// HTTP statuses from this one up count as failures.
pub(crate) const FIRST_FAILURE_STATUS: u16 = 400;

/// Stores usage records and sums them up.
pub trait UsageStore: Send + Sync {
    /// Stores the records in one transaction: all or none.
    ///
    /// Idempotent: a record whose time and turn id are already stored changes nothing, so that a batch whose outcome
    /// is unknown can be sent again.
    fn record_usage<'a>(&'a self, records: &'a [UsageRecord]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Totals of all records since `since`, one row per group: most turns first, then by name. At most
    /// [`MAX_SUMMARY_ROWS`].
    fn usage_summary(
        &self,
        since: UnixMillis,
        by: UsageGroup,
    ) -> BoxFuture<'_, Result<Vec<UsageTotals>, StoreError>>;

    /// Deletes records from before `older_than` and returns how many.
    fn prune_usage(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// The usage of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// The turn.
    pub turn_id: Uuid,
    /// When the turn began.
    pub at: UnixMillis,
    /// The caller.
    pub caller: CallerScope,
    /// The requested model.
    pub model: Label,
    /// The upstream that replied.
    pub upstream: Label,
    /// The client's dialect.
    pub dialect: Label,
    /// The HTTP status sent to the client.
    pub status: u16,
    /// Input tokens that were not cached.
    pub input: TokenCount,
    /// Input tokens read from the provider's cache.
    pub cache_read: TokenCount,
    /// Input tokens written to the provider's cache.
    pub cache_write: TokenCount,
    /// Output tokens.
    pub output: TokenCount,
    /// From the request to the end of the reply; stored in milliseconds.
    pub duration: Duration,
    /// From the request to the first event, if there was one; stored in milliseconds.
    pub first_event: Option<Duration>,
}

/// What a summary is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGroup {
    /// One row per caller.
    Caller,
    /// One row per model.
    Model,
}

/// One row of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageTotals {
    /// The caller's or the model's name.
    pub group: String,
    /// Turns, including failed ones.
    pub turns: u64,
    /// Turns whose status was an error.
    pub failures: u64,
    /// Input tokens that were not cached.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens.
    pub output: u64,
}

/// The number of tokens of one turn, in 32 bits, so that wrong numbers from an upstream cannot overflow a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TokenCount(u32);

/// A short name in a record: of a model, an upstream or a dialect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label(Arc<str>);

impl TokenCount {
    /// The count that an upstream reported, limited to 32 bits.
    pub fn saturating(count: u64) -> Self {
        Self(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The count.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Label {
    /// The text, shared instead of copied.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The text, truncated with an ellipsis to [`MAX_LABEL_BYTES`].
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        const ELLIPSIS: &str = "…";
        let text = text.into();
        if text.len() <= MAX_LABEL_BYTES {
            return Self(text);
        }
        let start = &text[..text.floor_char_boundary(MAX_LABEL_BYTES - ELLIPSIS.len())];
        Self(format!("{start}{ELLIPSIS}").into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Sorts rows in the order that every store returns them in.
pub(crate) fn busiest_first(mut rows: Vec<UsageTotals>) -> Vec<UsageTotals> {
    rows.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.group.cmp(&b.group)));
    rows.truncate(MAX_SUMMARY_ROWS);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_is_truncated_at_a_character_boundary() {
        assert_eq!(Label::new("gpt-4o-mini").as_str(), "gpt-4o-mini");
        let longest = "x".repeat(MAX_LABEL_BYTES);
        assert_eq!(Label::new(longest.as_str()).as_str(), longest);
        let truncated = Label::new("é".repeat(MAX_LABEL_BYTES));
        assert_eq!(truncated.as_str(), format!("{}…", "é".repeat(126)));
    }

    #[test]
    fn a_token_count_saturates() {
        assert_eq!(TokenCount::saturating(7).get(), 7);
        assert_eq!(TokenCount::saturating(u64::MAX).get(), u32::MAX);
    }
}
