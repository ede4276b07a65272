//! A clock under the test's control.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use toolgate_gateway::Clock;
use toolgate_state::UnixMillis;

/// Stands still until the test advances it.
#[derive(Default)]
pub(crate) struct ManualClock(AtomicI64);

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::Relaxed))
    }
}

impl ManualClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).expect("a time"), Ordering::Relaxed);
    }
}
