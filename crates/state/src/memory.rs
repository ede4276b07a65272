//! A store in plain memory, for tests and for `store = "memory"`. Bounded: the oldest entries are evicted.

mod questions;
mod records;
mod responses;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use toolgate_model::PrefixHash;
use uuid::Uuid;

use self::questions::ApprovalTables;
use self::records::RecordTable;
use self::responses::ResponseTable;
use crate::record::too_large;
use crate::response::refuse_oversized;
use crate::usage::{FIRST_FAILURE_STATUS, busiest_first};
use crate::{
    AgentTurnRecord, CallerScope, Callers, Deletion, ItemId, Label, MAX_PAGE_ROWS, RecordStore, ResponseId,
    ResponseStore, SessionChange, SessionCursor, SessionId, SessionPage, SessionRecord, SessionStore, Store,
    StoreError, StoredItem, StoredResponse, TurnCursor, TurnPage, UnixMillis, UsageGroup, UsageRecord,
    UsageStore, UsageTotals,
};

/// The most usage records: about 10 MiB.
const MAX_USAGE_RECORDS: usize = 50_000;

/// A [`Store`] whose data is lost when the process ends.
///
/// When full, it evicts the oldest entries and logs a warning the first time.
#[derive(Debug, Default)]
pub struct MemoryStore {
    responses: Mutex<ResponseTable>,
    usage: Mutex<UsageTable>,
    records: Mutex<RecordTable>,
    approvals: ApprovalTables,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ResponseStore for MemoryStore {
    fn put_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        response: StoredResponse,
        items: &'a [StoredItem],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            refuse_oversized(&response, items)?;
            self.responses.lock().put(scope, response, items);
            Ok(())
        })
    }

    fn response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>> {
        Box::pin(async move { Ok(self.responses.lock().get(scope, id)) })
    }

    fn response_items<'a>(
        &'a self,
        scope: &'a CallerScope,
        ids: &'a BTreeSet<ItemId>,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, StoreError>> {
        Box::pin(async move { Ok(self.responses.lock().items(scope, ids)) })
    }

    fn delete_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>> {
        Box::pin(async move {
            match self.responses.lock().remove(&(scope.clone(), id.clone())) {
                Some(_removed) => Ok(Deletion::Deleted),
                None => Ok(Deletion::NotFound),
            }
        })
    }

    fn prune_responses(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { Ok(self.responses.lock().prune(older_than)) })
    }
}

impl UsageStore for MemoryStore {
    fn record_usage<'a>(&'a self, records: &'a [UsageRecord]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut usage = self.usage.lock();
            for record in records {
                usage.add(record);
            }
            Ok(())
        })
    }

    fn usage_summary(
        &self,
        since: UnixMillis,
        by: UsageGroup,
    ) -> BoxFuture<'_, Result<Vec<UsageTotals>, StoreError>> {
        Box::pin(async move { Ok(self.usage.lock().summary(since, by)) })
    }

    fn prune_usage(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { Ok(self.usage.lock().prune(older_than)) })
    }
}

impl RecordStore for MemoryStore {
    fn put_record<'a>(
        &'a self,
        scope: &'a CallerScope,
        record: AgentTurnRecord,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            if let Some(error) = too_large(&record) {
                return Err(error);
            }
            self.records.lock().put(scope, record);
            Ok(())
        })
    }

    fn mark_delivered<'a>(
        &'a self,
        scope: &'a CallerScope,
        run: Uuid,
        at: UnixMillis,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.records.lock().mark_delivered(scope, run, at);
            Ok(())
        })
    }

    fn record_for_request<'a>(
        &'a self,
        scope: &'a CallerScope,
        request: PrefixHash,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().get(scope, request)) })
    }

    fn records_after<'a>(
        &'a self,
        scope: &'a CallerScope,
        replies: &'a [PrefixHash],
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().after_each(scope, replies)) })
    }

    fn turns_of_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
        thread: PrefixHash,
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().branch(scope, session, thread)) })
    }

    fn last_thread<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
        agent: &'a Label,
    ) -> BoxFuture<'a, Result<Option<PrefixHash>, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().last_thread(scope, session, agent)) })
    }

    fn prune_records(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().prune(older_than)) })
    }
}

impl SessionStore for MemoryStore {
    fn update_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        change: SessionChange,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.records.lock().update_session(scope, id, change);
            Ok(())
        })
    }

    fn rename_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        title: Label,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().rename_session(scope, id, title)) })
    }

    fn session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().session(scope, id)) })
    }

    fn sessions<'a>(
        &'a self,
        callers: Callers<'a>,
        after: Option<&'a SessionCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<SessionPage, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().sessions(callers, after, limit.min(MAX_PAGE_ROWS))) })
    }

    fn session_turns<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        after: Option<TurnCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<TurnPage, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().turns(scope, id, after, limit.min(MAX_PAGE_ROWS))) })
    }

    fn delete_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().delete_session(scope, id)) })
    }
}

impl Store for MemoryStore {
    fn check_writable(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

#[derive(Debug, Default)]
struct UsageTable {
    records: VecDeque<UsageRecord>,
    /// The identity of a record, as in the other stores: its time and its turn.
    turns: HashSet<(UnixMillis, Uuid)>,
    warned: bool,
}

impl UsageTable {
    fn add(&mut self, record: &UsageRecord) {
        if !self.turns.insert((record.at, record.turn_id)) {
            return;
        }
        self.records.push_back(record.clone());
        if self.records.len() <= MAX_USAGE_RECORDS {
            return;
        }
        if let Some(oldest) = self.records.pop_front() {
            self.turns.remove(&(oldest.at, oldest.turn_id));
        }
        if !self.warned {
            self.warned = true;
            tracing::warn!("the memory store is full: the oldest usage records are evicted from now on");
        }
    }

    fn summary(&self, since: UnixMillis, by: UsageGroup) -> Vec<UsageTotals> {
        let mut groups: HashMap<&str, UsageTotals> = HashMap::new();
        for record in self.records.iter().filter(|record| record.at >= since) {
            let group = match by {
                UsageGroup::Caller => record.caller.as_str(),
                UsageGroup::Model => record.model.as_str(),
            };
            add_to(groups.entry(group).or_default(), record);
        }
        let rows =
            groups.into_iter().map(|(group, totals)| UsageTotals { group: group.to_owned(), ..totals });
        busiest_first(rows.collect())
    }

    fn prune(&mut self, older_than: UnixMillis) -> u64 {
        let before = self.records.len();
        let turns = &mut self.turns;
        self.records.retain(|record| {
            let is_current = record.at >= older_than;
            if !is_current {
                turns.remove(&(record.at, record.turn_id));
            }
            is_current
        });
        (before - self.records.len()) as u64
    }
}

fn add_to(totals: &mut UsageTotals, record: &UsageRecord) {
    totals.turns += 1;
    totals.failures += u64::from(record.status >= FIRST_FAILURE_STATUS);
    totals.input += u64::from(record.input.get());
    totals.cache_read += u64::from(record.cache_read.get());
    totals.cache_write += u64::from(record.cache_write.get());
    totals.output += u64::from(record.output.get());
}

#[cfg(test)]
mod tests;
