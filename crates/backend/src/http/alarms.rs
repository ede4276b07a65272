//! Bounds on waits. A timer costs more to set and to take back than most answers cost to wait for, so timers stay set
//! and are used again: one that rings too early is moved to when it should.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

/// Timers kept while nobody waits, as many as connections are.
const MAX_IDLE_ALARMS: usize = 256;

/// Timers of one worker, all for waits of the same length.
pub(super) struct Alarms {
    limit: Duration,
    idle: Mutex<Vec<Alarm>>,
}

type Alarm = Pin<Box<Sleep>>;

impl Alarms {
    /// For waits of at most this long.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, idle: Mutex::default() }
    }

    /// How long is waited at most.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// What the future gives; `None` if that takes too long. Borrowed, as a future that is handed over is stored once
    /// more here.
    pub(super) async fn bound<T>(&self, mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let ends = Instant::now() + self.limit;
        let mut alarm = None;
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(value));
            }
            let alarm = alarm.get_or_insert_with(|| self.take(ends));
            while alarm.as_mut().poll(cx).is_ready() {
                if ends <= Instant::now() {
                    return Poll::Ready(None);
                }
                alarm.as_mut().reset(ends);
            }
            Poll::Pending
        })
        .await;
        if let Some(alarm) = alarm {
            self.give_back(alarm);
        }
        outcome
    }

    /// One that rings then or before.
    fn take(&self, ends: Instant) -> Alarm {
        self.idle.lock().pop().unwrap_or_else(|| Box::pin(tokio::time::sleep_until(ends)))
    }

    fn give_back(&self, alarm: Alarm) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_ALARMS {
            idle.push(alarm);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn waited(alarms: &Alarms, wait: Duration) -> (Option<()>, Duration) {
        let began = Instant::now();
        let outcome = alarms.bound(pin!(tokio::time::sleep(wait))).await;
        (outcome, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn every_wait_is_as_long_as_it_may_be_whoever_waited_before() {
        let alarms = Alarms::new(LIMIT);
        for seconds in [1, 9, 3, 9, 9, 5] {
            let wait = Duration::from_secs(seconds);
            let (outcome, took) = waited(&alarms, wait).await;
            assert_eq!(outcome, Some(()));
            assert!(took < wait + Duration::from_millis(10), "{took:?}");
            let (outcome, took) = waited(&alarms, LIMIT * 2).await;
            assert_eq!(outcome, None);
            assert!((LIMIT..LIMIT + Duration::from_millis(10)).contains(&took), "{took:?}");
        }
        assert_eq!(alarms.idle.lock().len(), 1, "one alarm did for all");
    }

    #[tokio::test(start_paused = true)]
    async fn what_needs_no_wait_needs_no_alarm() {
        let alarms = Alarms::new(LIMIT);
        assert_eq!(alarms.bound(pin!(std::future::ready(7))).await, Some(7));
        assert!(alarms.idle.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_leaves_no_more_alarms_than_are_kept() {
        let alarms = Alarms::new(LIMIT);
        let waits = (0..2 * MAX_IDLE_ALARMS).map(|_| waited(&alarms, Duration::from_secs(1)));
        futures_util::future::join_all(waits).await;
        assert_eq!(alarms.idle.lock().len(), MAX_IDLE_ALARMS);
    }
}
