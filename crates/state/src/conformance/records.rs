//! The battery's cases about records of turns.

use futures_util::future::{BoxFuture, try_join_all};
use toolgate_model::PrefixHash;

use super::{Case, REPLIES_FROM, hash, json, session, turn_record as record};
use crate::{CallerScope, MAX_RECORD_BYTES, Store, StoreError, TurnRecord, UnixMillis};

pub(super) const CASES: &[Case] = &[
    a_record_comes_back_whole,
    a_complete_record_stays_complete,
    records_are_found_by_their_replies_in_order,
    many_replies_are_looked_up_at_once,
    the_head_of_a_session_is_what_was_kept_last,
    callers_do_not_see_one_another,
    pruning_takes_only_what_is_older,
    a_large_prune_takes_everything,
    a_record_over_the_limit_is_refused_and_leaves_no_stale_head,
    many_writers_lose_nothing,
];

type Outcome<'a> = BoxFuture<'a, Result<(), StoreError>>;

fn alice() -> CallerScope {
    CallerScope::new("alice")
}

fn reply_to(number: u64) -> PrefixHash {
    hash(REPLIES_FROM + number)
}

fn cut_short(number: u64, in_session: &str, at: i64) -> TurnRecord {
    TurnRecord { after: None, reply: None, steps: json("[]"), ..record(number, in_session, at) }
}

fn a_record_comes_back_whole(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.record_of(&alice(), hash(1)).await?, None);
        let whole = TurnRecord {
            steps: json("[ {\"text\":\"quote ' backslash \\\\ emoji 🦀 line\\n\\u0000\"} ]"),
            reply: Some(json("{\"b\":1.0, \"a\":2}")),
            ..record(1, "s", 1_763_000_000_123)
        };
        store.keep_record(&alice(), whole.clone()).await?;
        let kept = store.record_of(&alice(), hash(1)).await?;
        // Byte for byte: a JSON text is equal to another that only means the same.
        let bytes = |record: &TurnRecord| {
            (record.steps.as_str().to_owned(), record.reply.as_ref().map(|reply| reply.as_str().to_owned()))
        };
        assert_eq!(kept.as_ref().map(bytes), Some(bytes(&whole)));
        assert_eq!(kept, Some(whole));
        store.keep_record(&alice(), cut_short(2, "s", 2)).await?;
        assert_eq!(store.record_of(&alice(), hash(2)).await?, Some(cut_short(2, "s", 2)));
        Ok(())
    })
}

fn a_complete_record_stays_complete(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.keep_record(&alice(), cut_short(1, "s", 1)).await?;
        store.keep_record(&alice(), record(1, "s", 2)).await?;
        assert_eq!(store.record_of(&alice(), hash(1)).await?, Some(record(1, "s", 2)));
        store.keep_record(&alice(), cut_short(1, "s", 3)).await?;
        assert_eq!(store.record_of(&alice(), hash(1)).await?, Some(record(1, "s", 2)));

        // Said again in another way, the later reply counts and the earlier one leads nowhere.
        let other = TurnRecord { after: Some(reply_to(9)), steps: json("[9]"), ..record(1, "s", 4) };
        store.keep_record(&alice(), other.clone()).await?;
        assert_eq!(store.records_after(&alice(), &[reply_to(1)]).await?, []);
        assert_eq!(store.records_after(&alice(), &[reply_to(9)]).await?, [other]);
        Ok(())
    })
}

fn records_are_found_by_their_replies_in_order(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in 1..=4 {
            store.keep_record(&alice(), record(number, "s", 1)).await?;
        }
        store.keep_record(&alice(), cut_short(5, "s", 1)).await?;
        let asked = [reply_to(3), hash(1), reply_to(8), reply_to(1), reply_to(3), hash(5)];
        let found = store.records_after(&alice(), &asked).await?;
        assert_eq!(found, [record(3, "s", 1), record(1, "s", 1)]);
        assert_eq!(store.records_after(&alice(), &[]).await?, []);
        Ok(())
    })
}

fn many_replies_are_looked_up_at_once(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in (0..1_000).step_by(100) {
            store.keep_record(&alice(), record(number, "s", 1)).await?;
        }
        let asked: Vec<PrefixHash> = (0..1_000).map(reply_to).collect();
        let found = store.records_after(&alice(), &asked).await?;
        let expected: Vec<TurnRecord> =
            (0..1_000).step_by(100).map(|number| record(number, "s", 1)).collect();
        assert_eq!(found, expected);
        Ok(())
    })
}

fn the_head_of_a_session_is_what_was_kept_last(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.session_head(&alice(), &session("s")).await?, None);
        // At the same moment, so that only the order of keeping tells them apart.
        for number in [1, 3, 2] {
            store.keep_record(&alice(), record(number, "s", 5)).await?;
        }
        store.keep_record(&alice(), record(4, "other", 5)).await?;
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(2, "s", 5)));
        store.keep_record(&alice(), record(1, "s", 6)).await?;
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(1, "s", 6)));
        // What was cut short comes again, after the same last turn.
        store.keep_record(&alice(), cut_short(5, "s", 7)).await?;
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(1, "s", 6)));
        Ok(())
    })
}

fn callers_do_not_see_one_another(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let bob = CallerScope::new("bob");
        store.keep_record(&alice(), record(1, "s", 1)).await?;
        assert_eq!(store.record_of(&bob, hash(1)).await?, None);
        assert_eq!(store.records_after(&bob, &[reply_to(1)]).await?, []);
        assert_eq!(store.session_head(&bob, &session("s")).await?, None);

        let his = TurnRecord { steps: json("[\"his\"]"), ..record(1, "s", 2) };
        store.keep_record(&bob, his.clone()).await?;
        assert_eq!(store.session_head(&bob, &session("s")).await?, Some(his));
        assert_eq!(store.session_head(&alice(), &session("s")).await?, Some(record(1, "s", 1)));
        Ok(())
    })
}

fn pruning_takes_only_what_is_older(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.keep_record(&alice(), record(1, "old", 99)).await?;
        store.keep_record(&CallerScope::new("bob"), record(2, "old", -5)).await?;
        store.keep_record(&alice(), record(3, "new", 100)).await?;
        assert_eq!(store.prune_records(UnixMillis(100)).await?, 2);
        assert_eq!(store.prune_records(UnixMillis(100)).await?, 0);
        assert_eq!(store.record_of(&alice(), hash(1)).await?, None);
        assert_eq!(store.session_head(&alice(), &session("old")).await?, None);
        assert_eq!(store.records_after(&alice(), &[reply_to(1)]).await?, []);
        assert_eq!(store.session_head(&alice(), &session("new")).await?, Some(record(3, "new", 100)));
        Ok(())
    })
}

fn a_large_prune_takes_everything(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for number in 0..1_101 {
            let at = i64::try_from(number).unwrap_or_default();
            store.keep_record(&alice(), record(number, &format!("s{number}"), at)).await?;
        }
        assert_eq!(store.prune_records(UnixMillis(1_100)).await?, 1_100);
        assert_eq!(store.record_of(&alice(), hash(1_100)).await?, Some(record(1_100, "s1100", 1_100)));
        Ok(())
    })
}

fn a_record_over_the_limit_is_refused_and_leaves_no_stale_head(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let of_size = |number: u64, bytes: usize| TurnRecord {
            steps: json(&format!("\"{}\"", "x".repeat(bytes - 4))),
            ..record(number, "s", 1)
        };
        let largest = of_size(1, MAX_RECORD_BYTES);
        store.keep_record(&alice(), largest.clone()).await?;
        let kept = store.session_head(&alice(), &session("s")).await?;
        assert_eq!(kept.map(|kept| kept.steps.as_str().len()), Some(MAX_RECORD_BYTES - 2));

        let refusal = store.keep_record(&alice(), of_size(2, MAX_RECORD_BYTES + 1)).await;
        assert!(
            matches!(&refusal, Err(StoreError::RecordTooLarge { session, bytes })
                if session.as_str() == "s" && *bytes == MAX_RECORD_BYTES + 1),
            "{refusal:?}"
        );
        assert_eq!(store.record_of(&alice(), hash(2)).await?, None);
        assert_eq!(store.session_head(&alice(), &session("s")).await?, None);
        assert!(store.record_of(&alice(), hash(1)).await?.is_some());
        Ok(())
    })
}

fn many_writers_lose_nothing(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = alice();
        let all: Vec<TurnRecord> = (0..32).map(|number| record(number, &format!("s{number}"), 1)).collect();
        try_join_all(all.iter().map(|one| store.keep_record(&alice, one.clone()))).await?;
        let found = try_join_all(all.iter().map(|one| store.session_head(&alice, &one.session))).await?;
        assert_eq!(found, all.into_iter().map(Some).collect::<Vec<_>>());
        Ok(())
    })
}
