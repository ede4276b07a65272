//! When a request is sent again to the same host, and after which wait.
//!
//! A host may charge for every request that it has processed. So a request is sent again only if the host has not
//! received it, or has refused it with an error status.

use std::time::Duration;

use bytes::Bytes;
use toolgate_model::{ErrorKind, TurnError};

use crate::config::Retry;

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) error: TurnError,
    pub(super) resend: Resend,
    /// The body of a response that refuses the request as invalid; else empty.
    pub(super) refusal: Bytes,
}

/// Whether the request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Allowed,
    /// The host may have processed the request, or would fail in the same way again.
    Never,
}

impl AttemptError {
    /// An explicit refusal, or a request that was not received: sent again if the kind of error may pass.
    pub(super) fn refused(error: TurnError) -> Self {
        // After a timeout the client has already waited for minutes; the same host will not be quicker.
        let may_pass = error.kind.is_transient() && error.kind != ErrorKind::Timeout;
        Self { error, resend: if may_pass { Resend::Allowed } else { Resend::Never }, refusal: Bytes::new() }
    }

    /// The host may have processed the request, or would fail in the same way again.
    pub(super) fn last(error: TurnError) -> Self {
        Self { error, resend: Resend::Never, refusal: Bytes::new() }
    }
}

/// The wait before the request is sent again; `None` if it must not be, or has been sent often enough.
pub(super) fn wait(retry: &Retry, retries: u32, failed: &AttemptError) -> Option<Duration> {
    if retries >= retry.retries || failed.resend == Resend::Never {
        return None;
    }
    if let Some(requested) = failed.error.retry_after {
        return (requested <= retry.longest_wait).then_some(requested);
    }
    let doubled = retry.backoff.saturating_mul(2_u32.saturating_pow(retries));
    Some(doubled.min(retry.longest_wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry =
        Retry { retries: 3, backoff: Duration::from_millis(100), longest_wait: Duration::from_millis(250) };

    #[test]
    fn waits_double_up_to_the_longest() {
        let failed = AttemptError::refused(TurnError::upstream("down"));
        let waits: Vec<_> =
            (0..4).map(|retries| wait(&RETRY, retries, &failed).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(100), Some(200), Some(250), None]);
    }

    #[test]
    fn the_wait_that_the_host_asks_for_wins_unless_it_is_too_long() {
        let mut error = TurnError::new(ErrorKind::RateLimited, "slow down");
        error.retry_after = Some(Duration::from_millis(5));
        assert_eq!(wait(&RETRY, 0, &AttemptError::refused(error.clone())), Some(Duration::from_millis(5)));
        error.retry_after = Some(Duration::from_mins(1));
        assert_eq!(wait(&RETRY, 0, &AttemptError::refused(error)), None);
    }

    #[test]
    fn a_request_that_may_have_been_processed_is_not_sent_again() {
        assert_eq!(wait(&RETRY, 0, &AttemptError::last(TurnError::upstream("cut"))), None);
    }

    #[test]
    fn errors_that_cannot_pass_are_not_retried() {
        for error in [TurnError::invalid("wrong"), TurnError::new(ErrorKind::Timeout, "late")] {
            assert_eq!(wait(&RETRY, 0, &AttemptError::refused(error)), None);
        }
    }
}
