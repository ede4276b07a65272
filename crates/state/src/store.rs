//! The whole store as one object, and the door to it: [`open`].

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{MemoryStore, RecordStore, ResponseStore, SqliteStore, StoreError, StoreUrl, UsageStore};

/// Everything the gateway remembers. Each concern is a trait of its own; a store is all of them.
///
/// Durability: what a method wrote before it returned `Ok` survives a crash of the process. A power cut
/// may undo the last moments of writing, never more than that and never by halves. [`MemoryStore`] and
/// `sqlite::memory:` keep these promises only for as long as the process lives.
///
/// Dropping a returned future gives up waiting; whether the write happened is then unknown, and doing it
/// again is safe.
pub trait Store: ResponseStore + UsageStore + RecordStore + fmt::Debug {
    /// Writes something that changes nothing, to find out whether the store still takes writes.
    fn check_writable(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Ends all work with the store and releases its files. Later calls fail.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens the store a URL names, making its file and bringing its schema up to date where needed.
pub async fn open(url: &StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
    match url {
        StoreUrl::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreUrl::SqliteMemory => Ok(Arc::new(SqliteStore::in_memory().await?)),
        StoreUrl::SqliteFile(path) => Ok(Arc::new(SqliteStore::at(path).await?)),
    }
}
