//! Conformance cases for stored responses.

use futures_util::future::{BoxFuture, try_join_all};

use super::{Case, response};
use crate::{
    CallerScope, Deletion, MAX_RESPONSE_BYTES, ResponseId, Store, StoreError, StoredResponse, UnixMillis,
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
        store.put_response(&alice, whole.clone()).await?;
        assert_eq!(store.response(&alice, &id).await?, Some(whole));
        Ok(())
    })
}

fn a_response_with_the_same_id_is_replaced(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = CallerScope::new("alice");
        store.put_response(&alice, response("resp_1", 1)).await?;
        let second = StoredResponse {
            previous: Some(ResponseId::new("resp_0")),
            model: "other".to_owned(),
            body: "{}".to_owned(),
            ..response("resp_1", 2)
        };
        store.put_response(&alice, second.clone()).await?;
        assert_eq!(store.response(&alice, &second.id).await?, Some(second));
        Ok(())
    })
}

fn callers_do_not_see_each_others_responses(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, bob) = (CallerScope::new("alice"), CallerScope::new("bob"));
        let hers = response("resp_1", 1);
        store.put_response(&alice, hers.clone()).await?;
        assert_eq!(store.response(&bob, &hers.id).await?, None);
        assert_eq!(store.delete_response(&bob, &hers.id).await?, Deletion::NotFound);

        // Another caller may use the same id.
        let his = StoredResponse { body: "{\"his\":true}".to_owned(), ..response("resp_1", 2) };
        store.put_response(&bob, his.clone()).await?;
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
        store.put_response(&alice, first.clone()).await?;
        store.put_response(&alice, second.clone()).await?;

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
        store.put_response(&alice, response("old", 99)).await?;
        store.put_response(&bob, response("old", -5)).await?;
        store.put_response(&alice, at_the_limit.clone()).await?;

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
            store.put_response(&alice, response(&format!("resp_{number}"), number)).await?;
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
        store.put_response(&alice, largest.clone()).await?;
        let stored = store.response(&alice, &largest.id).await?;
        assert_eq!(stored.map(|stored| stored.body.len()), Some(MAX_RESPONSE_BYTES));

        let too_large =
            StoredResponse { body: "x".repeat(MAX_RESPONSE_BYTES + 1), ..response("too large", 1) };
        let refused = store.put_response(&alice, too_large).await;
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
        try_join_all(all.iter().map(|one| store.put_response(&alice, one.clone()))).await?;
        let found = try_join_all(all.iter().map(|one| store.response(&alice, &one.id))).await?;
        assert_eq!(found, all.into_iter().map(Some).collect::<Vec<_>>());
        Ok(())
    })
}
