//! Conformance cases for records of agent turns.

use futures_util::future::{BoxFuture, try_join_all};
use toolgate_model::PrefixHash;

use super::{Case, FIRST_REPLY, hash, json, session, turn_record as record};
use crate::{AgentTurnRecord, CallerScope, MAX_RECORD_BYTES, Store, StoreError, UnixMillis};

pub(super) const CASES: &[Case] = &[
    a_record_is_read_back_unchanged,
    an_incomplete_record_does_not_replace_a_complete_one,
    records_are_found_by_their_replies_in_the_requested_order,
    many_replies_are_looked_up_in_one_call,
    the_head_of_a_session_is_its_last_complete_record,
    callers_do_not_see_each_others_records,
    pruning_deletes_only_older_records,
    a_large_prune_deletes_everything,
    a_record_over_the_limit_is_refused_and_leaves_no_stale_head,
    concurrent_writes_are_all_stored,
];

type Outcome<'a> = BoxFuture<'a, Result<(), StoreError>>;

fn alice() -> CallerScope {
    CallerScope::new("alice")
}

fn reply_to(number: u64) -> PrefixHash {
    hash(FIRST_REPLY + number)
}

fn incomplete(number: u64, in_session: &str, at: i64) -> AgentTurnRecord {
    AgentTurnRecord { after: None, reply: None, steps: json("[]"), ..record(number, in_session, at) }
}

fn a_record_is_read_back_unchanged(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, None);
        let whole = AgentTurnRecord {
            steps: json("[ {\"text\":\"quote ' backslash \\\\ emoji 🦀 line\\n\\u0000\"} ]"),
            reply: Some(json("{\"b\":1.0, \"a\":2}")),
            ..record(1, "s", 1_763_000_000_123)
        };
        store.put_record(&alice(), whole.clone()).await?;
        let stored = store.record_for_request(&alice(), hash(1)).await?;
        // Compared byte by byte, because JSON texts with the same meaning are equal.
        let bytes = |record: &AgentTurnRecord| {
            (record.steps.as_str().to_owned(), record.reply.as_ref().map(|reply| reply.as_str().to_owned()))
        };
        assert_eq!(stored.as_ref().map(bytes), Some(bytes(&whole)));
        assert_eq!(stored, Some(whole));
        store.put_record(&alice(), incomplete(2, "s", 2)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(2)).await?, Some(incomplete(2, "s", 2)));
        Ok(())
    })
}

fn an_incomplete_record_does_not_replace_a_complete_one(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.put_record(&alice(), incomplete(1, "s", 1)).await?;
        store.put_record(&alice(), record(1, "s", 2)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(record(1, "s", 2)));
        store.put_record(&alice(), incomplete(1, "s", 3)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(record(1, "s", 2)));

        // A second reply to the same request replaces the first, which is no longer found.
        let other = AgentTurnRecord { after: Some(reply_to(9)), steps: json("[9]"), ..record(1, "s", 4) };
        store.put_record(&alice(), other.clone()).await?;
        assert_eq!(store.records_after(&alice(), &[reply_to(1)]).await?, []);
        assert_eq!(store.records_after(&alice(), &[reply_to(9)]).await?, [other]);
        Ok(())
    })
}

fn records_are_found_by_their_replies_in_the_requested_order(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in 1..=4 {
            store.put_record(&alice(), record(number, "s", 1)).await?;
        }
        store.put_record(&alice(), incomplete(5, "s", 1)).await?;
        let replies = [reply_to(3), hash(1), reply_to(8), reply_to(1), reply_to(3), hash(5)];
        let found = store.records_after(&alice(), &replies).await?;
        assert_eq!(found, [record(3, "s", 1), record(1, "s", 1)]);
        assert_eq!(store.records_after(&alice(), &[]).await?, []);
        Ok(())
    })
}

fn many_replies_are_looked_up_in_one_call(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in (0..1_000).step_by(100) {
            store.put_record(&alice(), record(number, "s", 1)).await?;
        }
        let replies: Vec<PrefixHash> = (0..1_000).map(reply_to).collect();
        let found = store.records_after(&alice(), &replies).await?;
        let expected: Vec<AgentTurnRecord> =
            (0..1_000).step_by(100).map(|number| record(number, "s", 1)).collect();
        assert_eq!(found, expected);
        Ok(())
    })
}

fn the_head_of_a_session_is_its_last_complete_record(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.session_head(&alice(), &session("s")).await?, None);
        // At the same time, so that only the order of writing distinguishes them.
        for number in [1, 3, 2] {
            store.put_record(&alice(), record(number, "s", 5)).await?;
        }
        store.put_record(&alice(), record(4, "other", 5)).await?;
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(2, "s", 5)));
        store.put_record(&alice(), record(1, "s", 6)).await?;
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(1, "s", 6)));
        // An incomplete turn does not become the head.
        store.put_record(&alice(), incomplete(5, "s", 7)).await?;
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(1, "s", 6)));
        Ok(())
    })
}

fn callers_do_not_see_each_others_records(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let bob = CallerScope::new("bob");
        store.put_record(&alice(), record(1, "s", 1)).await?;
        assert_eq!(store.record_for_request(&bob, hash(1)).await?, None);
        assert_eq!(store.records_after(&bob, &[reply_to(1)]).await?, []);
        assert_eq!(store.session_head(&bob, &session("s")).await?, None);

        let his = AgentTurnRecord { steps: json("[\"his\"]"), ..record(1, "s", 2) };
        store.put_record(&bob, his.clone()).await?;
        assert_eq!(store.session_head(&bob, &session("s")).await?, Some(his));
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(1, "s", 1)));
        Ok(())
    })
}

fn pruning_deletes_only_older_records(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.put_record(&alice(), record(1, "old", 99)).await?;
        store.put_record(&CallerScope::new("bob"), record(2, "old", -5)).await?;
        store.put_record(&alice(), record(3, "new", 100)).await?;
        assert_eq!(store.prune_records(UnixMillis(100)).await?, 2);
        assert_eq!(store.prune_records(UnixMillis(100)).await?, 0);
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, None);
        assert_eq!(store.session_head(&alice(), &session("old")).await?, None);
        assert_eq!(store.records_after(&alice(), &[reply_to(1)]).await?, []);
        assert_eq!(store.session_head(&alice(), &session("new")).await?, Some(record(3, "new", 100)));
        Ok(())
    })
}

fn a_large_prune_deletes_everything(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in 0..1_101 {
            let at = i64::try_from(number).unwrap_or_default();
            store.put_record(&alice(), record(number, &format!("s{number}"), at)).await?;
        }
        assert_eq!(store.prune_records(UnixMillis(1_100)).await?, 1_100);
        assert_eq!(
            store.record_for_request(&alice(), hash(1_100)).await?,
            Some(record(1_100, "s1100", 1_100))
        );
        Ok(())
    })
}

fn a_record_over_the_limit_is_refused_and_leaves_no_stale_head(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let of_size = |number: u64, bytes: usize| AgentTurnRecord {
            steps: json(&format!("\"{}\"", "x".repeat(bytes - 4))),
            ..record(number, "s", 1)
        };
        let largest = of_size(1, MAX_RECORD_BYTES);
        store.put_record(&alice(), largest.clone()).await?;
        let head = store.session_head(&alice(), &session("s")).await?;
        assert_eq!(head.map(|head| head.steps.as_str().len()), Some(MAX_RECORD_BYTES - 2));

        let refused = store.put_record(&alice(), of_size(2, MAX_RECORD_BYTES + 1)).await;
        assert!(
            matches!(&refused, Err(StoreError::RecordTooLarge { session, bytes })
                if session.as_str() == "s" && *bytes == MAX_RECORD_BYTES + 1),
            "{refused:?}"
        );
        assert_eq!(store.record_for_request(&alice(), hash(2)).await?, None);
        assert_eq!(store.session_head(&alice(), &session("s")).await?, None);
        assert!(store.record_for_request(&alice(), hash(1)).await?.is_some());
        Ok(())
    })
}

fn concurrent_writes_are_all_stored(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = alice();
        let all: Vec<AgentTurnRecord> =
            (0..32).map(|number| record(number, &format!("s{number}"), 1)).collect();
        try_join_all(all.iter().map(|one| store.put_record(&alice, one.clone()))).await?;
        let found = try_join_all(all.iter().map(|one| store.session_head(&alice, &one.session))).await?;
        assert_eq!(found, all.into_iter().map(Some).collect::<Vec<_>>());
        Ok(())
    })
}
