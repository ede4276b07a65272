//! Saves the records of agent turns in the store.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolgate_backend::{AgentRecord, AgentRecordStore, ReplyDelivery, TranscriptPart};
use toolgate_model::JsonText;
use toolgate_model::lineage::PrefixHash;
use toolgate_state::{AgentTurnRecord, CallerScope, Label, SessionId, Store, StoreError, ThreadPart};
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
            let AgentRecord { run, key, after, session, part, steps, reply, delivery } = record;
            let Ok(session) = SessionId::parse(&session) else { return };
            let delivered = match delivery {
                ReplyDelivery::Incomplete => None,
                ReplyDelivery::Complete => Some(at),
            };
            let thread = part.map(|TranscriptPart { agent, thread, continues, messages }| ThreadPart {
                agent: Label::new(agent),
                thread,
                continues,
                messages,
            });
            let record = AgentTurnRecord { run, key, after, session, thread, steps, reply, at, delivered };
            let shortened = shortened(&record);
            let mut saved = store.put_record(&scope, record).await;
            if let Err(StoreError::RecordTooLarge { .. }) = &saved {
                // So that the session does not go on from the turn before.
                saved = store.put_record(&scope, shortened).await.and(saved);
            }
            if let Err(error) = saved {
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

    fn find_thread(
        &self,
        caller: &str,
        session: &str,
        thread: PrefixHash,
    ) -> BoxFuture<'static, Vec<AgentRecord>> {
        let (store, scope, session) =
            (Arc::clone(&self.store), CallerScope::new(caller), SessionId::parse(session));
        Box::pin(async move {
            let Ok(session) = session else { return Vec::new() };
            let found = logged(store.turns_of_session(&scope, &session, thread).await);
            found.unwrap_or_default().into_iter().map(from_store).collect()
        })
    }

    fn find_last_thread(
        &self,
        caller: &str,
        session: &str,
        agent: &str,
    ) -> BoxFuture<'static, Option<PrefixHash>> {
        let (store, scope, session) =
            (Arc::clone(&self.store), CallerScope::new(caller), SessionId::parse(session));
        let agent = Label::new(agent);
        Box::pin(async move { logged(store.last_thread(&scope, &session.ok()?, &agent).await).flatten() })
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

/// The record without its contents.
fn shortened(record: &AgentTurnRecord) -> AgentTurnRecord {
    let AgentTurnRecord { run, key, after, session, thread, steps: _, reply: _, at, delivered } = record;
    let thread = thread.as_ref().map(|part| ThreadPart {
        agent: part.agent.clone(),
        messages: JsonText::empty_object(),
        ..*part
    });
    AgentTurnRecord {
        run: *run,
        key: *key,
        after: *after,
        session: session.clone(),
        thread,
        steps: JsonText::empty_object(),
        reply: None,
        at: *at,
        delivered: *delivered,
    }
}

fn from_store(record: AgentTurnRecord) -> AgentRecord {
    let AgentTurnRecord { run, key, after, session, thread, steps, reply, at: _, delivered } = record;
    let part = thread.map(|ThreadPart { agent, thread, continues, messages }| TranscriptPart {
        agent: agent.as_str().into(),
        thread,
        continues,
        messages,
    });
    let delivery = if delivered.is_some() { ReplyDelivery::Complete } else { ReplyDelivery::Incomplete };
    AgentRecord { run, key, after, session: session.as_str().to_owned(), part, steps, reply, delivery }
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
