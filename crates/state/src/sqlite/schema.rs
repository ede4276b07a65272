//! Checks the owner of the database file and migrates its schema when the store is opened.

use std::sync::LazyLock;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Connection, SqlSafeStr, SqliteConnection};
use tokio::time::sleep;

use super::SqliteStore;
use super::failure::FailureKind;
use crate::StoreError;

const OPENING: &str = "opening the store";

/// Marks a database as toolgate's: `tgat` in SQLite's field for this.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"tgat");
pub(super) const SET_APPLICATION_ID: &str = "PRAGMA application_id = 1952932212";

/// Together as long as the busy timeout.
const WAL_ATTEMPTS: u32 = 100;
const WAL_RETRY_AFTER: Duration = Duration::from_millis(50);

/// Every migration, oldest first.
pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    Migrator::with_migrations(vec![
        migration(1, "responses and usage", include_str!("../../migrations/0001_responses_and_usage.sql")),
        migration(2, "turn records", include_str!("../../migrations/0002_turn_records.sql")),
        migration(3, "usage kinds", include_str!("../../migrations/0003_usage_kinds.sql")),
        migration(4, "plain usage records", include_str!("../../migrations/0004_plain_usage_records.sql")),
        migration(5, "response items", include_str!("../../migrations/0005_response_items.sql")),
        migration(6, "sessions and turns", include_str!("../../migrations/0006_sessions_and_turns.sql")),
        migration(7, "questions and rules", include_str!("../../migrations/0007_questions_and_rules.sql")),
    ])
});

/// Checks that the database is toolgate's or empty, and runs the migrations.
pub(super) async fn prepare(store: &SqliteStore) -> Result<(), StoreError> {
    let mut connection = store.writes.acquire().await.map_err(store.failed(OPENING))?;
    // One transaction, with the write lock from its start: gateways that start on the same file wait for each other, and
    // an error leaves the file unchanged.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(store.failed(OPENING))?;
    refuse_foreign(store, &mut transaction).await?;
    sqlx::query(SET_APPLICATION_ID).execute(&mut *transaction).await.map_err(store.failed(OPENING))?;
    MIGRATIONS
        .run_direct(None, &mut *transaction, false)
        .await
        .map_err(|error| migration_failed(store, error))?;
    transaction.commit().await.map_err(store.failed(OPENING))?;
    switch_to_wal(store, &mut connection).await
}

async fn refuse_foreign(store: &SqliteStore, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let owner: i32 = sqlx::query_scalar("PRAGMA application_id")
        .fetch_one(&mut *connection)
        .await
        .map_err(store.failed(OPENING))?;
    if owner == APPLICATION_ID {
        return Ok(());
    }
    let tables: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_master")
        .fetch_one(connection)
        .await
        .map_err(store.failed(OPENING))?;
    if owner == 0 && tables == 0 {
        return Ok(());
    }
    Err(StoreError::Foreign { location: store.location.clone() })
}

/// WAL mode is stored in the file, so only the first call changes it.
///
/// The change needs an exclusive lock. SQLite's busy timeout does not apply to it, so this retries.
async fn switch_to_wal(store: &SqliteStore, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let switched = sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await;
        match switched {
            Ok(_) => return Ok(()),
            Err(error) if FailureKind::of(&error) == FailureKind::Busy && attempts < WAL_ATTEMPTS => {
                sleep(WAL_RETRY_AFTER).await;
            }
            Err(error) => return Err(store.failed(OPENING)(error)),
        }
    }
}

fn migration_failed(store: &SqliteStore, error: MigrateError) -> StoreError {
    let location = store.location.clone();
    if let MigrateError::VersionMissing(found) = error {
        let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
        return StoreError::NewerSchema { location, found, known };
    }
    let (MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)) = &error else {
        return StoreError::Migration { location, source: Box::new(error) };
    };
    match FailureKind::of(cause) {
        FailureKind::Other => StoreError::Migration { location, source: Box::new(error) },
        known @ (FailureKind::NotSqlite
        | FailureKind::Damaged
        | FailureKind::Full
        | FailureKind::ReadOnly
        | FailureKind::Busy) => known.into_error(OPENING, &location, Box::new(error)),
    }
}

fn migration(version: i64, description: &'static str, sql: &'static str) -> Migration {
    Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_sets_the_application_id_that_is_checked() {
        assert!(SET_APPLICATION_ID.ends_with(&format!(" {APPLICATION_ID}")));
    }
}
