//! Prunes the store while the gateway runs.

use std::sync::Arc;
use std::time::Duration;

use toolgate_gateway::{Clock, SystemClock};
use toolgate_state::{Store, prune_expired};

/// The longest time between two runs. Lifetimes are days, so an hour more does not matter.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// Prunes the store at once and then periodically, until cancelled. Sessions expire `conversations` after their last
/// change.
pub(crate) async fn run(store: Arc<dyn Store>, conversations: Duration) {
    let pause = pause(conversations);
    loop {
        match prune_expired(&*store, SystemClock.now(), conversations).await {
            Ok(pruned) => tracing::debug!(?pruned, "pruned the store"),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, ?pause, "pruning the store failed; it is retried after the pause");
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Short lifetimes are exceeded by a tenth at most.
fn pause(lifetime: Duration) -> Duration {
    MAX_PAUSE.min(lifetime / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lifetimes_are_checked_more_often() {
        for (lifetime, minutes) in [(600, 1), (3_600, 6), (86_400 * 30, 60)] {
            assert_eq!(pause(Duration::from_secs(lifetime)), Duration::from_mins(minutes));
        }
    }
}
