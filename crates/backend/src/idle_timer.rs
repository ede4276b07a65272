//! A bound on the time without progress.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Fires after a time without progress. One timer serves all waits of a turn or connection: it is created at the first wait, and
/// moved only when it fires too early or a shorter limit applies, so progress costs nothing.
#[derive(Default)]
pub struct IdleTimer {
    /// When the current wait began; `None` while there is nothing to wait for.
    since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl IdleTimer {
    /// There was progress: the next wait begins anew.
    pub fn restart(&mut self) {
        self.since = None;
    }

    /// Ready when the current wait has lasted for `limit`.
    pub fn poll(&mut self, limit: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let ends = *self.since.get_or_insert_with(Instant::now) + limit;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(ends)));
        if ends < sleep.deadline() {
            sleep.as_mut().reset(ends);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if ends <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn expire(timer: &mut IdleTimer, limit: Duration) -> u64 {
        let began = Instant::now();
        poll_fn(|cx| timer.poll(limit, cx)).await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn every_wait_has_its_own_limit() {
        let mut timer = IdleTimer::default();
        for limit in [10, 3, 3, 20, 1] {
            timer.restart();
            assert_eq!(expire(&mut timer, limit * SECOND).await, u64::from(limit));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_begins_the_wait_anew() {
        let mut timer = IdleTimer::default();
        for _ in 0..10 {
            let waited = tokio::time::timeout(4 * SECOND, poll_fn(|cx| timer.poll(5 * SECOND, cx))).await;
            assert!(waited.is_err(), "it fired early");
            timer.restart();
        }
        assert_eq!(expire(&mut timer, 5 * SECOND).await, 5);
        assert_eq!(expire(&mut timer, 5 * SECOND).await, 0, "without progress it stays fired");
    }
}
