//! Saves the records of agent turns in the store.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolgate_backend::{AgentRecord, AgentRecordStore, ReplyDelivery};
use toolgate_model::lineage::PrefixHash;
use toolgate_state::{AgentTurnRecord, CallerScope, SessionId, Store, StoreError};
use uuid::Uuid;

use crate::clock::Clock;
use crate::config::RETRY_WINDOW;

/// Agent records in the store.
pub(crate) struct StoredRecords {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl AgentRecordStore for StoredRecords {
    fn save(&self, caller: &str, record: AgentRecord) -> BoxFuture<'static, ()> {
        let (store, scope, at) = (Arc::clone(&self.store), CallerScope::new(caller), self.clock.now());
        Box::pin(async move {
            let AgentRecord { run, key, after, session, steps, reply, delivery } = record;
            let Ok(session) = SessionId::parse(&session) else { return };
            let delivered = match delivery {
                ReplyDelivery::Incomplete => None,
                ReplyDelivery::Complete => Some(at),
            };
            let record =
                AgentTurnRecord { run, key, after, session, thread: None, steps, reply, at, delivered };
            if let Err(error) = store.put_record(&scope, record).await {
                tracing::warn!(%error, "saving an agent's turn failed; a retry will run it again");
            }
        })
    }

    fn find(&self, caller: &str, request: PrefixHash) -> BoxFuture<'static, Option<AgentRecord>> {
        let (store, scope, now) = (Arc::clone(&self.store), CallerScope::new(caller), self.clock.now());
        let window = i64::try_from(RETRY_WINDOW.as_millis()).unwrap_or(i64::MAX);
        Box::pin(async move {
            let found = logged(store.record_for_request(&scope, request).await).flatten();
            found.filter(|record| now.0.saturating_sub(record.at.0) <= window).map(from_store)
        })
    }

    fn find_by_replies(
        &self,
        caller: &str,
        replies: Vec<PrefixHash>,
    ) -> BoxFuture<'static, Vec<AgentRecord>> {
        let (store, scope) = (Arc::clone(&self.store), CallerScope::new(caller));
        Box::pin(async move {
            let found = logged(store.records_after(&scope, &replies).await);
            found.unwrap_or_default().into_iter().map(from_store).collect()
        })
    }

    fn mark_delivered(&self, caller: &str, run: Uuid) -> BoxFuture<'static, ()> {
        let (store, scope, at) = (Arc::clone(&self.store), CallerScope::new(caller), self.clock.now());
        Box::pin(async move {
            if let Err(error) = store.mark_delivered(&scope, run, at).await {
                tracing::warn!(%error, "saving that a reply was delivered failed; an equal request will be taken for a retry");
            }
        })
    }
}

fn from_store(record: AgentTurnRecord) -> AgentRecord {
    let AgentTurnRecord { run, key, after, session, thread: _, steps, reply, at: _, delivered } = record;
    let delivery = if delivered.is_some() { ReplyDelivery::Complete } else { ReplyDelivery::Incomplete };
    AgentRecord { run, key, after, session: session.as_str().to_owned(), steps, reply, delivery }
}

/// Logs a store failure. The client's history is enough to continue, so the turn does not fail.
fn logged<T>(found: Result<T, StoreError>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) => {
            tracing::warn!(%error, "loading an agent's turns failed; continuing from the client's history alone");
            None
        }
    }
}
