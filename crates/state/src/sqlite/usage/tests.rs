//! The rows in the file, and the migration of rows of earlier schema versions.

use sqlx::migrate::Migrator;

use super::*;
use crate::conformance::record;
use crate::sqlite::tests::{TestFolder, plain_connection};
use crate::sqlite::{SqliteStore, schema};
use crate::{CallerScope, Label, TokenCount};

const DAY: i64 = 24 * 60 * 60 * 1_000;
const EVER: UnixMillis = UnixMillis(i64::MIN);

/// A row of `usage_records`.
type Columns = (String, i64, String, String, String, String, u16, Counts);
type Counts = (i64, i64, i64, i64, i64, Option<i64>);

const SELECT: &str = "
    SELECT turn_id, at_ms, caller, model, upstream, dialect, status,
        input, cache_read, cache_write, output, duration_ms, first_event_ms
    FROM usage_records ORDER BY at_ms, turn_id";

async fn rows(connection: &mut SqliteConnection) -> Vec<Columns> {
    let rows = sqlx::query(SELECT).fetch_all(connection).await.unwrap();
    rows.iter()
        .map(|row| {
            let text = |column| row.get::<String, _>(column);
            let counts = (row.get(7), row.get(8), row.get(9), row.get(10), row.get(11), row.get(12));
            (text(0), row.get(1), text(2), text(3), text(4), text(5), row.get(6), counts)
        })
        .collect()
}

fn columns_of(record: &UsageRecord) -> Columns {
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

/// Records that differ in every column, in the order of [`SELECT`].
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

/// A file with the first `migrations` migrations applied.
async fn earlier_version(folder: &TestFolder, migrations: usize) -> SqliteConnection {
    let mut connection = plain_connection(&folder.file()).await;
    let migrations = Migrator::with_migrations(schema::MIGRATIONS.iter().take(migrations).cloned().collect());
    sqlx::query(schema::SET_APPLICATION_ID).execute(&mut connection).await.unwrap();
    migrations.run_direct(None, &mut connection, false).await.unwrap();
    connection
}

/// Checks that a file of an earlier version that holds [`various`] still holds it after it is opened, once.
async fn check_migrated(folder: &TestFolder) {
    let expected: Vec<Columns> = various().iter().map(columns_of).collect();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    assert_eq!(rows(&mut plain_connection(&folder.file()).await).await, expected);
    // The keys are the same too: recording a turn again changes nothing.
    store.record_usage(&various()).await.unwrap();
    assert_eq!(rows(&mut plain_connection(&folder.file()).await).await, expected);
    let fresh = SqliteStore::in_memory().await.unwrap();
    fresh.record_usage(&various()).await.unwrap();
    assert_eq!(
        store.usage_summary(EVER, UsageGroup::Caller).await.unwrap(),
        fresh.usage_summary(EVER, UsageGroup::Caller).await.unwrap()
    );
}

#[tokio::test]
async fn each_record_is_a_row_with_ordinary_columns() {
    let folder = TestFolder::new();
    let store = SqliteStore::at(&folder.file()).await.unwrap();
    store.record_usage(&various()).await.unwrap();
    let expected: Vec<Columns> = various().iter().map(columns_of).collect();
    assert_eq!(rows(&mut plain_connection(&folder.file()).await).await, expected);
}

#[tokio::test]
async fn rows_of_the_first_schema_are_migrated() {
    let folder = TestFolder::new();
    let mut earlier = earlier_version(&folder, 2).await;
    for record in &various() {
        let (turn_id, at, caller, model, upstream, dialect, status, counts) = columns_of(record);
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
    earlier.close().await.unwrap();
    check_migrated(&folder).await;
}

#[tokio::test]
async fn packed_rows_of_the_third_schema_are_migrated_and_their_tables_dropped() {
    let folder = TestFolder::new();
    let mut earlier = earlier_version(&folder, 3).await;
    let pair = |upper: TokenCount, lower: TokenCount| {
        (u64::from(upper.get()) << 32 | u64::from(lower.get())).cast_signed()
    };
    for (kind, record) in (1_i64..).zip(&various()) {
        sqlx::query("INSERT INTO usage_kinds VALUES (?, ?, ?, ?, ?, ?, ?)")
            .bind(kind)
            .bind(record.at.0)
            .bind(record.caller.as_str())
            .bind(record.model.as_str())
            .bind(record.upstream.as_str())
            .bind(record.dialect.as_str())
            .bind(record.status)
            .execute(&mut earlier)
            .await
            .unwrap();
        let (turn_high, turn_low) = record.turn_id.as_u64_pair();
        sqlx::query("INSERT INTO usage_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(record.at.0)
            .bind(turn_high.cast_signed())
            .bind(turn_low.cast_signed())
            .bind(kind)
            .bind(pair(record.input, record.output))
            .bind(pair(record.cache_read, record.cache_write))
            .bind(millis(record.duration))
            .bind(record.first_event.map(millis))
            .execute(&mut earlier)
            .await
            .unwrap();
    }
    earlier.close().await.unwrap();
    check_migrated(&folder).await;

    let sql = "SELECT name FROM sqlite_master WHERE name LIKE '%usage%' ORDER BY name";
    let tables: Vec<String> =
        sqlx::query_scalar(sql).fetch_all(&mut plain_connection(&folder.file()).await).await.unwrap();
    assert_eq!(tables, ["usage_records"]);
}

#[test]
fn durations_are_stored_in_whole_milliseconds() {
    for (duration, expected) in [
        (Duration::ZERO, 0),
        (Duration::from_micros(1_999), 1),
        (Duration::from_millis(i64::MAX.unsigned_abs()), i64::MAX),
        (Duration::MAX, i64::MAX),
    ] {
        assert_eq!(millis(duration), expected, "{duration:?}");
    }
}
