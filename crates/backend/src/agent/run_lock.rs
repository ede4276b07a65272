//! Serialises runs of the same request. A client that repeats a request while it runs waits and gets the reply of that
//! run (B7).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use toolgate_model::lineage::PrefixHash;

/// One lock per running request.
#[derive(Default)]
pub(super) struct RunLocks(Mutex<HashMap<PrefixHash, Weak<RunMutex>>>);

/// Held by everything that takes part in a run. The next run starts when the last clone is dropped.
pub(super) type RunGuard = Arc<OwnedMutexGuard<()>>;

type RunMutex = tokio::sync::Mutex<()>;

impl RunLocks {
    /// Waits until no other run of this request is active.
    pub(super) async fn acquire(&self, request: PrefixHash) -> RunGuard {
        let run_mutex = self.run_mutex(request);
        Arc::new(run_mutex.lock_owned().await)
    }

    fn run_mutex(&self, request: PrefixHash) -> Arc<RunMutex> {
        let mut locks = self.0.lock();
        locks.retain(|_, run_mutex| run_mutex.strong_count() > 0);
        if let Some(run_mutex) = locks.get(&request).and_then(Weak::upgrade) {
            return run_mutex;
        }
        let run_mutex = Arc::default();
        locks.insert(request, Arc::downgrade(&run_mutex));
        run_mutex
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use toolgate_model::lineage::Lineage;

    use super::*;

    #[test]
    fn the_same_request_waits_and_another_does_not() {
        let locks = RunLocks::default();
        let [one, other] = ["one", "other"].map(|scope| Lineage::of(scope, &[]).whole());
        let first = locks.acquire(one).now_or_never().expect("no run is active");
        let its_process = Arc::clone(&first);
        let mut second = Box::pin(locks.acquire(one));
        assert!((&mut second).now_or_never().is_none());
        assert!(locks.acquire(other).now_or_never().is_some());
        drop(first);
        assert!((&mut second).now_or_never().is_none(), "the first run's process still holds a guard");
        drop(its_process);
        drop(second.now_or_never().expect("the first run is over"));
        assert!(locks.acquire(other).now_or_never().is_some());
        assert_eq!(locks.0.lock().len(), 1, "locks of finished runs are removed");
    }
}
