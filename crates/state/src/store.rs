//! The store as one object, and [`open`], which opens it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{
    MemoryStore, QuestionStore, RecordStore, ResponseStore, RuleStore, SessionStore, SqliteStore, StoreError,
    StoreUrl, UsageStore,
};

/// Everything the gateway persists. Each concern is a trait; a store implements all of them.
///
/// Durability: what a method wrote before it returned `Ok` survives a crash of the process. A power failure may undo the
/// most recent writes, but no write is ever applied in part. [`MemoryStore`] and `sqlite::memory:` lose everything when
/// the process ends.
///
/// Dropping a returned future cancels the wait; the write may or may not have happened, and repeating it is safe.
pub trait Store:
    ResponseStore + UsageStore + RecordStore + SessionStore + QuestionStore + RuleStore + fmt::Debug
{
    /// Performs a write that changes nothing. An error means that the store does not accept writes at the moment.
    fn check_writable(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Closes the store and releases its files. Later calls fail.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens the store at this URL. Creates the file if it is missing and migrates its schema.
pub async fn open(url: &StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
    match url {
        StoreUrl::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreUrl::SqliteMemory => Ok(Arc::new(SqliteStore::in_memory().await?)),
        StoreUrl::SqliteFile(path) => Ok(Arc::new(SqliteStore::at(path).await?)),
    }
}
