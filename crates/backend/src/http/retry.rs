//! When a request is sent again, and after which wait. Always before its first event.

use std::time::Duration;

use toolgate_model::{ErrorKind, TurnError};

use crate::config::Retry;

/// The wait before the next try; `None` where trying again makes no sense.
pub(super) fn wait(retry: &Retry, tried: u32, error: &TurnError) -> Option<Duration> {
    if tried >= retry.retries || !may_pass(error.kind) {
        return None;
    }
    if let Some(asked) = error.retry_after {
        return (asked <= retry.longest_wait).then_some(asked);
    }
    let doubled = retry.backoff.saturating_mul(2_u32.saturating_pow(tried));
    Some(doubled.min(retry.longest_wait))
}

/// A timeout has already cost the client minutes: the next host may be quicker, this one will not be.
fn may_pass(kind: ErrorKind) -> bool {
    kind.is_transient() && kind != ErrorKind::Timeout
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry =
        Retry { retries: 3, backoff: Duration::from_millis(100), longest_wait: Duration::from_millis(250) };

    #[test]
    fn waits_double_up_to_the_longest() {
        let error = TurnError::upstream("cut");
        let waits: Vec<_> =
            (0..4).map(|tried| wait(&RETRY, tried, &error).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(100), Some(200), Some(250), None]);
    }

    #[test]
    fn the_hosts_own_wait_wins_unless_it_is_too_long() {
        let mut error = TurnError::new(ErrorKind::RateLimited, "slow down");
        error.retry_after = Some(Duration::from_millis(5));
        assert_eq!(wait(&RETRY, 0, &error), Some(Duration::from_millis(5)));
        error.retry_after = Some(Duration::from_mins(1));
        assert_eq!(wait(&RETRY, 0, &error), None);
    }

    #[test]
    fn what_cannot_pass_is_not_tried_again() {
        assert_eq!(wait(&RETRY, 0, &TurnError::invalid("wrong")), None);
        assert_eq!(wait(&RETRY, 0, &TurnError::new(ErrorKind::Timeout, "late")), None);
    }
}
