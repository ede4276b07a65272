//! Records of agent turns in plain memory. Bounded: the oldest are evicted.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolgate_model::PrefixHash;

use crate::{AgentTurnRecord, CallerScope, MAX_RECORD_BYTES, SessionId, UnixMillis};

/// The most bytes of all steps and replies: the largest record and others beside it.
pub(super) const MAX_TOTAL_RECORD_BYTES: usize = 2 * MAX_RECORD_BYTES;

/// The most records, however small.
pub(super) const MAX_TURN_RECORDS: usize = 10_000;

type RecordKey = (CallerScope, PrefixHash);

#[derive(Debug, Default)]
pub(super) struct RecordTable {
    entries: HashMap<RecordKey, RecordEntry>,
    by_reply: HashMap<RecordKey, PrefixHash>,
    heads: HashMap<(CallerScope, SessionId), SessionHead>,
    /// Keys in the order of insertion: the first is evicted first.
    by_age: BTreeMap<u64, RecordKey>,
    next_age: u64,
    bytes: usize,
    warned: bool,
}

#[derive(Debug)]
struct RecordEntry {
    age: u64,
    record: AgentTurnRecord,
}

#[derive(Debug)]
struct SessionHead {
    age: u64,
    request: PrefixHash,
    at: UnixMillis,
}

impl RecordTable {
    pub(super) fn put(&mut self, scope: &CallerScope, record: AgentTurnRecord) {
        let age = self.next_age;
        self.next_age += 1;
        let key = (scope.clone(), record.key);
        if record.is_complete() {
            let head = SessionHead { age, request: record.key, at: record.at };
            self.heads.insert((scope.clone(), record.session.clone()), head);
            self.evict_oldest_heads();
        } else if self.entries.get(&key).is_some_and(|entry| entry.record.is_complete()) {
            return;
        }
        self.remove(&key);
        if let Some(after) = record.after {
            self.by_reply.insert((scope.clone(), after), record.key);
        }
        self.bytes += record.bytes();
        self.by_age.insert(age, key.clone());
        self.entries.insert(key, RecordEntry { age, record });
        self.evict_oldest();
    }

    pub(super) fn remove_head(&mut self, scope: &CallerScope, session: &SessionId) {
        self.heads.remove(&(scope.clone(), session.clone()));
    }

    pub(super) fn get(&self, scope: &CallerScope, request: PrefixHash) -> Option<AgentTurnRecord> {
        self.entries.get(&(scope.clone(), request)).map(|entry| entry.record.clone())
    }

    pub(super) fn after_each(&self, scope: &CallerScope, replies: &[PrefixHash]) -> Vec<AgentTurnRecord> {
        let mut seen = HashSet::new();
        let request = |reply: &PrefixHash| self.by_reply.get(&(scope.clone(), *reply)).copied();
        let requests = replies.iter().filter(|reply| seen.insert(**reply)).filter_map(request);
        requests.filter_map(|request| self.get(scope, request)).collect()
    }

    pub(super) fn head(&self, scope: &CallerScope, session: &SessionId) -> Option<AgentTurnRecord> {
        let head = self.heads.get(&(scope.clone(), session.clone()))?;
        self.get(scope, head.request)
    }

    pub(super) fn prune(&mut self, older_than: UnixMillis) -> u64 {
        let is_old = |entry: &RecordEntry| entry.record.at < older_than;
        let old: Vec<RecordKey> =
            self.entries.iter().filter(|(_, entry)| is_old(entry)).map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.remove(key);
        }
        self.heads.retain(|_, head| head.at >= older_than);
        old.len() as u64
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn evict_oldest(&mut self) {
        while self.bytes > MAX_TOTAL_RECORD_BYTES || self.entries.len() > MAX_TURN_RECORDS {
            let Some((_, oldest)) = self.by_age.pop_first() else { return };
            self.remove(&oldest);
            if !self.warned {
                self.warned = true;
                tracing::warn!(
                    "the memory store is full: the oldest records of agent turns are evicted from now on"
                );
            }
        }
    }

    /// Evicts half of the heads at once, so that the search for the oldest is rare.
    fn evict_oldest_heads(&mut self) {
        if self.heads.len() <= MAX_TURN_RECORDS {
            return;
        }
        let mut ages: Vec<u64> = self.heads.values().map(|head| head.age).collect();
        let middle = ages.len() / 2;
        let (_, oldest_left, _) = ages.select_nth_unstable(middle);
        self.heads.retain(|_, head| head.age >= *oldest_left);
    }

    fn remove(&mut self, key: &RecordKey) -> Option<AgentTurnRecord> {
        let RecordEntry { age, record } = self.entries.remove(key)?;
        self.by_age.remove(&age);
        self.bytes -= record.bytes();
        if let Some(after) = record.after {
            self.by_reply.remove(&(key.0.clone(), after));
        }
        Some(record)
    }
}
