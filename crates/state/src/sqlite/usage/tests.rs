//! How usage lies in the file: kinds, the view for people, and rows of earlier versions.

use std::time::Duration;

use sqlx::migrate::Migrator;

use super::*;
use crate::conformance::{batch, record};
use crate::sqlite::tests::{Folder, stranger};
use crate::sqlite::{SqliteStore, schema};
use crate::{CallerScope, Label, UsageRecord};

const DAY: i64 = 24 * 60 * 60 * 1_000;
const EVER: UnixMillis = UnixMillis(i64::MIN);

/// A row as the table had it when it still had texts, and as the view has it.
type Shown = (String, i64, String, String, String, String, u16, Counts);
type Counts = (i64, i64, i64, i64, i64, Option<i64>);

const SHOWN: &str = "
    SELECT turn_id, at_ms, caller, model, upstream, dialect, status,
        input, cache_read, cache_write, output, duration_ms, first_event_ms
    FROM usage_records ORDER BY at_ms, turn_id";

async fn shown(connection: &mut SqliteConnection) -> Vec<Shown> {
    let rows = sqlx::query(SHOWN).fetch_all(connection).await.unwrap();
    rows.iter()
        .map(|row| {
            let text = |column| row.get::<String, _>(column);
            let counts = (row.get(7), row.get(8), row.get(9), row.get(10), row.get(11), row.get(12));
            (text(0), row.get(1), text(2), text(3), text(4), text(5), row.get(6), counts)
        })
        .collect()
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap()
}

fn shown_of(record: &UsageRecord) -> Shown {
    let count = |tokens: TokenCount| i64::from(tokens.get());
    (
        record.turn_id.hyphenated().to_string(),
        record.at.0,
        record.caller.to_string(),
        record.model.to_string(),
        record.upstream.to_string(),
        record.dialect.to_string(),
        record.status,
        (
            count(record.input),
            count(record.cache_read),
            count(record.cache_write),
            count(record.output),
            millis(record.duration),
            record.first_event.map(millis),
        ),
    )
}

/// Records that differ in every column, in the order of the view.
fn various() -> Vec<UsageRecord> {
    let tokens = TokenCount::saturating;
    let most = tokens(u64::MAX);
    let bob = CallerScope::new("bob");
    vec![
        UsageRecord { status: 429, first_event: None, ..record(u128::MAX, 0) },
        record(0x0190_0000_0000_7fff_8fff_ffff_ffff_ffff, 5),
        UsageRecord { model: Label::new("claude"), cache_read: tokens(20), ..record(3, 5 + 30 * DAY) },
        UsageRecord {
            upstream: Label::new("it's \"ours\""),
            cache_write: tokens(30),
            ..record(4, 6 + 30 * DAY)
        },
        UsageRecord { caller: bob, dialect: Label::new(""), input: most, ..record(5, 7 + 30 * DAY) },
        UsageRecord { cache_read: most, cache_write: most, output: most, ..record(1 << 127, 8 + 31 * DAY) },
        record(1 << 63, 8 + 32 * DAY),
    ]
}

async fn count_of(table: &'static str, store: &SqliteStore) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
    sqlx::query_scalar(sql).fetch_one(&store.reads).await.unwrap()
}

async fn turns(store: &SqliteStore) -> u64 {
    store.usage_summary(EVER, UsageGroup::Caller).await.unwrap().iter().map(|row| row.turns).sum()
}

#[tokio::test]
async fn the_view_shows_people_what_was_recorded() {
    let folder = Folder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.record_usage(&batch(various())).await.unwrap();
    let expected: Vec<Shown> = various().iter().map(shown_of).collect();
    assert_eq!(shown(&mut stranger(&folder.file()).await).await, expected);
}

#[tokio::test]
async fn rows_of_an_earlier_version_are_kept_as_they_were() {
    let folder = Folder::new();
    let mut earlier = stranger(&folder.file()).await;
    let migrations = Migrator::with_migrations(schema::MIGRATIONS.iter().take(2).cloned().collect());
    sqlx::query(schema::SET_APPLICATION_ID).execute(&mut earlier).await.unwrap();
    migrations.run_direct(None, &mut earlier, false).await.unwrap();
    for record in &various() {
        let (turn_id, at, caller, model, upstream, dialect, status, counts) = shown_of(record);
        let (input, cache_read, cache_write, output, duration, first_event) = counts;
        sqlx::query("INSERT INTO usage_records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(at)
            .bind(turn_id)
            .bind(caller)
            .bind(model)
            .bind(upstream)
            .bind(dialect)
            .bind(status)
            .bind(input)
            .bind(cache_read)
            .bind(cache_write)
            .bind(output)
            .bind(duration)
            .bind(first_event)
            .execute(&mut earlier)
            .await
            .unwrap();
    }
    let before = shown(&mut earlier).await;
    earlier.close().await.unwrap();

    let store = SqliteStore::at(&folder.file()).await.unwrap();
    assert_eq!(shown(&mut stranger(&folder.file()).await).await, before);
    // They are the rows and the kinds that recording makes: nothing counts twice.
    let kinds = count_of("usage_kinds", &store).await;
    store.record_usage(&batch(various())).await.unwrap();
    assert_eq!(shown(&mut stranger(&folder.file()).await).await, before);
    assert_eq!(count_of("usage_kinds", &store).await, kinds);
    let sums = store.usage_summary(EVER, UsageGroup::Caller).await.unwrap();
    let fresh = SqliteStore::in_memory().await.unwrap();
    fresh.record_usage(&batch(various())).await.unwrap();
    assert_eq!(sums, fresh.usage_summary(EVER, UsageGroup::Caller).await.unwrap());
}

#[tokio::test]
async fn a_kind_that_was_rolled_back_is_not_remembered() {
    let folder = Folder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let mut other = stranger(&folder.file()).await;
    sqlx::query("CREATE TRIGGER trap BEFORE INSERT ON usage_rows BEGIN SELECT RAISE(ABORT, 'no'); END")
        .execute(&mut other)
        .await
        .unwrap();
    store.record_usage(&batch([record(1, 1)])).await.unwrap_err();
    assert_eq!(count_of("usage_kinds", &store).await, 0);
    sqlx::query("DROP TRIGGER trap").execute(&mut other).await.unwrap();
    store.record_usage(&batch([record(1, 1)])).await.unwrap();
    assert_eq!(shown(&mut other).await, [shown_of(&record(1, 1))]);
}

#[tokio::test]
async fn stores_on_one_file_share_kinds_and_neither_takes_them_from_the_other() {
    let folder = Folder::new();
    let one = SqliteStore::at(&folder.file()).await.unwrap();
    let two = SqliteStore::at(&folder.file()).await.unwrap();
    let by_bob = |turn, at| UsageRecord { caller: CallerScope::new("bob"), ..record(turn, at) };
    one.record_usage(&batch([record(1, 1), by_bob(2, 1)])).await.unwrap();
    two.record_usage(&batch([by_bob(3, 1), record(4, 1), record(1, 1)])).await.unwrap();
    one.record_usage(&batch([record(5, 1)])).await.unwrap();
    assert_eq!(count_of("usage_kinds", &one).await, 2);
    assert_eq!(count_of("usage_kinds", &two).await, 2);

    // One forgets what is old; what the other remembers of that time does no harm to what it records from now on.
    assert_eq!(one.prune_usage(UnixMillis(400 * DAY)).await.unwrap(), 5);
    assert_eq!(count_of("usage_kinds", &one).await, 0);
    let later = vec![record(6, 400 * DAY), by_bob(7, 400 * DAY)];
    two.record_usage(&batch(later.clone())).await.unwrap();
    let expected: Vec<Shown> = later.iter().map(shown_of).collect();
    assert_eq!(shown(&mut stranger(&folder.file()).await).await, expected);
    assert_eq!(turns(&one).await, 2);
}

#[tokio::test]
async fn kinds_are_pruned_with_the_last_rows_of_their_time_and_come_back() {
    let store = SqliteStore::in_memory().await.unwrap();
    store.record_usage(&batch([record(1, 30 * DAY - 1), record(2, 30 * DAY)])).await.unwrap();
    assert_eq!(count_of("usage_kinds", &store).await, 2);
    for (older_than, kinds_left, turns_left) in
        [(30 * DAY - 1, 2, 2), (30 * DAY, 1, 1), (60 * DAY - 1, 1, 0), (60 * DAY, 0, 0)]
    {
        store.prune_usage(UnixMillis(older_than)).await.unwrap();
        let left = (count_of("usage_kinds", &store).await, turns(&store).await);
        assert_eq!(left, (kinds_left, turns_left), "{older_than}");
    }
    store.record_usage(&batch([record(1, 1)])).await.unwrap();
    assert_eq!(turns(&store).await, 1);
}

#[tokio::test]
async fn one_batch_may_have_several_stretches_of_time_and_every_row_gets_the_kind_of_its_own() {
    let folder = Folder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    let by_bob = |turn, at| UsageRecord { caller: CallerScope::new("bob"), ..record(turn, at) };
    // To and fro between two stretches and two kinds, the first time learned and the second time known.
    let records = |from: u128| {
        let at = [1, 31 * DAY, 2, 31 * DAY + 1, 3, 31 * DAY + 2];
        (from..).zip(at).map(|(turn, at)| if turn % 4 < 2 { record(turn, at) } else { by_bob(turn, at) })
    };
    let mut expected = Vec::new();
    for from in [0, 100] {
        store.record_usage(&batch(records(from))).await.unwrap();
        expected.extend(records(from).map(|record| shown_of(&record)));
        expected.sort_by_key(|row| (row.1, row.0.clone()));
        assert_eq!(shown(&mut stranger(&folder.file()).await).await, expected);
        assert_eq!(count_of("usage_kinds", &store).await, 4);
    }
    // Each goes with its own time.
    assert_eq!(store.prune_usage(UnixMillis(30 * DAY)).await.unwrap(), 6);
    assert_eq!(count_of("usage_kinds", &store).await, 2);
    assert_eq!(turns(&store).await, 6);
}

#[tokio::test]
async fn the_ends_of_time_have_kinds_too() {
    let store = SqliteStore::in_memory().await.unwrap();
    store.record_usage(&batch([record(1, i64::MIN), record(2, -1), record(3, i64::MAX)])).await.unwrap();
    assert_eq!(store.prune_usage(UnixMillis(i64::MAX)).await.unwrap(), 2);
    assert_eq!(turns(&store).await, 1);
}

#[tokio::test]
async fn more_kinds_than_are_remembered_are_kept_all_the_same() {
    let store = SqliteStore::in_memory().await.unwrap();
    let models = kinds::MAX_REMEMBERED as u128 + 10;
    for from in [0, 1_000_000, 0] {
        let records = (0..models)
            .map(|turn| UsageRecord { model: Label::new(format!("model {turn}")), ..record(from + turn, 1) });
        store.record_usage(&batch(records)).await.unwrap();
        assert!(store.known_kinds.len() <= kinds::MAX_REMEMBERED);
    }
    assert_eq!(u128::try_from(count_of("usage_kinds", &store).await), Ok(models));
    assert_eq!(u128::from(turns(&store).await), 2 * models);
}
