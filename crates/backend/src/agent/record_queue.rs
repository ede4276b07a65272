//! What one process has done, kept as it goes: nothing that must not be done again is let go before it is on record.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::pool::Pool;
use super::turn_job::OwnedRecord;

/// Keeps the records of one process in order: each takes the place of the one before, so none may overtake another.
pub(super) struct RecordQueue {
    pool: Arc<Pool>,
    last: Flushed,
}

/// Ready when everything is on record.
pub(super) type Flushed = Shared<BoxFuture<'static, ()>>;

impl RecordQueue {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, last: std::future::ready(()).boxed().shared() }
    }

    /// Keeps a record, and does what may be done only then.
    pub(super) fn push(&mut self, owned: OwnedRecord, then: impl FnOnce() + Send + 'static) {
        let OwnedRecord { caller, record } = owned;
        let (before, saving) = (self.last.clone(), self.pool.records().save(&caller, record));
        let saved = self.pool.spawn(async move {
            before.await;
            saving.await;
            then();
        });
        // Where the gateway ends in the middle, so does whoever waits for this.
        self.last = saved.map(|_| ()).boxed().shared();
    }

    /// Waits for all that was kept until now.
    pub(super) fn flushed(&self) -> Flushed {
        self.last.clone()
    }
}
