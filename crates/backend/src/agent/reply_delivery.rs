//! Puts on record that a client got the whole reply of a run.

use std::sync::Arc;

use uuid::Uuid;

use super::pool::ProcessPool;
use super::run_lock::DeliveryNote;
use crate::receipt::DeliveryObserver;

/// Follows the reply of one run.
pub(super) struct RunDelivery {
    pub(super) pool: Arc<ProcessPool>,
    pub(super) caller: Arc<str>,
    pub(super) run: Uuid,
    /// One for each key under which the request may come again.
    pub(super) notes: Vec<DeliveryNote>,
}

impl DeliveryObserver for RunDelivery {
    fn ending(&mut self) {
        self.notes.iter_mut().for_each(DeliveryNote::ending);
    }

    fn delivered(mut self: Box<Self>) {
        self.notes.iter_mut().for_each(|note| note.delivered(self.run));
        let marked = self.pool.records().mark_delivered(&self.caller, self.run);
        let pool = Arc::clone(&self.pool);
        drop(pool.spawn(async move {
            marked.await;
            // Until now the notes have told it.
            drop(self);
        }));
    }
}
