//! Conformance cases for records of agent turns.

use futures_util::future::{BoxFuture, try_join_all};
use toolgate_model::PrefixHash;
use uuid::Uuid;

use super::{Case, FIRST_REPLY, hash, json, session, turn_record as record};
use crate::{
    AgentTurnRecord, CallerScope, Label, MAX_RECORD_BYTES, Store, StoreError, ThreadPart, UnixMillis,
};

pub(super) const CASES: &[Case] = &[
    a_record_is_read_back_unchanged,
    an_incomplete_record_does_not_replace_a_complete_one,
    records_are_found_by_their_replies_in_the_requested_order,
    many_replies_are_looked_up_in_one_call,
    of_equal_requests_the_last_one_written_is_found,
    a_reply_is_delivered_once,
    turns_of_a_session_lead_to_the_last_complete_one,
    threads_of_a_session_do_not_mix,
    callers_do_not_see_each_others_records,
    pruning_deletes_only_older_records,
    turns_are_kept_as_long_as_their_session,
    a_large_prune_deletes_everything,
    a_record_over_the_limit_is_refused,
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

/// Another run of the request of `record(number, …)`.
fn second_run(number: u64, in_session: &str, at: i64) -> AgentTurnRecord {
    AgentTurnRecord { run: Uuid::from_u128(u128::MAX), ..record(number, in_session, at) }
}

fn of_equal_requests_the_last_one_written_is_found(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        // At the same time, so that only the order of writing distinguishes them.
        store.put_record(&alice(), record(1, "b", 5)).await?;
        store.put_record(&alice(), second_run(1, "a", 5)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(second_run(1, "a", 5)));
        assert_eq!(store.records_after(&alice(), &[reply_to(1)]).await?, [second_run(1, "a", 5)]);
        store.put_record(&alice(), record(1, "b", 5)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(record(1, "b", 5)));

        // A second run does not replace the first, whose reply the client may continue.
        let other = AgentTurnRecord { after: Some(reply_to(2)), ..second_run(1, "b", 6) };
        store.put_record(&alice(), other.clone()).await?;
        let both = store.records_after(&alice(), &[reply_to(1), reply_to(2)]).await?;
        assert_eq!(both, [record(1, "b", 5), other]);
        Ok(())
    })
}

fn a_reply_is_delivered_once(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (bob, run) = (CallerScope::new("bob"), record(1, "s", 1).run);
        store.mark_delivered(&alice(), run, UnixMillis(1)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, None);

        store.put_record(&alice(), record(1, "s", 1)).await?;
        store.put_record(&alice(), second_run(1, "s", 2)).await?;
        store.mark_delivered(&bob, run, UnixMillis(6)).await?;
        store.mark_delivered(&alice(), run, UnixMillis(7)).await?;
        store.mark_delivered(&alice(), run, UnixMillis(8)).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(second_run(1, "s", 2)));

        // More steps of the run are no reason to deliver it again.
        let more = AgentTurnRecord { steps: json("[1,2]"), ..record(1, "s", 2) };
        store.put_record(&alice(), more.clone()).await?;
        let found = store.record_for_request(&alice(), hash(1)).await?;
        assert_eq!(found, Some(AgentTurnRecord { delivered: Some(UnixMillis(7)), ..more }));
        Ok(())
    })
}

/// Turn `number` of a thread, which continues another turn.
fn in_thread(number: u64, thread: u64, continues: Option<u64>) -> AgentTurnRecord {
    let part = ThreadPart {
        agent: Label::new("claude"),
        thread: hash(FIRST_THREAD + thread),
        continues: continues.map(reply_to),
        messages: json(&format!("[{{\"said\":{number}}}]")),
    };
    AgentTurnRecord { thread: Some(part), ..record(number, "s", 5) }
}

/// The first number of a thread's hash in [`in_thread`].
const FIRST_THREAD: u64 = 2_000_000_000;

fn turns_of_a_session_lead_to_the_last_complete_one(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, bob, thread) = (alice(), CallerScope::new("bob"), hash(FIRST_THREAD));
        assert_eq!(store.turns_of_session(&alice, &session("s"), thread).await?, []);
        let turns = [in_thread(1, 0, None), in_thread(2, 0, Some(1)), in_thread(3, 0, Some(2))];
        for turn in &turns {
            let begun = AgentTurnRecord { after: None, reply: None, ..turn.clone() };
            store.put_record(&alice, begun).await?;
            store.put_record(&alice, turn.clone()).await?;
        }
        assert_eq!(store.turns_of_session(&alice, &session("s"), thread).await?, turns);
        assert_eq!(store.turns_of_session(&alice, &session("other"), thread).await?, []);
        assert_eq!(store.turns_of_session(&bob, &session("s"), thread).await?, []);

        // An unfinished turn is not part of the transcript.
        let begun = AgentTurnRecord { after: None, reply: None, ..in_thread(4, 0, Some(3)) };
        store.put_record(&alice, begun).await?;
        assert_eq!(store.turns_of_session(&alice, &session("s"), thread).await?, turns);

        // The client goes back to the first reply.
        let back = in_thread(5, 0, Some(1));
        store.put_record(&alice, back.clone()).await?;
        let found = store.turns_of_session(&alice, &session("s"), thread).await?;
        assert_eq!(found, [turns[0].clone(), back]);
        Ok(())
    })
}

fn threads_of_a_session_do_not_mix(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let (alice, claude) = (alice(), Label::new("claude"));
        assert_eq!(store.last_thread(&alice, &session("s"), &claude).await?, None);
        store.put_record(&alice, record(9, "s", 1)).await?;
        assert_eq!(store.last_thread(&alice, &session("s"), &claude).await?, None);
        for turn in [in_thread(1, 0, None), in_thread(2, 1, None), in_thread(3, 0, Some(1))] {
            store.put_record(&alice, turn).await?;
        }
        let found = store.turns_of_session(&alice, &session("s"), hash(FIRST_THREAD)).await?;
        assert_eq!(found, [in_thread(1, 0, None), in_thread(3, 0, Some(1))]);
        let found = store.turns_of_session(&alice, &session("s"), hash(FIRST_THREAD + 1)).await?;
        assert_eq!(found, [in_thread(2, 1, None)]);
        let last = store.last_thread(&alice, &session("s"), &claude).await?;
        assert_eq!(last, Some(hash(FIRST_THREAD + 1)));
        assert_eq!(store.last_thread(&alice, &session("s"), &Label::new("other")).await?, None);
        assert_eq!(store.last_thread(&CallerScope::new("bob"), &session("s"), &claude).await?, None);
        Ok(())
    })
}

fn callers_do_not_see_each_others_records(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let bob = CallerScope::new("bob");
        store.put_record(&alice(), record(1, "s", 1)).await?;
        assert_eq!(store.record_for_request(&bob, hash(1)).await?, None);
        assert_eq!(store.records_after(&bob, &[reply_to(1)]).await?, []);

        let his = AgentTurnRecord { steps: json("[\"his\"]"), ..record(1, "s", 2) };
        store.put_record(&bob, his.clone()).await?;
        assert_eq!(store.record_for_request(&bob, hash(1)).await?, Some(his));
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(record(1, "s", 1)));
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
        assert_eq!(store.records_after(&alice(), &[reply_to(1)]).await?, []);
        assert_eq!(store.record_for_request(&alice(), hash(3)).await?, Some(record(3, "new", 100)));
        Ok(())
    })
}

fn turns_are_kept_as_long_as_their_session(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let thread = hash(FIRST_THREAD);
        let early = in_thread(1, 0, None);
        let late = AgentTurnRecord { at: UnixMillis(100), ..in_thread(2, 0, Some(1)) };
        store.put_record(&alice(), early.clone()).await?;
        store.put_record(&alice(), late.clone()).await?;
        assert_eq!(store.prune_records(UnixMillis(100)).await?, 0);
        assert_eq!(store.turns_of_session(&alice(), &session("s"), thread).await?, [early, late]);
        assert_eq!(store.prune_records(UnixMillis(101)).await?, 2);
        assert_eq!(store.turns_of_session(&alice(), &session("s"), thread).await?, []);
        assert_eq!(store.session(&alice(), &session("s")).await?, None);
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

fn a_record_over_the_limit_is_refused(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let of_size = |number: u64, bytes: usize| {
            let mut turn = in_thread(number, 0, None);
            let others = turn.bytes() - turn.steps.as_str().len();
            turn.steps = json(&format!("\"{}\"", "x".repeat(bytes - others - 2)));
            turn
        };
        let largest = of_size(1, MAX_RECORD_BYTES);
        store.put_record(&alice(), largest.clone()).await?;
        assert_eq!(store.record_for_request(&alice(), hash(1)).await?, Some(largest));

        let refused = store.put_record(&alice(), of_size(2, MAX_RECORD_BYTES + 1)).await;
        assert!(
            matches!(&refused, Err(StoreError::RecordTooLarge { session, bytes })
                if session.as_str() == "s" && *bytes == MAX_RECORD_BYTES + 1),
            "{refused:?}"
        );
        assert_eq!(store.record_for_request(&alice(), hash(2)).await?, None);
        Ok(())
    })
}

fn concurrent_writes_are_all_stored(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let alice = alice();
        let all: Vec<AgentTurnRecord> =
            (0..32).map(|number| record(number, &format!("s{number}"), 1)).collect();
        try_join_all(all.iter().map(|one| store.put_record(&alice, one.clone()))).await?;
        let found = try_join_all(all.iter().map(|one| store.record_for_request(&alice, one.key))).await?;
        assert_eq!(found, all.into_iter().map(Some).collect::<Vec<_>>());
        Ok(())
    })
}
