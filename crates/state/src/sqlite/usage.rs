//! Usage records. Many rows go into one statement: each statement is a trip to the connection's thread, and that trip
//! would cost more than the row. A row is numbers only, since texts cost more than all the rest; what they say is in
//! `usage/kinds.rs`.

mod kinds;

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments, Connection, Row};

use super::SqliteStore;
use crate::usage::{FIRST_FAILURE_STATUS, busiest_first};
use crate::usage_batch::{Millis, UsageTurn};
use crate::{
    MAX_SUMMARY_ROWS, StoreError, TokenCount, UnixMillis, UsageBatch, UsageGroup, UsageStore, UsageTotals,
};
use kinds::{BatchKinds, KindId, LearnedKinds};

pub(super) use kinds::KnownKinds;

const RECORDING: &str = "recording usage";
const SUMMING: &str = "summing up usage";
const PRUNING: &str = "pruning old usage";

/// A batch is cut into statements of these many rows, largest first, so that few different statements are
/// prepared and each is used again. Measured: a quarter of a second of a busy gateway, 2,750 rows, costs a quarter less
/// CPU time in pieces of 512 than of 64 and somewhat less than of 256; in pieces of 1,024 it costs no less.
const ROWS_PER_INSERT: [usize; 6] = [512, 128, 32, 8, 2, 1];

const COLUMNS: usize = 8;

/// One statement for each of [`ROWS_PER_INSERT`].
static INSERTS: LazyLock<[String; ROWS_PER_INSERT.len()]> = LazyLock::new(|| ROWS_PER_INSERT.map(insert_sql));

const PRUNE: &str = "
    DELETE FROM usage_rows WHERE (at_ms, turn_high, turn_low) IN
        (SELECT at_ms, turn_high, turn_low FROM usage_rows WHERE at_ms < $1 LIMIT $2)";

/// Summed up by kind first, so that names are compared once for each kind and not for each row.
macro_rules! summary_sql {
    ($group:literal) => {
        concat!(
            "SELECT ",
            $group,
            " AS name, CAST(SUM(kind_turns) AS BIGINT) AS turns,
                CAST(SUM(CASE WHEN status >= $1 THEN kind_turns ELSE 0 END) AS BIGINT) AS failures,
                CAST(SUM(kind_input) AS BIGINT) AS input,
                CAST(SUM(kind_cache_read) AS BIGINT) AS cache_read,
                CAST(SUM(kind_cache_write) AS BIGINT) AS cache_write,
                CAST(SUM(kind_output) AS BIGINT) AS output
            FROM (
                SELECT kind, COUNT(*) AS kind_turns,
                    SUM(tokens >> 32 & 0xffffffff) AS kind_input,
                    SUM(cached >> 32 & 0xffffffff) AS kind_cache_read,
                    SUM(cached & 0xffffffff) AS kind_cache_write,
                    SUM(tokens & 0xffffffff) AS kind_output
                FROM usage_rows WHERE at_ms >= $2 GROUP BY kind
            ) JOIN usage_kinds ON usage_kinds.id = kind
            GROUP BY ",
            $group,
            " ORDER BY turns DESC, name LIMIT $3"
        )
    };
}

impl UsageStore for SqliteStore {
    fn record_usage<'a>(&'a self, batch: &'a UsageBatch) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            if batch.is_empty() {
                return Ok(());
            }
            let mut connection = self.writes.acquire().await.map_err(self.failed(RECORDING))?;
            let outcome = insert(&mut connection, &self.known_kinds, batch).await;
            let learned = self.give_back(connection, outcome).map_err(self.failed(RECORDING))?;
            self.known_kinds.remember(learned);
            Ok(())
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
        Box::pin(async move {
            let pruned = self.prune(PRUNE, older_than, PRUNING).await?;
            let outcome = self.prune(kinds::PRUNE, older_than, PRUNING).await;
            // All of them: another gateway, one with a wrong clock say, may have pruned more than this one.
            self.known_kinds.forget();
            outcome?;
            Ok(pruned)
        })
    }
}

/// Two counts as one number, as the table has them.
fn pair(upper: TokenCount, lower: TokenCount) -> i64 {
    (u64::from(upper.get()) << 32 | u64::from(lower.get())).cast_signed()
}

/// Adds the values of one row, in the order of its columns.
fn bind(turn: &UsageTurn, kind: KindId, arguments: &mut SqliteArguments) -> Result<(), BoxDynError> {
    let (turn_high, turn_low) = turn.turn_id.as_u64_pair();
    arguments.add(turn.at.0)?;
    arguments.add(turn_high.cast_signed())?;
    arguments.add(turn_low.cast_signed())?;
    arguments.add(kind.0)?;
    arguments.add(pair(turn.input, turn.output))?;
    arguments.add(pair(turn.cache_read, turn.cache_write))?;
    arguments.add(turn.duration.get())?;
    arguments.add(turn.first_event.map(Millis::get))
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

/// Writes the batch, and says which kinds it had to look up or add.
async fn insert(
    connection: &mut SqliteConnection,
    known: &KnownKinds,
    batch: &UsageBatch,
) -> Result<LearnedKinds, sqlx::Error> {
    // IMMEDIATE: the lock is waited for here, once, and no statement after it can find it taken.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let mut kinds = BatchKinds::new(batch, known);
    let mut rest = batch.turns();
    for (rows, sql) in ROWS_PER_INSERT.into_iter().zip(INSERTS.iter()) {
        while let Some((piece, behind)) = rest.split_at_checked(rows) {
            let mut arguments = SqliteArguments::default();
            arguments.reserve(rows * COLUMNS, 0);
            for turn in piece {
                let kind = kinds.id_of(turn, &mut transaction).await?;
                bind(turn, kind, &mut arguments).map_err(sqlx::Error::Encode)?;
            }
            sqlx::query_with(sql.as_str(), arguments).execute(&mut *transaction).await?;
            rest = behind;
        }
    }
    transaction.commit().await?;
    Ok(kinds.learned())
}

fn insert_sql(rows: usize) -> String {
    // Plain question marks, for `$1` would be a name: SQLite looks names up one after the other, which with hundreds
    // of them took most of the time of a write.
    let row = format!("({})", ["?"; COLUMNS].join(","));
    let values = vec![row; rows];
    // IGNORE rather than ON CONFLICT: a statement that cannot fail halfway keeps no journal of its own.
    format!(
        "INSERT OR IGNORE INTO usage_rows (at_ms, turn_high, turn_low, kind,
            tokens, cached, duration_ms, first_event_ms)
        VALUES {}",
        values.join(",")
    )
}

#[cfg(test)]
mod tests;
