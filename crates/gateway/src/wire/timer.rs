//! A deadline that moves often and is seldom reached.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep};

/// A timer that is re-armed only when it fires early or would fire late. Moving the deadline with every request then
/// costs a comparison instead of a change to the runtime's timer wheel.
#[derive(Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when the deadline has passed.
    pub(super) fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if deadline <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fires_at_the_deadline_it_was_last_polled_with() {
        let mut timer = Timer::default();
        for seconds in [5, 1, 30, 2] {
            let began = Instant::now();
            let deadline = began + Duration::from_secs(100);
            assert!(poll_fn(|cx| Poll::Ready(timer.poll(deadline, cx))).await.is_pending());
            let deadline = began + Duration::from_secs(seconds);
            poll_fn(|cx| timer.poll(deadline, cx)).await;
            assert_eq!(began.elapsed().as_secs(), seconds);
        }
    }
}
