//! Conformance cases for stored responses.

use futures_util::future::{BoxFuture, try_join_all};

use super::{Case, response};
use crate::{
    CallerScope, Deletion, ItemId, MAX_RESPONSE_BYTES, ResponseId, Store, StoreError, StoredItem,
    StoredResponse, UnixMillis,
};

pub(super) const CASES: &[Case] = &[
    a_response_is_read_back_unchanged,
    a_response_with_the_same_id_is_replaced,
    callers_do_not_see_each_others_responses,
    a_deleted_response_is_gone,
    pruning_deletes_only_older_responses,
    a_large_prune_deletes_everything,
    a_response_over_the_limit_is_refused,
    concurrent_writes_are_all_stored,
    items_are_found_by_id_for_their_caller_only,
    an_item_belongs_to_the_last_response_that_had_it,
    items_are_deleted_and_pruned_with_their_response,
    items_over_the_limit_are_refused,
];

type Outcome<'a> = BoxFuture<'a, Result<(), StoreError>>;

fn a_response_is_read_back_unchanged(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, id) = (CallerScope::new("alice"), ResponseId::new("resp_2"));
        assert_eq!(store.response(&alice, &id).await?, None);

        let whole = StoredResponse {
            previous: Some(ResponseId::new("resp_1")),
            model: "großes Modell".to_owned(),
            body: "{\"text\":\"quote ' backslash \\\\ emoji 🦀 line\\n\"}".to_owned(),
            ..response("resp_2", 1_763_000_000_123)
        };
        store.put_response(&alice, whole.clone(), &[]).await?;
        assert_eq!(store.response(&alice, &id).await?, Some(whole));
        Ok(())
    })
}

fn a_response_with_the_same_id_is_replaced(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        store.put_response(&alice, response("resp_1", 1), &[]).await?;
        let second = StoredResponse {
            previous: Some(ResponseId::new("resp_0")),
            model: "other".to_owned(),
            body: "{}".to_owned(),
            ..response("resp_1", 2)
        };
        store.put_response(&alice, second.clone(), &[]).await?;
        assert_eq!(store.response(&alice, &second.id).await?, Some(second));
        Ok(())
    })
}

fn callers_do_not_see_each_others_responses(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, bob) = (CallerScope::new("alice"), CallerScope::new("bob"));
        let hers = response("resp_1", 1);
        store.put_response(&alice, hers.clone(), &[]).await?;
        assert_eq!(store.response(&bob, &hers.id).await?, None);
        assert_eq!(store.delete_response(&bob, &hers.id).await?, Deletion::NotFound);

        // Another caller may use the same id.
        let his = StoredResponse { body: "{\"his\":true}".to_owned(), ..response("resp_1", 2) };
        store.put_response(&bob, his.clone(), &[]).await?;
        assert_eq!(store.response(&alice, &hers.id).await?, Some(hers));
        assert_eq!(store.response(&bob, &his.id).await?, Some(his));
        Ok(())
    })
}

fn a_deleted_response_is_gone(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        let first = response("resp_1", 1);
        let second = StoredResponse { previous: Some(first.id.clone()), ..response("resp_2", 2) };
        store.put_response(&alice, first.clone(), &[]).await?;
        store.put_response(&alice, second.clone(), &[]).await?;

        assert_eq!(store.delete_response(&alice, &first.id).await?, Deletion::Deleted);
        assert_eq!(store.delete_response(&alice, &first.id).await?, Deletion::NotFound);
        assert_eq!(store.response(&alice, &first.id).await?, None);
        assert_eq!(store.response(&alice, &second.id).await?, Some(second));
        Ok(())
    })
}

fn pruning_deletes_only_older_responses(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, bob) = (CallerScope::new("alice"), CallerScope::new("bob"));
        let at_the_limit = response("at the limit", 100);
        store.put_response(&alice, response("old", 99), &[]).await?;
        store.put_response(&bob, response("old", -5), &[]).await?;
        store.put_response(&alice, at_the_limit.clone(), &[]).await?;

        assert_eq!(store.prune_responses(UnixMillis(100)).await?, 2);
        assert_eq!(store.prune_responses(UnixMillis(100)).await?, 0);
        assert_eq!(store.response(&alice, &ResponseId::new("old")).await?, None);
        assert_eq!(store.response(&alice, &at_the_limit.id).await?, Some(at_the_limit));
        Ok(())
    })
}

fn a_large_prune_deletes_everything(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        for number in 0..1_201 {
            store.put_response(&alice, response(&format!("resp_{number}"), number), &[]).await?;
        }
        assert_eq!(store.prune_responses(UnixMillis(1_200)).await?, 1_200);
        let last = ResponseId::new("resp_1200");
        assert_eq!(store.response(&alice, &last).await?, Some(response("resp_1200", 1_200)));
        Ok(())
    })
}

fn a_response_over_the_limit_is_refused(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        let largest = StoredResponse { body: "x".repeat(MAX_RESPONSE_BYTES), ..response("largest", 1) };
        store.put_response(&alice, largest.clone(), &[]).await?;
        let stored = store.response(&alice, &largest.id).await?;
        assert_eq!(stored.map(|stored| stored.body.len()), Some(MAX_RESPONSE_BYTES));

        let too_large =
            StoredResponse { body: "x".repeat(MAX_RESPONSE_BYTES + 1), ..response("too large", 1) };
        let refused = store.put_response(&alice, too_large, &[]).await;
        assert!(
            matches!(&refused, Err(StoreError::ResponseTooLarge { id, bytes })
                if id.as_str() == "too large" && *bytes == MAX_RESPONSE_BYTES + 1),
            "{refused:?}"
        );
        assert_eq!(store.response(&alice, &ResponseId::new("too large")).await?, None);
        Ok(())
    })
}

fn concurrent_writes_are_all_stored(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        let all: Vec<StoredResponse> =
            (0..32).map(|number| response(&format!("resp_{number}"), number)).collect();
        try_join_all(all.iter().map(|one| store.put_response(&alice, one.clone(), &[]))).await?;
        let found = try_join_all(all.iter().map(|one| store.response(&alice, &one.id))).await?;
        assert_eq!(found, all.into_iter().map(Some).collect::<Vec<_>>());
        Ok(())
    })
}

fn item(id: &str, body: &str) -> StoredItem {
    StoredItem { id: ItemId::new(id), body: body.to_owned() }
}

/// The bodies of the caller's items with these ids.
async fn bodies(store: &dyn Store, caller: &str, ids: &[&str]) -> Result<Vec<String>, StoreError> {
    let ids = ids.iter().map(|id| ItemId::new(*id)).collect();
    let mut found = store.response_items(&CallerScope::new(caller), &ids).await?;
    found.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(found.into_iter().map(|item| item.body).collect())
}

fn items_are_found_by_id_for_their_caller_only(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, bob) = (CallerScope::new("alice"), CallerScope::new("bob"));
        let hers = [item("msg_1", "{\"hers\":1}"), item("rs_1", "{\"thought\":\"🦀\"}")];
        store.put_response(&alice, response("resp_1", 1), &hers).await?;
        store.put_response(&bob, response("resp_1", 1), &[item("msg_1", "{\"his\":1}")]).await?;
        let ids = ["msg_1", "rs_1", "unknown"];
        assert_eq!(bodies(store, "alice", &ids).await?, ["{\"hers\":1}", "{\"thought\":\"🦀\"}"]);
        assert_eq!(bodies(store, "bob", &ids).await?, ["{\"his\":1}"]);
        assert_eq!(bodies(store, "alice", &[]).await?, Vec::<String>::new());
        Ok(())
    })
}

fn an_item_belongs_to_the_last_response_that_had_it(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        store.put_response(&alice, response("resp_1", 1), &[item("msg_1", "1"), item("msg_2", "2")]).await?;
        store.put_response(&alice, response("resp_2", 2), &[item("msg_2", "3")]).await?;
        store.delete_response(&alice, &ResponseId::new("resp_1")).await?;
        assert_eq!(bodies(store, "alice", &["msg_1", "msg_2"]).await?, ["3"]);

        // A response that is replaced loses the items that it no longer has.
        store.put_response(&alice, response("resp_2", 3), &[item("msg_4", "4")]).await?;
        assert_eq!(bodies(store, "alice", &["msg_2", "msg_4"]).await?, ["4"]);
        Ok(())
    })
}

fn items_are_deleted_and_pruned_with_their_response(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, bob) = (CallerScope::new("alice"), CallerScope::new("bob"));
        for (id, at) in [("a", 99), ("b", 100), ("c", 101)] {
            store.put_response(&alice, response(&format!("resp_{id}"), at), &[item(id, id)]).await?;
        }
        store.put_response(&bob, response("resp_c", 101), &[item("c", "his")]).await?;
        assert_eq!(store.prune_responses(UnixMillis(100)).await?, 1);
        assert_eq!(bodies(store, "alice", &["a", "b", "c"]).await?, ["b", "c"]);
        store.delete_response(&alice, &ResponseId::new("resp_c")).await?;
        assert_eq!(bodies(store, "alice", &["b", "c"]).await?, ["b"]);
        assert_eq!(bodies(store, "bob", &["c"]).await?, ["his"]);
        Ok(())
    })
}

fn items_over_the_limit_are_refused(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        let half = "x".repeat(MAX_RESPONSE_BYTES / 2 + 1);
        let items = [item("msg_1", &half), item("msg_2", &half)];
        let refused = store.put_response(&alice, response("resp_1", 1), &items).await;
        assert!(matches!(refused, Err(StoreError::ResponseTooLarge { .. })), "{refused:?}");
        assert_eq!(bodies(store, "alice", &["msg_1", "msg_2"]).await?, Vec::<String>::new());
        assert_eq!(store.response(&alice, &ResponseId::new("resp_1")).await?, None);
        Ok(())
    })
}
