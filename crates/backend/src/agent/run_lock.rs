//! Runs of the same request, one at a time. A client that repeats a request while it runs waits and gets the reply of
//! that run (B7). Also knows whether that reply was delivered, before this is on record.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, watch};
use toolgate_model::lineage::PrefixHash;
use uuid::Uuid;

/// One entry per request that is running, or whose reply is being delivered.
#[derive(Default)]
pub(super) struct RunLocks(Mutex<HashMap<PrefixHash, Weak<RunEntry>>>);

#[derive(Default)]
struct RunEntry {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// The number of runs that ended with a reply.
    completed: AtomicU64,
    delivery: watch::Sender<Delivery>,
}

/// What has become of the reply of the last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Delivery {
    /// Only the record knows.
    #[default]
    Unknown,
    /// Its last bytes are being written, so the client may have it already.
    Ending,
    /// The client has the reply of this run.
    Delivered(Uuid),
}

/// The right to run a request. The next run starts when the last clone is dropped.
#[derive(Clone)]
pub(super) struct RunGuard(Arc<HeldLock>);

struct HeldLock {
    entry: Arc<RunEntry>,
    completed_before: u64,
    _lock: OwnedMutexGuard<()>,
}

impl RunLocks {
    /// Waits until no other run of this request is active.
    pub(super) async fn acquire(&self, request: PrefixHash) -> RunGuard {
        let entry = self.entry(request);
        let completed_before = entry.completed.load(Ordering::Acquire);
        let lock = Arc::clone(&entry.lock).lock_owned().await;
        RunGuard(Arc::new(HeldLock { entry, completed_before, _lock: lock }))
    }

    fn entry(&self, request: PrefixHash) -> Arc<RunEntry> {
        let mut entries = self.0.lock();
        entries.retain(|_, entry| entry.strong_count() > 0);
        if let Some(entry) = entries.get(&request).and_then(Weak::upgrade) {
            return entry;
        }
        let entry = Arc::default();
        entries.insert(request, Arc::downgrade(&entry));
        entry
    }
}

impl RunGuard {
    /// True if a run ended with a reply after this request came, so this one asks for the same.
    pub(super) fn has_joined(&self) -> bool {
        self.0.entry.completed.load(Ordering::Acquire) > self.0.completed_before
    }

    /// The run has ended with a reply, which is on record.
    pub(super) fn complete(&self) {
        self.0.entry.completed.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the reply of this run has just been delivered. Waits while its last bytes are being written.
    pub(super) async fn was_delivered(&self, run: Uuid) -> bool {
        let mut delivery = self.0.entry.delivery.subscribe();
        let settled = delivery.wait_for(|delivery| *delivery != Delivery::Ending).await;
        settled.is_ok_and(|delivery| *delivery == Delivery::Delivered(run))
    }

    /// Follows the delivery of a reply. It does not block the next run.
    pub(super) fn follow_delivery(&self) -> DeliveryNote {
        DeliveryNote { entry: Arc::clone(&self.0.entry), is_ending: false }
    }
}

/// Notes the delivery of a reply for requests that come before it is on record.
pub(super) struct DeliveryNote {
    entry: Arc<RunEntry>,
    is_ending: bool,
}

impl DeliveryNote {
    /// The last bytes are being written.
    pub(super) fn ending(&mut self) {
        self.is_ending = true;
        self.entry.delivery.send_replace(Delivery::Ending);
    }

    /// The last byte was written.
    pub(super) fn delivered(&mut self, run: Uuid) {
        self.is_ending = false;
        self.entry.delivery.send_replace(Delivery::Delivered(run));
    }
}

impl Drop for DeliveryNote {
    fn drop(&mut self) {
        if self.is_ending {
            self.entry.delivery.send_replace(Delivery::Unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use toolgate_model::lineage::Lineage;

    use super::*;

    fn requests() -> [PrefixHash; 2] {
        ["one", "other"].map(|scope| Lineage::of(scope, &[]).whole())
    }

    #[test]
    fn the_same_request_waits_and_another_does_not() {
        let locks = RunLocks::default();
        let [one, other] = requests();
        let first = locks.acquire(one).now_or_never().expect("no run is active");
        let its_process = first.clone();
        let mut second = Box::pin(locks.acquire(one));
        assert!((&mut second).now_or_never().is_none());
        assert!(locks.acquire(other).now_or_never().is_some());
        drop(first);
        assert!((&mut second).now_or_never().is_none(), "the first run's process still holds a guard");
        drop(its_process);
        drop(second.now_or_never().expect("the first run is over"));
        assert!(locks.acquire(other).now_or_never().is_some());
        assert_eq!(locks.0.lock().len(), 1, "entries of finished runs are removed");
    }

    #[test]
    fn only_a_request_that_came_before_the_reply_joins_its_run() {
        let locks = RunLocks::default();
        let [one, _] = requests();
        let first = locks.acquire(one).now_or_never().expect("no run is active");
        let mut waiting = Box::pin(locks.acquire(one));
        assert!((&mut waiting).now_or_never().is_none());
        let delivery = first.follow_delivery();
        first.complete();
        let mut later = Box::pin(locks.acquire(one));
        assert!((&mut later).now_or_never().is_none());
        drop(first);
        let waited = waiting.now_or_never().expect("the first run is over");
        assert!(waited.has_joined());
        drop(waited);
        assert!(!later.now_or_never().expect("nobody runs").has_joined());
        drop(delivery);
    }

    #[test]
    fn a_request_waits_for_the_last_bytes_of_the_reply_before_it() {
        let locks = RunLocks::default();
        let [one, _] = requests();
        let run = Uuid::from_u128(1);
        let acquire = || locks.acquire(one).now_or_never().expect("no run is active");
        for delivered in [true, false] {
            let mut delivery = acquire().follow_delivery();
            assert_eq!(acquire().was_delivered(run).now_or_never(), Some(false), "not yet");
            delivery.ending();
            let next = acquire();
            let mut answer = Box::pin(next.was_delivered(run));
            assert!((&mut answer).now_or_never().is_none(), "the client may have it or not");
            if delivered {
                delivery.delivered(run);
            }
            drop(delivery);
            assert_eq!(answer.now_or_never(), Some(delivered));
        }
    }

    #[test]
    fn the_delivery_of_another_run_does_not_count() {
        let locks = RunLocks::default();
        let [one, _] = requests();
        let guard = locks.acquire(one).now_or_never().expect("no run is active");
        guard.follow_delivery().delivered(Uuid::from_u128(1));
        assert_eq!(guard.was_delivered(Uuid::from_u128(2)).now_or_never(), Some(false));
    }
}
