//! One run of a request at a time: whoever asks the same again while it runs is a client that has lost its patience,
//! and gets the answer of that run (B7).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use toolgate_model::lineage::PrefixHash;

/// The requests that run.
#[derive(Default)]
pub(super) struct RunLocks(Mutex<HashMap<PrefixHash, Weak<RunMutex>>>);

/// Held by everything that belongs to the run of a request; the next one begins when the last of these is gone.
pub(super) type RunGuard = Arc<OwnedMutexGuard<()>>;

type RunMutex = tokio::sync::Mutex<()>;

impl RunLocks {
    /// Waits until no other run of this request is left.
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
        let first = locks.acquire(one).now_or_never().expect("nobody runs it");
        let its_process = Arc::clone(&first);
        let mut second = Box::pin(locks.acquire(one));
        assert!((&mut second).now_or_never().is_none());
        assert!(locks.acquire(other).now_or_never().is_some());
        drop(first);
        assert!((&mut second).now_or_never().is_none(), "its process still works on it");
        drop(its_process);
        drop(second.now_or_never().expect("it is over"));
        assert!(locks.acquire(other).now_or_never().is_some());
        assert_eq!(locks.0.lock().len(), 1, "what is over is forgotten");
    }
}
