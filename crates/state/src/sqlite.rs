//! The SQLite store: connections and opening. Each trait is implemented in a file of its own below `sqlite/`;
//! `sqlite/failure.rs` classifies errors.

mod columns;
mod failure;
mod file;
mod questions;
mod records;
mod responses;
mod rules;
mod schema;
mod sessions;
mod usage;

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool};

use crate::{Store, StoreError};
use failure::FailureKind;

/// How long a write waits for another program or connection that holds the write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a call waits for the connection: longer than [`BUSY_TIMEOUT`], so that the call before it can time out first.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Prepared statements cached per connection: more than this crate has.
const CACHED_STATEMENTS: usize = 64;

/// Page cache per connection. SQLite reads a negative number as KiB.
const PAGE_CACHE: &str = "-1024";

/// The write-ahead file is truncated to this many bytes after a large write.
const MAX_WAL_BYTES: &str = "4194304";

/// Rows that one statement of a prune deletes. Other writers run between two statements.
const ROWS_PER_PRUNE: i64 = 500;

/// A [`Store`] in one SQLite database.
///
/// The file is in WAL mode with `synchronous = NORMAL`: a commit is handed to the operating system without waiting for
/// the disk. It survives a crash of the process; only a power failure can undo the last commits. This is the durability
/// that [`Store`] promises. Space freed by pruning is reused; the file does not shrink.
#[derive(Debug)]
pub struct SqliteStore {
    /// The only connection that writes. Its page cache stays valid, because no other connection changes the file, and
    /// writers never wait for each other's lock.
    writes: SqlitePool,
    /// The connection for reads, which need not wait for writes.
    reads: SqlitePool,
    medium: Medium,
    location: String,
}

/// Where a database lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    File,
    /// The database is lost when its only connection closes.
    Memory,
}

impl SqliteStore {
    /// Opens the database in this file. Creates the file, its folder and the tables if they are missing.
    ///
    /// New files and folders are accessible by their owner only. A file of another program, or of a newer toolgate, is
    /// refused and not changed.
    pub async fn at(path: &Path) -> Result<Self, StoreError> {
        file::create_if_missing(path)?;
        let options = connection_options().filename(path);
        Self::connect(options, Medium::File, path.display().to_string()).await
    }

    /// Opens a new database in memory.
    pub async fn in_memory() -> Result<Self, StoreError> {
        Self::connect(connection_options().in_memory(true), Medium::Memory, ":memory:".to_owned()).await
    }

    async fn connect(
        options: SqliteConnectOptions,
        medium: Medium,
        location: String,
    ) -> Result<Self, StoreError> {
        let writes = one_connection(options.clone().thread_name(|_number| "store-write".to_owned()));
        let reads = match medium {
            // Rejects statements that write.
            Medium::File => one_connection(
                options.pragma("query_only", "ON").thread_name(|_number| "store-read".to_owned()),
            ),
            // Each connection would have its own database, so there is exactly one.
            Medium::Memory => writes.clone(),
        };
        let store = Self { writes, reads, medium, location };
        schema::prepare(&store).await?;
        Ok(store)
    }

    /// Releases a connection after a transaction. After an error the connection is closed: SQLite rolls back by itself when
    /// the disk is full, and the driver would consider the transaction still open and refuse every later one.
    fn release<T>(
        &self,
        mut connection: PoolConnection<Sqlite>,
        outcome: Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        if outcome.is_err() && self.medium == Medium::File {
            connection.close_on_drop();
        }
        outcome
    }

    /// Converts a driver error into one that names the operation and the database.
    fn failed(&self, operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
        move |error| FailureKind::of(&error).into_error(operation, &self.location, Box::new(error))
    }
}

/// Writes the first page of the file and changes nothing: `user_version` is a number for applications, unused here.
const WRITE_NOTHING: &str = "PRAGMA user_version = 0";

impl Store for SqliteStore {
    fn check_writable(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let written = sqlx::query(WRITE_NOTHING).execute(&self.writes).await;
            written.map(drop).map_err(self.failed("checking that the store can be written"))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.reads.close().await;
            // Last: the last connection to close removes the write-ahead file.
            self.writes.close().await;
        })
    }
}

fn one_connection(options: SqliteConnectOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A connection to a file does not break, so it is neither checked nor replaced. A database in memory would be
        // lost with its connection.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}

fn connection_options() -> SqliteConnectOptions {
    // None of these writes to the file, which may belong to another program. WAL mode is set in `schema`.
    SqliteConnectOptions::new()
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        .synchronous(SqliteSynchronous::Normal)
        .statement_cache_capacity(CACHED_STATEMENTS)
        .pragma("cache_size", PAGE_CACHE)
        .pragma("journal_size_limit", MAX_WAL_BYTES)
}

#[cfg(test)]
mod tests;
