//! Conformance cases for usage.

use std::time::Duration;

use futures_util::future::{BoxFuture, try_join_all};

use super::{Case, record};
use crate::{
    CallerScope, Label, MAX_SUMMARY_ROWS, Store, StoreError, TokenCount, UnixMillis, UsageGroup, UsageRecord,
    UsageTotals,
};

pub(super) const CASES: &[Case] = &[
    an_empty_store_has_an_empty_summary,
    totals_are_grouped_by_caller_and_by_model,
    a_repeated_record_counts_once,
    a_batch_of_any_size_is_stored_completely,
    the_largest_numbers_do_not_overflow,
    a_summary_contains_the_busiest_groups,
    pruned_records_are_not_counted,
    concurrent_writes_are_all_stored,
];

type Outcome<'a> = BoxFuture<'a, Result<(), StoreError>>;

const EVER: UnixMillis = UnixMillis(i64::MIN);

fn an_empty_store_has_an_empty_summary(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.record_usage(&[]).await?;
        assert_eq!(store.usage_summary(EVER, UsageGroup::Caller).await?, []);
        Ok(())
    })
}

fn totals_are_grouped_by_caller_and_by_model(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let bob = CallerScope::new("bob");
        let tokens = TokenCount::saturating;
        let records = [
            record(1, 99),
            UsageRecord { status: 429, output: tokens(0), first_event: None, ..record(2, 100) },
            UsageRecord { cache_read: tokens(20), cache_write: tokens(30), status: 399, ..record(3, 101) },
            UsageRecord { caller: bob, model: Label::new("claude"), status: 400, ..record(4, 102) },
        ];
        store.record_usage(&records).await?;

        let by_caller = store.usage_summary(UnixMillis(100), UsageGroup::Caller).await?;
        let alice = UsageTotals {
            group: "alice".to_owned(),
            turns: 2,
            failures: 1,
            input: 2,
            cache_read: 20,
            cache_write: 30,
            output: 3,
        };
        let bob = UsageTotals { group: "bob".to_owned(), ..totals(1, 1) };
        assert_eq!(by_caller, [alice.clone(), bob.clone()]);

        let by_model = store.usage_summary(UnixMillis(100), UsageGroup::Model).await?;
        let demo = UsageTotals { group: "demo".to_owned(), ..alice };
        let claude = UsageTotals { group: "claude".to_owned(), ..bob };
        assert_eq!(by_model, [demo, claude]);
        assert_eq!(store.usage_summary(UnixMillis(103), UsageGroup::Model).await?, []);
        Ok(())
    })
}

fn a_repeated_record_counts_once(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.record_usage(&[record(1, 1), record(2, 1)]).await?;
        store.record_usage(&[record(2, 1), record(3, 1), record(3, 1)]).await?;
        assert_eq!(store.usage_summary(EVER, UsageGroup::Model).await?, [totals(3, 0)]);
        // The key is time and turn id: the same turn at another time is another record.
        store.record_usage(&[record(3, 2)]).await?;
        assert_eq!(store.usage_summary(EVER, UsageGroup::Model).await?, [totals(4, 0)]);
        Ok(())
    })
}

fn a_batch_of_any_size_is_stored_completely(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let mut turns = 0;
        for size in [1, 7, 8, 9, 63, 64, 65, 256, 300, 511, 512, 1_200] {
            let records: Vec<_> = (turns..turns + size).map(|turn| record(u128::from(turn), 1)).collect();
            store.record_usage(&records).await?;
            turns += size;
            assert_eq!(store.usage_summary(EVER, UsageGroup::Model).await?, [totals(turns, 0)]);
        }
        Ok(())
    })
}

fn the_largest_numbers_do_not_overflow(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let most = TokenCount::saturating(u64::MAX);
        let largest = |turn| UsageRecord {
            input: most,
            cache_read: most,
            cache_write: most,
            output: most,
            status: u16::MAX,
            duration: Duration::MAX,
            first_event: Some(Duration::MAX),
            ..record(turn, i64::MAX)
        };
        store.record_usage(&(0..100).map(largest).collect::<Vec<_>>()).await?;
        let sum = 100 * u64::from(u32::MAX);
        let expected = UsageTotals {
            group: "demo".to_owned(),
            turns: 100,
            failures: 100,
            input: sum,
            cache_read: sum,
            cache_write: sum,
            output: sum,
        };
        assert_eq!(store.usage_summary(UnixMillis(i64::MAX), UsageGroup::Model).await?, [expected]);
        Ok(())
    })
}

fn a_summary_contains_the_busiest_groups(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let groups = MAX_SUMMARY_ROWS as u128 + 1;
        let of_own_model =
            |turn| UsageRecord { model: Label::new(format!("model {turn:04}")), ..record(turn, 1) };
        let mut batch: Vec<UsageRecord> = (0..groups).map(of_own_model).collect();
        batch.push(UsageRecord { model: Label::new("model 1000"), ..record(groups, 1) });
        store.record_usage(&batch).await?;

        let rows = store.usage_summary(EVER, UsageGroup::Model).await?;
        let names: Vec<&str> = rows.iter().map(|row| row.group.as_str()).collect();
        assert_eq!(names.len(), MAX_SUMMARY_ROWS);
        assert_eq!(names[..3], ["model 1000", "model 0000", "model 0001"]);
        assert_eq!(names.last(), Some(&"model 0998"));
        Ok(())
    })
}

fn pruned_records_are_not_counted(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let records: Vec<_> =
            (0_i32..1_200).map(|turn| record(turn.unsigned_abs().into(), turn.into())).collect();
        store.record_usage(&records).await?;
        assert_eq!(store.prune_usage(UnixMillis(1_100)).await?, 1_100);
        assert_eq!(store.prune_usage(UnixMillis(1_100)).await?, 0);
        assert_eq!(store.usage_summary(EVER, UsageGroup::Model).await?, [totals(100, 0)]);
        Ok(())
    })
}

fn concurrent_writes_are_all_stored(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        let batch = |writer: u128| (0..10).map(|turn| record(writer * 10 + turn, 1)).collect();
        let batches: Vec<Vec<UsageRecord>> = (0..16).map(batch).collect();
        try_join_all(batches.iter().map(|batch| store.record_usage(batch))).await?;
        assert_eq!(store.usage_summary(EVER, UsageGroup::Model).await?, [totals(160, 0)]);
        Ok(())
    })
}

/// The totals of this many of [`record`]'s records.
fn totals(turns: u64, failures: u64) -> UsageTotals {
    UsageTotals {
        group: "demo".to_owned(),
        turns,
        failures,
        input: turns,
        cache_read: 0,
        cache_write: 0,
        output: 3 * turns,
    }
}
