//! The only place that starts tasks, so that a shutdown can wait for all of them.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long streams have to send their last event once the grace is over.
const LAST_EVENT_WAIT: Duration = Duration::from_secs(2);

/// The tasks of one worker, and the two steps in which they end.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
    grace_over: CancellationToken,
}

impl Tasks {
    /// Tasks that begin to stop when `stopping` is cancelled.
    pub(crate) fn new(stopping: CancellationToken) -> Self {
        Self { tracker: TaskTracker::new(), stopping, grace_over: CancellationToken::new() }
    }

    /// Starts a task on this worker.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The tracker waits for the task, so the handle is not needed.
        drop(self.tracker.spawn(task));
    }

    /// Cancelled when no more requests are accepted.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Cancelled when open replies must end now.
    pub(crate) fn grace_over(&self) -> &CancellationToken {
        &self.grace_over
    }

    /// Waits for all tasks, at most for `grace`; then asks them to end and waits a little longer.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_ok() {
            return;
        }
        self.grace_over.cancel();
        if tokio::time::timeout(LAST_EVENT_WAIT, self.tracker.wait()).await.is_err() {
            tracing::warn!(tasks = self.tracker.len(), "some connections did not end in time and are closed");
        }
    }
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
