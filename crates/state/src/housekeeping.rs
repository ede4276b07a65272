//! Deletes expired data, so that the store does not grow without bound.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::{RESPONSE_LIFETIME, Store, StoreError, USAGE_LIFETIME, UnixMillis};

/// How many entries one run deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneCounts {
    /// Stored responses.
    pub responses: u64,
    /// Usage records.
    pub usage: u64,
    /// Turns of sessions.
    pub turns: u64,
    /// Resolved questions.
    pub questions: u64,
    /// Rules that have expired or were revoked.
    pub rules: u64,
}

/// Deletes everything that has expired by `now`; sessions, resolved questions and rules that are over expire
/// `conversations` after their last change. A failure for one kind does not skip the others; the first error is returned.
pub fn prune_expired(
    store: &dyn Store,
    now: UnixMillis,
    conversations: Duration,
) -> BoxFuture<'_, Result<PruneCounts, StoreError>> {
    Box::pin(async move {
        let responses = store.prune_responses(before(now, RESPONSE_LIFETIME)).await;
        let usage = store.prune_usage(before(now, USAGE_LIFETIME)).await;
        let oldest = before(now, conversations);
        let turns = store.prune_records(oldest).await;
        let questions = store.prune_questions(oldest).await;
        let rules = store.prune_rules(oldest).await;
        Ok(PruneCounts {
            responses: responses?,
            usage: usage?,
            turns: turns?,
            questions: questions?,
            rules: rules?,
        })
    })
}

fn before(now: UnixMillis, lifetime: Duration) -> UnixMillis {
    let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(now.0.saturating_sub(lifetime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{response, turn_record};
    use crate::{CallerScope, MemoryStore, RecordStore, ResponseId, ResponseStore};

    const DAY: Duration = Duration::from_hours(24);

    #[tokio::test]
    async fn only_expired_entries_are_deleted() {
        let store = MemoryStore::new();
        let scope = CallerScope::new("alice");
        let lifetime = i64::try_from(RESPONSE_LIFETIME.as_millis()).unwrap();
        for (number, (id, at)) in [("old", 0), ("new", 2)].into_iter().enumerate() {
            store.put_response(&scope, response(id, at), &[]).await.unwrap();
            let turn = turn_record(number as u64, id, lifetime - 86_400_000 + at);
            store.put_record(&scope, turn).await.unwrap();
        }
        let pruned = prune_expired(&store, UnixMillis(lifetime + 1), DAY).await.unwrap();
        assert_eq!(pruned, PruneCounts { responses: 1, turns: 1, ..PruneCounts::default() });
        for (id, number, is_kept) in [("old", 0, false), ("new", 1, true)] {
            let response = store.response(&scope, &ResponseId::new(id)).await.unwrap();
            let turn = store.record_for_request(&scope, turn_record(number, id, 0).key).await.unwrap();
            assert_eq!((response.is_some(), turn.is_some()), (is_kept, is_kept), "{id}");
        }
    }
}
