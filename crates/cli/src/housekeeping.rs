//! Prunes the store while the gateway runs.

use std::sync::Arc;
use std::time::Duration;

use toolgate_gateway::{Clock, SystemClock};
use toolgate_state::{Store, prune_expired};

/// Lifetimes are days, so an hour more does not matter.
const EVERY: Duration = Duration::from_hours(1);

/// Prunes the store at once and then periodically, until cancelled.
pub(crate) async fn run(store: Arc<dyn Store>) {
    loop {
        match prune_expired(&*store, SystemClock.now()).await {
            Ok(pruned) => tracing::debug!(?pruned, "pruned the store"),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "pruning the store failed; it is retried in an hour");
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}
