//! Responses and their items in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{CallerScope, ItemId, MAX_RESPONSE_BYTES, ResponseId, StoredItem, StoredResponse, UnixMillis};

/// The most bytes of all bodies and items: the largest response with its items.
pub(super) const MAX_TOTAL_BODY_BYTES: usize = 2 * MAX_RESPONSE_BYTES;

/// The most responses, however small.
pub(super) const MAX_RESPONSES: usize = 10_000;

type ResponseKey = (CallerScope, ResponseId);
type ItemKey = (CallerScope, ItemId);

#[derive(Debug, Default)]
pub(super) struct ResponseTable {
    entries: HashMap<ResponseKey, ResponseEntry>,
    /// Each item with the last response that had it.
    items: HashMap<ItemKey, (ResponseId, String)>,
    /// Keys in the order of insertion: the first is evicted first.
    by_age: BTreeMap<u64, ResponseKey>,
    next_age: u64,
    body_bytes: usize,
    warned: bool,
}

#[derive(Debug)]
struct ResponseEntry {
    age: u64,
    response: StoredResponse,
    items: Vec<ItemId>,
}

impl ResponseTable {
    pub(super) fn put(&mut self, scope: &CallerScope, response: StoredResponse, items: &[StoredItem]) {
        let key = (scope.clone(), response.id.clone());
        self.remove(&key);
        for item in items {
            let owned = (response.id.clone(), item.body.clone());
            self.body_bytes += item.body.len();
            if let Some((_, earlier)) = self.items.insert((scope.clone(), item.id.clone()), owned) {
                self.body_bytes -= earlier.len();
            }
        }
        let age = self.next_age;
        self.next_age += 1;
        self.body_bytes += response.body.len();
        self.by_age.insert(age, key.clone());
        let items = items.iter().map(|item| item.id.clone()).collect();
        self.entries.insert(key, ResponseEntry { age, response, items });
        self.evict_oldest();
    }

    pub(super) fn get(&self, scope: &CallerScope, id: &ResponseId) -> Option<StoredResponse> {
        self.entries.get(&(scope.clone(), id.clone())).map(|entry| entry.response.clone())
    }

    pub(super) fn items(&self, scope: &CallerScope, ids: &BTreeSet<ItemId>) -> Vec<StoredItem> {
        let find = |id: &ItemId| {
            let (_, body) = self.items.get(&(scope.clone(), id.clone()))?;
            Some(StoredItem { id: id.clone(), body: body.clone() })
        };
        ids.iter().filter_map(find).collect()
    }

    fn evict_oldest(&mut self) {
        while self.body_bytes > MAX_TOTAL_BODY_BYTES || self.entries.len() > MAX_RESPONSES {
            let Some((_, oldest)) = self.by_age.pop_first() else { return };
            self.remove(&oldest);
            if !self.warned {
                self.warned = true;
                tracing::warn!(
                    "the memory store is full: the oldest stored responses are evicted from now on"
                );
            }
        }
    }

    /// Removes a response, and the items that no later response has.
    pub(super) fn remove(&mut self, key: &ResponseKey) -> Option<StoredResponse> {
        let ResponseEntry { age, response, items } = self.entries.remove(key)?;
        self.by_age.remove(&age);
        self.body_bytes -= response.body.len();
        for id in items {
            let item = (key.0.clone(), id);
            if self.items.get(&item).is_some_and(|(owner, _)| *owner == response.id)
                && let Some((_, body)) = self.items.remove(&item)
            {
                self.body_bytes -= body.len();
            }
        }
        Some(response)
    }

    pub(super) fn prune(&mut self, older_than: UnixMillis) -> u64 {
        let old: Vec<ResponseKey> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.response.created_at < older_than)
            .map(|(key, _)| key.clone())
            .collect();
        for key in &old {
            self.remove(key);
        }
        old.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::response;

    fn keys(responses: &ResponseTable) -> Vec<&str> {
        responses.by_age.values().map(|(_, id)| id.as_str()).collect()
    }

    fn item(id: &str, bytes: usize) -> StoredItem {
        StoredItem { id: ItemId::new(id), body: "x".repeat(bytes) }
    }

    #[test]
    fn the_oldest_responses_are_evicted_when_their_bytes_exceed_the_limit() {
        let mut responses = ResponseTable::default();
        let scope = CallerScope::new("alice");
        for id in ["first", "second", "third"] {
            let large = StoredResponse { body: "x".repeat(MAX_RESPONSE_BYTES), ..response(id, 0) };
            responses.put(&scope, large, &[]);
        }
        assert_eq!(keys(&responses), ["second", "third"]);
        assert_eq!(responses.body_bytes, MAX_TOTAL_BODY_BYTES);
    }

    #[test]
    fn the_oldest_responses_are_evicted_when_there_are_too_many() {
        let mut responses = ResponseTable::default();
        let scope = CallerScope::new("alice");
        for number in 0..=MAX_RESPONSES {
            responses.put(&scope, response(&number.to_string(), 0), &[]);
        }
        assert_eq!(responses.entries.len(), MAX_RESPONSES);
        assert_eq!(keys(&responses)[0], "1");
    }

    #[test]
    fn items_count_towards_the_limit_and_leave_with_their_response() {
        let mut responses = ResponseTable::default();
        let scope = CallerScope::new("alice");
        let half = MAX_TOTAL_BODY_BYTES / 2;
        responses.put(&scope, response("first", 0), &[item("msg_1", half), item("msg_2", 7)]);
        // The same item again, and a response with room for everything but the first one.
        responses.put(&scope, response("second", 0), &[item("msg_2", 9)]);
        responses.put(&scope, response("third", 0), &[item("msg_3", half)]);
        assert_eq!(keys(&responses), ["second", "third"]);
        let ids = ["msg_1", "msg_2", "msg_3"].map(ItemId::new).into_iter().collect();
        let found: Vec<usize> =
            responses.items(&scope, &ids).into_iter().map(|item| item.body.len()).collect();
        assert_eq!(found, [9, half]);
        for id in ["second", "third"] {
            responses.remove(&(scope.clone(), ResponseId::new(id)));
        }
        assert_eq!((responses.body_bytes, responses.items.len()), (0, 0));
    }
}
