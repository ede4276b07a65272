//! Named gates: a script waits at one until the test opens it.

use std::collections::HashSet;

use tokio::sync::watch;

/// The open gates. A gate that was never opened is closed.
#[derive(Debug)]
pub(crate) struct Gates {
    open: watch::Sender<HashSet<String>>,
}

impl Gates {
    pub(crate) fn open(&self, gate: &str) {
        self.open.send_modify(|open| {
            open.insert(gate.to_owned());
        });
    }

    pub(crate) async fn passed(&self, gate: &str) {
        // The sender lives as long as `self`, so the wait ends only when the gate opens.
        if self.open.subscribe().wait_for(|open| open.contains(gate)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self { open: watch::Sender::new(HashSet::new()) }
    }
}
