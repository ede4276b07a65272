//! Records of turns in plain memory. Bounded: the oldest gives way.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolgate_model::PrefixHash;

use crate::{CallerScope, MAX_RECORD_BYTES, SessionId, TurnRecord, UnixMillis};

/// All steps and replies kept at a time: room for the largest record beside others.
pub(super) const MAX_RECORD_BYTES_KEPT: usize = 2 * MAX_RECORD_BYTES;

/// All records kept at a time, however small.
pub(super) const MAX_TURN_RECORDS_KEPT: usize = 10_000;

type RecordKey = (CallerScope, PrefixHash);

#[derive(Debug, Default)]
pub(super) struct Records {
    kept: HashMap<RecordKey, KeptRecord>,
    by_reply: HashMap<RecordKey, PrefixHash>,
    heads: HashMap<(CallerScope, SessionId), Head>,
    /// Keys in the order they were put: the first gives way first.
    by_age: BTreeMap<u64, RecordKey>,
    next_age: u64,
    bytes: usize,
    warned: bool,
}

#[derive(Debug)]
struct KeptRecord {
    age: u64,
    record: TurnRecord,
}

#[derive(Debug)]
struct Head {
    age: u64,
    request: PrefixHash,
    at: UnixMillis,
}

impl Records {
    pub(super) fn keep(&mut self, scope: &CallerScope, record: TurnRecord) {
        let age = self.next_age;
        self.next_age += 1;
        let key = (scope.clone(), record.key);
        if record.is_complete() {
            let head = Head { age, request: record.key, at: record.at };
            self.heads.insert((scope.clone(), record.session.clone()), head);
            self.forget_the_oldest_heads();
        } else if self.kept.get(&key).is_some_and(|kept| kept.record.is_complete()) {
            return;
        }
        self.remove(&key);
        if let Some(after) = record.after {
            self.by_reply.insert((scope.clone(), after), record.key);
        }
        self.bytes += record.bytes();
        self.by_age.insert(age, key.clone());
        self.kept.insert(key, KeptRecord { age, record });
        self.forget_the_oldest();
    }

    pub(super) fn forget_head(&mut self, scope: &CallerScope, session: &SessionId) {
        self.heads.remove(&(scope.clone(), session.clone()));
    }

    pub(super) fn of(&self, scope: &CallerScope, request: PrefixHash) -> Option<TurnRecord> {
        self.kept.get(&(scope.clone(), request)).map(|kept| kept.record.clone())
    }

    pub(super) fn after_each(&self, scope: &CallerScope, replies: &[PrefixHash]) -> Vec<TurnRecord> {
        let mut seen = HashSet::new();
        let request = |reply: &PrefixHash| self.by_reply.get(&(scope.clone(), *reply)).copied();
        let requests = replies.iter().filter(|reply| seen.insert(**reply)).filter_map(request);
        requests.filter_map(|request| self.of(scope, request)).collect()
    }

    pub(super) fn head(&self, scope: &CallerScope, session: &SessionId) -> Option<TurnRecord> {
        let head = self.heads.get(&(scope.clone(), session.clone()))?;
        self.of(scope, head.request)
    }

    pub(super) fn prune(&mut self, older_than: UnixMillis) -> u64 {
        let is_old = |kept: &KeptRecord| kept.record.at < older_than;
        let old: Vec<RecordKey> =
            self.kept.iter().filter(|(_, kept)| is_old(kept)).map(|(key, _)| key.clone()).collect();
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

    fn forget_the_oldest(&mut self) {
        while self.bytes > MAX_RECORD_BYTES_KEPT || self.kept.len() > MAX_TURN_RECORDS_KEPT {
            let Some((_, oldest)) = self.by_age.pop_first() else { return };
            self.remove(&oldest);
            if !self.warned {
                self.warned = true;
                tracing::warn!(
                    "the memory store is full: from now on the oldest records of turns are forgotten"
                );
            }
        }
    }

    /// Half of them at once, so that looking for the oldest costs little each time.
    fn forget_the_oldest_heads(&mut self) {
        if self.heads.len() <= MAX_TURN_RECORDS_KEPT {
            return;
        }
        let mut ages: Vec<u64> = self.heads.values().map(|head| head.age).collect();
        let middle = ages.len() / 2;
        let (_, oldest_kept, _) = ages.select_nth_unstable(middle);
        self.heads.retain(|_, head| head.age >= *oldest_kept);
    }

    fn remove(&mut self, key: &RecordKey) -> Option<TurnRecord> {
        let KeptRecord { age, record } = self.kept.remove(key)?;
        self.by_age.remove(&age);
        self.bytes -= record.bytes();
        if let Some(after) = record.after {
            self.by_reply.remove(&(key.0.clone(), after));
        }
        Some(record)
    }
}
