//! What one process has done, kept as it goes: nothing that must not be done again is let go before it is on record.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::job::Kept;
use super::pool::Pool;

/// Keeps the records of one process in order: each takes the place of the one before, so none may overtake another.
pub(super) struct Ledger {
    pool: Arc<Pool>,
    last: Safe,
}

/// Ready when everything is on record.
pub(super) type Safe = Shared<BoxFuture<'static, ()>>;

impl Ledger {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, last: std::future::ready(()).boxed().shared() }
    }

    /// Keeps a record, and does what may be done only then.
    pub(super) fn keep(&mut self, kept: Kept, then: impl FnOnce() + Send + 'static) {
        let Kept { caller, record } = kept;
        let (before, keeping) = (self.last.clone(), self.pool.records().keep(&caller, record));
        let kept = self.pool.spawn(async move {
            before.await;
            keeping.await;
            then();
        });
        // Where the gateway ends in the middle, so does whoever waits for this.
        self.last = kept.map(|_| ()).boxed().shared();
    }

    /// Waits for all that was kept until now.
    pub(super) fn safe(&self) -> Safe {
        self.last.clone()
    }
}
