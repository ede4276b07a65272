//! Usage records. Many rows go into one statement: each statement is a
//! trip to the connection's thread, and that trip would cost more than the row.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};
use uuid::Uuid;

use super::SqliteStore;
use crate::usage::{FIRST_FAILURE_STATUS, busiest_first};
use crate::{MAX_SUMMARY_ROWS, StoreError, UnixMillis, UsageGroup, UsageRecord, UsageStore, UsageTotals};

const RECORDING: &str = "recording usage";
const SUMMING: &str = "summing up usage";

/// A batch is cut into statements of these many rows, largest first, so that few different statements are
/// prepared and each is used again.
const ROWS_PER_INSERT: [usize; 3] = [64, 8, 1];

const COLUMNS: usize = 13;

/// One statement for each of [`ROWS_PER_INSERT`].
static INSERTS: LazyLock<[String; ROWS_PER_INSERT.len()]> = LazyLock::new(|| ROWS_PER_INSERT.map(insert_sql));

const PRUNE: &str = "
    DELETE FROM usage_records WHERE (at_ms, turn_id) IN
        (SELECT at_ms, turn_id FROM usage_records WHERE at_ms < $1 LIMIT $2)";

macro_rules! summary_sql {
    ($group:literal) => {
        concat!(
            "SELECT ",
            $group,
            " AS name, COUNT(*) AS turns,
                CAST(SUM(CASE WHEN status >= $1 THEN 1 ELSE 0 END) AS BIGINT) AS failures,
                CAST(SUM(input) AS BIGINT) AS input,
                CAST(SUM(cache_read) AS BIGINT) AS cache_read,
                CAST(SUM(cache_write) AS BIGINT) AS cache_write,
                CAST(SUM(output) AS BIGINT) AS output
            FROM usage_records WHERE at_ms >= $2
            GROUP BY ",
            $group,
            " ORDER BY turns DESC, name LIMIT $3"
        )
    };
}

impl UsageStore for SqliteStore {
    fn record_usage(&self, records: Vec<UsageRecord>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if records.is_empty() {
                return Ok(());
            }
            let mut connection = self.pool.acquire().await.map_err(self.failed(RECORDING))?;
            let outcome = insert(&mut connection, &records).await;
            self.give_back(connection, outcome).map_err(self.failed(RECORDING))
        })
    }

    fn usage_summary(
        &self,
        since: UnixMillis,
        by: UsageGroup,
    ) -> BoxFuture<'_, Result<Vec<UsageTotals>, StoreError>> {
        let sql = match by {
            UsageGroup::Caller => summary_sql!("caller"),
            UsageGroup::Model => summary_sql!("model"),
        };
        Box::pin(async move {
            let rows = sqlx::query(sql)
                .bind(FIRST_FAILURE_STATUS)
                .bind(since.0)
                .bind(i64::try_from(MAX_SUMMARY_ROWS).unwrap_or(i64::MAX))
                .fetch_all(&self.pool)
                .await
                .map_err(self.failed(SUMMING))?;
            let totals: Result<Vec<_>, _> = rows.iter().map(read_row).collect();
            // Sorted again, since databases differ in how they compare names.
            totals.map(busiest_first).map_err(self.failed(SUMMING))
        })
    }

    fn prune_usage(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.prune(PRUNE, older_than, "pruning old usage"))
    }
}

type Insert = Query<'static, Sqlite, SqliteArguments>;

fn bind_record(insert: Insert, record: &UsageRecord) -> Insert {
    let UsageRecord {
        turn_id,
        at,
        caller,
        model,
        upstream,
        dialect,
        status,
        input,
        cache_read,
        cache_write,
        output,
        duration,
        first_event,
    } = record;
    let mut id_text = Uuid::encode_buffer();
    let turn_id: &str = turn_id.hyphenated().encode_lower(&mut id_text);
    // Shared texts are bound as they are; of any other kind the statement would make two copies.
    insert
        .bind(Arc::<str>::from(turn_id))
        .bind(at.0)
        .bind(caller.shared())
        .bind(model.shared())
        .bind(upstream.shared())
        .bind(dialect.shared())
        .bind(i32::from(*status))
        .bind(i64::from(input.get()))
        .bind(i64::from(cache_read.get()))
        .bind(i64::from(cache_write.get()))
        .bind(i64::from(output.get()))
        .bind(millis(*duration))
        .bind(first_event.map(millis))
}

fn read_row(row: &SqliteRow) -> Result<UsageTotals, sqlx::Error> {
    Ok(UsageTotals {
        group: row.try_get("name")?,
        turns: count(row, "turns")?,
        failures: count(row, "failures")?,
        input: count(row, "input")?,
        cache_read: count(row, "cache_read")?,
        cache_write: count(row, "cache_write")?,
        output: count(row, "output")?,
    })
}

fn count(row: &SqliteRow, column: &'static str) -> Result<u64, sqlx::Error> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number)
        .map_err(|error| sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(error) })
}

/// Three hundred million years is where a longer duration stays.
fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

async fn insert(connection: &mut SqliteConnection, records: &[UsageRecord]) -> Result<(), sqlx::Error> {
    // IMMEDIATE: the lock is waited for here, once, and no statement after it can find it taken.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut rest = records;
    for (rows, sql) in ROWS_PER_INSERT.into_iter().zip(INSERTS.iter()) {
        let (full, remainder) = rest.split_at(rest.len() - rest.len() % rows);
        for chunk in full.chunks_exact(rows) {
            let insert = chunk.iter().fold(sqlx::query(sql.as_str()), bind_record);
            insert.execute(&mut *transaction).await?;
        }
        rest = remainder;
    }
    transaction.commit().await
}

fn insert_sql(rows: usize) -> String {
    // Plain question marks, for `$1` would be a name: SQLite looks names up one after the other, which with hundreds
    // of them took most of the time of a write.
    let row = format!("({})", ["?"; COLUMNS].join(", "));
    let values = vec![row; rows];
    format!(
        "INSERT INTO usage_records (turn_id, at_ms, caller, model, upstream, dialect, status,
            input, cache_read, cache_write, output, duration_ms, first_event_ms)
        VALUES {} ON CONFLICT (at_ms, turn_id) DO NOTHING",
        values.join(", ")
    )
}
