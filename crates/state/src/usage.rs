//! Usage: what each turn cost, and the sums that the console and the operator look at.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::{CallerScope, StoreError, UnixMillis};

/// The longest text kept as a [`Label`]. A client chooses the model's name, so it needs a bound; real names
/// have a tenth of this.
pub const MAX_LABEL_BYTES: usize = 256;

/// The most rows one summary has: more than anybody reads, and little memory.
pub const MAX_SUMMARY_ROWS: usize = 1_000;

/// How long usage is kept: a year can be compared with the one before it while it is being closed.
pub const USAGE_LIFETIME: Duration = Duration::from_hours(400 * 24);

/// HTTP statuses from here on count as failures.
pub(crate) const FIRST_FAILURE_STATUS: u16 = 400;

/// Keeps usage records and sums them up.
pub trait UsageStore: Send + Sync {
    /// Stores the records in one transaction: all or none.
    ///
    /// Idempotent: a record whose time and turn id are already stored changes nothing, so that a batch whose outcome
    /// is unknown can be sent again.
    fn record_usage<'a>(&'a self, records: &'a [UsageRecord]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Sums of all records from `since` on, busiest group first, groups as busy by name; at most
    /// [`MAX_SUMMARY_ROWS`].
    fn usage_summary(
        &self,
        since: UnixMillis,
        by: UsageGroup,
    ) -> BoxFuture<'_, Result<Vec<UsageTotals>, StoreError>>;

    /// Forgets records from before `older_than`, and says how many those were.
    fn prune_usage(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// What one turn cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// The turn.
    pub turn_id: Uuid,
    /// When it began.
    pub at: UnixMillis,
    /// Who asked.
    pub caller: CallerScope,
    /// The model asked for.
    pub model: Label,
    /// The upstream that answered.
    pub upstream: Label,
    /// The client's dialect.
    pub dialect: Label,
    /// The HTTP status the client got.
    pub status: u16,
    /// Input tokens that no cache held.
    pub input: TokenCount,
    /// Input tokens read from the provider's cache.
    pub cache_read: TokenCount,
    /// Input tokens written to the provider's cache.
    pub cache_write: TokenCount,
    /// Output tokens.
    pub output: TokenCount,
    /// From request to the end of the reply; kept in milliseconds.
    pub duration: Duration,
    /// From request to the first event, if one came; kept in milliseconds.
    pub first_event: Option<Duration>,
}

/// What a summary has one row for.
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
    /// Turns, failed ones included.
    pub turns: u64,
    /// Turns that the client saw fail.
    pub failures: u64,
    /// Input tokens that no cache held.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens.
    pub output: u64,
}

/// A number of tokens in one turn.
///
/// Thirty-two bits, so that no upstream, however wrong its numbers, can make a sum overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TokenCount(u32);

/// A short text that names something in a record: a model, an upstream, a dialect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label(Arc<str>);

impl TokenCount {
    /// The count an upstream reported; beyond four thousand million, which no model reaches, it stays there.
    pub fn saturating(count: u64) -> Self {
        Self(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The count.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Label {
    /// Takes the text, cut after [`MAX_LABEL_BYTES`] and then ended with an ellipsis to show it.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        const ELLIPSIS: &str = "…";
        let text = text.into();
        if text.len() <= MAX_LABEL_BYTES {
            return Self(text);
        }
        let kept = &text[..text.floor_char_boundary(MAX_LABEL_BYTES - ELLIPSIS.len())];
        Self(format!("{kept}{ELLIPSIS}").into())
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

/// The order every store gives its rows in.
pub(crate) fn busiest_first(mut rows: Vec<UsageTotals>) -> Vec<UsageTotals> {
    rows.sort_by(|a, b| b.turns.cmp(&a.turns).then_with(|| a.group.cmp(&b.group)));
    rows.truncate(MAX_SUMMARY_ROWS);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_is_cut_between_characters_and_shows_it() {
        assert_eq!(Label::new("gpt-4o-mini").as_str(), "gpt-4o-mini");
        let longest = "x".repeat(MAX_LABEL_BYTES);
        assert_eq!(Label::new(longest.as_str()).as_str(), longest);
        let cut = Label::new("é".repeat(MAX_LABEL_BYTES));
        assert_eq!(cut.as_str(), format!("{}…", "é".repeat(126)));
    }

    #[test]
    fn an_absurd_token_count_saturates() {
        assert_eq!(TokenCount::saturating(7).get(), 7);
        assert_eq!(TokenCount::saturating(u64::MAX).get(), u32::MAX);
    }
}
