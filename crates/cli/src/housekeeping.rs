//! Keeps the store small while the gateway runs.

use std::sync::Arc;
use std::time::Duration;

use toolgate_gateway::{Clock, SystemClock};
use toolgate_state::{Store, prune_expired};

/// Lifetimes are counted in days, so an hour more matters to nobody.
const EVERY: Duration = Duration::from_hours(1);

/// Forgets what is too old, now and then, for as long as the program runs.
pub(crate) async fn run(store: Arc<dyn Store>) {
    loop {
        match prune_expired(&*store, SystemClock.now()).await {
            Ok(forgotten) => tracing::debug!(?forgotten, "looked through the store"),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "what is too old could not be removed from the store; this is tried again"
                );
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}
