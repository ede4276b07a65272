//! One run of a request at a time: whoever asks the same again while it runs is a client that has lost its patience,
//! and gets the answer of that run (B7).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use toolgate_model::lineage::PrefixHash;

/// The requests that run.
#[derive(Default)]
pub(super) struct Running(Mutex<HashMap<PrefixHash, Weak<Turnstile>>>);

/// Held by everything that belongs to the run of a request; the next one begins when the last of these is gone.
pub(super) type Alone = Arc<OwnedMutexGuard<()>>;

type Turnstile = tokio::sync::Mutex<()>;

impl Running {
    /// Waits until no other run of this request is left.
    pub(super) async fn alone(&self, request: PrefixHash) -> Alone {
        let turnstile = self.turnstile(request);
        Arc::new(turnstile.lock_owned().await)
    }

    fn turnstile(&self, request: PrefixHash) -> Arc<Turnstile> {
        let mut running = self.0.lock();
        running.retain(|_, turnstile| turnstile.strong_count() > 0);
        if let Some(turnstile) = running.get(&request).and_then(Weak::upgrade) {
            return turnstile;
        }
        let turnstile = Arc::default();
        running.insert(request, Arc::downgrade(&turnstile));
        turnstile
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use toolgate_model::lineage::Lineage;

    use super::*;

    #[test]
    fn the_same_request_waits_and_another_does_not() {
        let running = Running::default();
        let [one, other] = ["one", "other"].map(|scope| Lineage::of(scope, &[]).whole());
        let first = running.alone(one).now_or_never().expect("nobody runs it");
        let its_process = Arc::clone(&first);
        let mut second = Box::pin(running.alone(one));
        assert!((&mut second).now_or_never().is_none());
        assert!(running.alone(other).now_or_never().is_some());
        drop(first);
        assert!((&mut second).now_or_never().is_none(), "its process still works on it");
        drop(its_process);
        drop(second.now_or_never().expect("it is over"));
        assert!(running.alone(other).now_or_never().is_some());
        assert_eq!(running.0.lock().len(), 1, "what is over is forgotten");
    }
}
