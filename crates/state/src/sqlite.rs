//! The store in an SQLite file: opening it safely. What it holds is in `sqlite/responses.rs`, `sqlite/usage.rs` and
//! `sqlite/records.rs`, why it fails in `sqlite/trouble.rs`.

mod file;
mod records;
mod responses;
mod schema;
mod trouble;
mod usage;

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool};

use crate::{Store, StoreError};
use trouble::Trouble;

/// How long a write waits for another program or connection that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a call waits for a connection: longer than [`BUSY_TIMEOUT`], so that the one ahead can give up
/// first.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Prepared statements kept per connection: more than this crate has.
const STATEMENTS_CACHED: usize = 32;

/// Page cache per connection, in the unit SQLite takes it: KiB as a negative number.
const PAGE_CACHE: &str = "-1024";

/// The write-ahead file shrinks back to this many bytes after a large write.
const WAL_BYTES_KEPT: &str = "4194304";

/// Rows that one statement of a prune deletes, so that other writers get their turn in between.
const ROWS_PER_PRUNE: i64 = 500;

/// A [`Store`] in one SQLite database.
///
/// The file is in WAL mode with `synchronous = NORMAL`: a commit reaches the system, not yet the disk, so
/// it survives the death of the process, costs no wait for the disk, and only a power cut can undo the last
/// few. That is the promise of [`Store`], and all that a cache of conversations and a tally of usage need.
/// Space that pruning frees is used again; the file does not shrink.
#[derive(Debug)]
pub struct SqliteStore {
    /// The one connection that every statement goes through that may change something: it keeps its page cache, which a
    /// write over another connection would make worthless, and two writers never find each other's lock.
    writes: SqlitePool,
    /// The one connection for everything else, so that who reads need not wait for who writes.
    reads: SqlitePool,
    medium: Medium,
    place: String,
}

/// What a database is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    File,
    /// It lives and dies with its only connection.
    Memory,
}

impl SqliteStore {
    /// Opens the database in that file, making file, folder and tables where they are missing.
    ///
    /// New files and folders are for the owner only. A file of another program, or of a newer toolgate, is
    /// refused and left as it was.
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
        place: String,
    ) -> Result<Self, StoreError> {
        let writes = one_connection(options.clone().thread_name(|_number| "store-write".to_owned()));
        let reads = match medium {
            // A statement that writes and is sent here all the same is refused.
            Medium::File => one_connection(
                options.pragma("query_only", "ON").thread_name(|_number| "store-read".to_owned()),
            ),
            // Every connection would have a database of its own, so there is exactly one.
            Medium::Memory => writes.clone(),
        };
        let store = Self { writes, reads, medium, place };
        schema::prepare(&store).await?;
        Ok(store)
    }

    /// Gives a connection back after a transaction. Where that failed, the file gets a new one: SQLite ends a transaction by
    /// itself when the disk is full, and the driver would take it for open from then on and refuse every other.
    fn give_back<T>(
        &self,
        mut connection: PoolConnection<Sqlite>,
        outcome: Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        if outcome.is_err() && self.medium == Medium::File {
            connection.close_on_drop();
        }
        outcome
    }

    /// Turns what the driver reports into an error that says what was being done, and where.
    fn failed(&self, doing: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
        move |error| Trouble::of(&error).into_error(doing, &self.place, Box::new(error))
    }
}

/// Writes the first page of the file. The number is SQLite's for applications to use, and this one does not use it.
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
            // Last, since the last one to leave tidies up the write-ahead file.
            self.writes.close().await;
        })
    }
}

fn one_connection(options: SqliteConnectOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A file does not hang up, so nothing need be checked, closed or opened again. Without these
        // three there is also no background task, and a database in memory keeps its only connection.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}

fn connection_options() -> SqliteConnectOptions {
    // None of these writes to the file: it may turn out not to be ours. WAL mode is set in `schema`.
    SqliteConnectOptions::new()
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        .synchronous(SqliteSynchronous::Normal)
        .statement_cache_capacity(STATEMENTS_CACHED)
        .pragma("cache_size", PAGE_CACHE)
        .pragma("journal_size_limit", WAL_BYTES_KEPT)
}

#[cfg(test)]
mod tests;
