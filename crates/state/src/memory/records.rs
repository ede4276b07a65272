//! Sessions and agent turns in plain memory. Bounded: the oldest turns are evicted. Lookups scan all turns: there are
//! few.

use std::collections::{BTreeMap, HashMap};

use toolgate_model::PrefixHash;
use uuid::Uuid;

use crate::record::{ThreadLink, branch};
use crate::session::{MAX_PAGE_BYTES, new_session};
use crate::{
    AgentTurnRecord, CallerScope, Callers, Deletion, Label, MAX_RECORD_BYTES, SessionChange, SessionCursor,
    SessionId, SessionPage, SessionRecord, TurnCursor, TurnPage, UnixMillis,
};

/// The most bytes of all messages, steps and replies: the largest record and others beside it.
pub(super) const MAX_TOTAL_RECORD_BYTES: usize = 2 * MAX_RECORD_BYTES;

/// The most turns, and the most sessions, however small.
pub(super) const MAX_TURN_RECORDS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct RecordTable {
    /// By number, in the order of writing: the first is evicted first.
    turns: BTreeMap<i64, (CallerScope, AgentTurnRecord)>,
    numbers: HashMap<(CallerScope, Uuid), i64>,
    sessions: HashMap<(CallerScope, SessionId), SessionRecord>,
    next_number: i64,
    bytes: usize,
    warned: bool,
}

impl RecordTable {
    pub(super) fn put(&mut self, scope: &CallerScope, mut record: AgentTurnRecord) {
        let key = (scope.clone(), record.run);
        let earlier = self.numbers.get(&key).and_then(|number| Some((*number, self.turns.get(number)?)));
        if let Some((number, (_, earlier))) = earlier {
            if earlier.is_complete() && !record.is_complete() {
                return;
            }
            record.delivered = earlier.delivered.or(record.delivered);
            self.remove(number);
        }
        if record.thread.is_some() {
            self.update_session(scope, &record.session, SessionChange::at(record.at));
        }
        self.bytes += record.bytes();
        self.next_number += 1;
        self.numbers.insert(key, self.next_number);
        self.turns.insert(self.next_number, (scope.clone(), record));
        self.evict_oldest();
    }

    pub(super) fn mark_delivered(&mut self, scope: &CallerScope, run: Uuid, at: UnixMillis) {
        let number = self.numbers.get(&(scope.clone(), run));
        if let Some((_, record)) = number.and_then(|number| self.turns.get_mut(number)) {
            record.delivered.get_or_insert(at);
        }
    }

    pub(super) fn get(&self, scope: &CallerScope, request: PrefixHash) -> Option<AgentTurnRecord> {
        self.of(scope).map(|(_, record)| record).filter(|record| record.key == request).last().cloned()
    }

    pub(super) fn after_each(&self, scope: &CallerScope, replies: &[PrefixHash]) -> Vec<AgentTurnRecord> {
        let by_reply = self.of(scope).filter_map(|(_, record)| Some((record.after?, record)));
        let mut latest: HashMap<PrefixHash, &AgentTurnRecord> = by_reply.collect();
        replies.iter().filter_map(|reply| latest.remove(reply)).cloned().collect()
    }

    pub(super) fn branch(
        &self,
        scope: &CallerScope,
        session: &SessionId,
        thread: PrefixHash,
    ) -> Vec<AgentTurnRecord> {
        let links: Vec<ThreadLink> = self
            .of(scope)
            .filter(|(_, record)| record.session == *session)
            .filter_map(|(number, record)| {
                let part = record.thread.as_ref().filter(|part| part.thread == thread)?;
                Some(ThreadLink { number, after: record.after, continues: part.continues })
            })
            .collect();
        let find = |number: i64| self.turns.get(&number).map(|(_, record)| record.clone());
        branch(&links).into_iter().filter_map(find).collect()
    }

    pub(super) fn last_thread(
        &self,
        scope: &CallerScope,
        session: &SessionId,
        agent: &Label,
    ) -> Option<PrefixHash> {
        let mut first_numbers: HashMap<PrefixHash, i64> = HashMap::new();
        for (number, record) in self.of(scope).filter(|(_, record)| record.session == *session) {
            if let Some(part) = record.thread.as_ref().filter(|part| part.agent == *agent) {
                first_numbers.entry(part.thread).or_insert(number);
            }
        }
        first_numbers.into_iter().max_by_key(|(_, number)| *number).map(|(thread, _)| thread)
    }

    pub(super) fn update_session(&mut self, scope: &CallerScope, id: &SessionId, change: SessionChange) {
        let key = (scope.clone(), id.clone());
        let at = change.at;
        self.sessions.entry(key).or_insert_with(|| new_session(scope, id, at)).apply(change);
        self.evict_oldest_session();
    }

    pub(super) fn rename_session(&mut self, scope: &CallerScope, id: &SessionId, title: Label) -> bool {
        let session = self.sessions.get_mut(&(scope.clone(), id.clone()));
        session.map(|session| session.title = title).is_some()
    }

    pub(super) fn session(&self, scope: &CallerScope, id: &SessionId) -> Option<SessionRecord> {
        self.sessions.get(&(scope.clone(), id.clone())).cloned()
    }

    pub(super) fn sessions(
        &self,
        callers: Callers<'_>,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> SessionPage {
        let is_shown = |session: &&SessionRecord| match callers {
            Callers::One(scope) => session.caller == *scope,
            Callers::All => true,
        };
        let mut sessions: Vec<SessionRecord> = self.sessions.values().filter(is_shown).cloned().collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.cursor()));
        sessions.retain(|session| after.is_none_or(|after| session.cursor() < *after));
        SessionPage::of(sessions, limit)
    }

    pub(super) fn turns(
        &self,
        scope: &CallerScope,
        session: &SessionId,
        after: Option<TurnCursor>,
        limit: usize,
    ) -> TurnPage {
        let mut page = TurnPage::default();
        let mut bytes = 0;
        for (number, record) in self.of(scope).filter(|(_, record)| record.session == *session) {
            if after.is_some_and(|after| number <= after.0) {
                continue;
            }
            if page.turns.len() >= limit || bytes > MAX_PAGE_BYTES {
                return page;
            }
            bytes += record.bytes();
            page.turns.push(record.clone());
            page.next = Some(TurnCursor(number));
        }
        page.next = None;
        page
    }

    pub(super) fn delete_session(&mut self, scope: &CallerScope, id: &SessionId) -> Deletion {
        let numbers: Vec<i64> =
            self.of(scope).filter(|(_, record)| record.session == *id).map(|(number, _)| number).collect();
        for number in numbers {
            self.remove(number);
        }
        match self.sessions.remove(&(scope.clone(), id.clone())) {
            Some(_removed) => Deletion::Deleted,
            None => Deletion::NotFound,
        }
    }

    pub(super) fn prune(&mut self, older_than: UnixMillis) -> u64 {
        self.sessions.retain(|_, session| session.updated >= older_than);
        let is_expired = |scope: &CallerScope, record: &AgentTurnRecord| {
            record.at < older_than && !self.sessions.contains_key(&(scope.clone(), record.session.clone()))
        };
        let expired: Vec<i64> = self
            .turns
            .iter()
            .filter(|(_, (scope, record))| is_expired(scope, record))
            .map(|(number, _)| *number)
            .collect();
        for number in &expired {
            self.remove(*number);
        }
        expired.len() as u64
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A caller's turns in the order of writing.
    fn of(&self, scope: &CallerScope) -> impl Iterator<Item = (i64, &AgentTurnRecord)> {
        let turns = self.turns.iter().filter(move |(_, (owner, _))| owner == scope);
        turns.map(|(number, (_, record))| (*number, record))
    }

    fn remove(&mut self, number: i64) {
        if let Some((scope, record)) = self.turns.remove(&number) {
            self.bytes -= record.bytes();
            self.numbers.remove(&(scope, record.run));
        }
    }

    fn evict_oldest(&mut self) {
        while self.bytes > MAX_TOTAL_RECORD_BYTES || self.turns.len() > MAX_TURN_RECORDS {
            let Some(oldest) = self.turns.keys().next().copied() else { return };
            self.remove(oldest);
            if !self.warned {
                self.warned = true;
                tracing::warn!(
                    "the memory store is full: the oldest records of agent turns are evicted from now on"
                );
            }
        }
    }

    fn evict_oldest_session(&mut self) {
        if self.sessions.len() <= MAX_TURN_RECORDS {
            return;
        }
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.cursor());
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.sessions.remove(&key);
        }
    }
}
