//! The time of day as a test needs it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use toolgate_gateway::Clock;
use toolgate_state::UnixMillis;

/// A clock that stands still until it is put forward.
#[derive(Default)]
pub(crate) struct StandingClock(AtomicI64);

impl Clock for StandingClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::Relaxed))
    }
}

impl StandingClock {
    pub(crate) fn forward(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).expect("a time"), Ordering::Relaxed);
    }
}
