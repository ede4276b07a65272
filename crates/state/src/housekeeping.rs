//! Deletes expired data, so that the store does not grow without bound.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::{RECORD_LIFETIME, RESPONSE_LIFETIME, Store, StoreError, USAGE_LIFETIME, UnixMillis};

/// How many entries one run deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneCounts {
    /// Stored responses.
    pub responses: u64,
    /// Usage records.
    pub usage: u64,
    /// Records of agent turns.
    pub records: u64,
}

/// Deletes everything that has expired by `now`. A failure for one kind does not skip the others; the first error is
/// returned.
pub fn prune_expired(store: &dyn Store, now: UnixMillis) -> BoxFuture<'_, Result<PruneCounts, StoreError>> {
    Box::pin(async move {
        let responses = store.prune_responses(before(now, RESPONSE_LIFETIME)).await;
        let usage = store.prune_usage(before(now, USAGE_LIFETIME)).await;
        let records = store.prune_records(before(now, RECORD_LIFETIME)).await;
        Ok(PruneCounts { responses: responses?, usage: usage?, records: records? })
    })
}

fn before(now: UnixMillis, lifetime: Duration) -> UnixMillis {
    let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(now.0.saturating_sub(lifetime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallerScope, MemoryStore, ResponseId, ResponseStore, StoredResponse};

    #[tokio::test]
    async fn only_expired_entries_are_deleted() {
        let store = MemoryStore::new();
        let scope = CallerScope::new("alice");
        let lifetime = i64::try_from(RESPONSE_LIFETIME.as_millis()).expect("a number");
        for (id, at) in [("old", 0), ("new", 2)] {
            let response = StoredResponse {
                id: ResponseId::new(id),
                previous: None,
                created_at: UnixMillis(at),
                model: "m".to_owned(),
                body: "{}".to_owned(),
            };
            store.put_response(&scope, response, &[]).await.expect("room");
        }
        let pruned = prune_expired(&store, UnixMillis(lifetime + 1)).await.expect("memory never fails");
        assert_eq!(pruned, PruneCounts { responses: 1, usage: 0, records: 0 });
        assert!(store.response(&scope, &ResponseId::new("old")).await.expect("memory").is_none());
        assert!(store.response(&scope, &ResponseId::new("new")).await.expect("memory").is_some());
    }
}
