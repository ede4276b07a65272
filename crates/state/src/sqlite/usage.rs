//! Usage records: one row each, a batch in one transaction.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, QueryBuilder, Row, Sqlite};

use super::SqliteStore;
use crate::usage::{FIRST_FAILURE_STATUS, busiest_first};
use crate::{MAX_SUMMARY_ROWS, StoreError, UnixMillis, UsageGroup, UsageRecord, UsageStore, UsageTotals};

const RECORDING: &str = "recording usage";
const SUMMING: &str = "summing up usage";
const PRUNING: &str = "pruning old usage";

/// Rows in one statement. There is a statement for each number of rows, and all of them fit into the connection's cache.
const ROWS_PER_INSERT: usize = 64;

const INSERT: &str = "
    INSERT OR IGNORE INTO usage_records (
        at_ms, turn_id, caller, model, upstream, dialect, status,
        input, cache_read, cache_write, output, duration_ms, first_event_ms
    ) ";

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
    fn record_usage<'a>(&'a self, records: &'a [UsageRecord]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut connection = self.writes.acquire().await.map_err(self.failed(RECORDING))?;
            let outcome = insert(&mut connection, records).await;
            self.release(connection, outcome).map_err(self.failed(RECORDING))
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
                .fetch_all(&self.reads)
                .await
                .map_err(self.failed(SUMMING))?;
            let totals: Result<Vec<_>, _> = rows.iter().map(read_row).collect();
            // Sorted again, since databases differ in how they compare names.
            totals.map(busiest_first).map_err(self.failed(SUMMING))
        })
    }

    fn prune_usage(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.prune(PRUNE, older_than, PRUNING))
    }
}

async fn insert(connection: &mut SqliteConnection, records: &[UsageRecord]) -> Result<(), sqlx::Error> {
    // IMMEDIATE takes the write lock here, so that no later statement finds it taken.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for rows in records.chunks(ROWS_PER_INSERT) {
        QueryBuilder::<Sqlite>::new(INSERT)
            .push_values(rows, |mut row, record| {
                row.push_bind(record.at.0)
                    .push_bind(record.turn_id.hyphenated().to_string())
                    .push_bind(record.caller.shared())
                    .push_bind(record.model.shared())
                    .push_bind(record.upstream.shared())
                    .push_bind(record.dialect.shared())
                    .push_bind(record.status)
                    .push_bind(record.input.get())
                    .push_bind(record.cache_read.get())
                    .push_bind(record.cache_write.get())
                    .push_bind(record.output.get())
                    .push_bind(millis(record.duration))
                    .push_bind(record.first_event.map(millis));
            })
            .build()
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
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

#[cfg(test)]
mod tests;
