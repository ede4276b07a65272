//! Saves the records of one process as it works: nothing that must not be repeated goes on before it is on record.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::pool::ProcessPool;
use super::turn_job::CallerRecord;

/// Saves records in order. Each replaces the one before, so none may overtake another.
pub(super) struct RecordQueue {
    pool: Arc<ProcessPool>,
    last: Flushed,
}

/// Resolves when every record pushed so far is saved.
pub(super) type Flushed = Shared<BoxFuture<'static, ()>>;

impl RecordQueue {
    pub(super) fn new(pool: Arc<ProcessPool>) -> Self {
        Self { pool, last: std::future::ready(()).boxed().shared() }
    }

    /// Saves a record, then calls `then`.
    pub(super) fn push(&mut self, owned: CallerRecord, then: impl FnOnce() + Send + 'static) {
        let CallerRecord { caller, record } = owned;
        let (before, saving) = (self.last.clone(), self.pool.records().save(&caller, record));
        let saved = self.pool.spawn(async move {
            before.await;
            saving.await;
            then();
        });
        // If the runtime shuts down first, the waiting tasks end with it.
        self.last = saved.map(|_| ()).boxed().shared();
    }

    /// Resolves when every record pushed so far is saved.
    pub(super) fn flushed(&self) -> Flushed {
        self.last.clone()
    }
}
