//! What happens on a connection that hyper serves, as far as its deadlines are concerned.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::ClientDeadlines;

/// The requests of one connection.
pub(super) struct Activity {
    deadlines: ClientDeadlines,
    state: Mutex<State>,
}

struct State {
    /// One entry for each open request.
    open: Vec<OpenRequest>,
    next_id: u64,
    /// When the last request ended, or the connection began.
    quiet_since: Instant,
}

struct OpenRequest {
    id: u64,
    /// When hyper last asked for more of the body. `None` before the body exists.
    polled: Option<Instant>,
}

impl Activity {
    pub(super) fn new(deadlines: ClientDeadlines) -> Self {
        let state = State { open: Vec::new(), next_id: 0, quiet_since: Instant::now() };
        Self { deadlines, state: Mutex::new(state) }
    }

    /// A request begins; it ends when the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.open.push(OpenRequest { id, polled: None });
        Running { id, activity: Arc::clone(self) }
    }

    /// Ready when there has been no request for too long.
    pub(super) async fn idle(&self) {
        self.until(
            |state| state.open.is_empty().then_some(state.quiet_since + self.deadlines.idle),
            self.deadlines.idle,
        )
        .await;
    }

    /// Ready when the client takes nothing of a reply for too long. Streams send pings, so hyper asks for more of their
    /// body at least that often unless the client blocks it.
    pub(super) async fn stalled(&self) {
        let limit = self.deadlines.stalled;
        let oldest = |state: &State| {
            let polled = state.open.iter().filter_map(|request| request.polled).min();
            polled.map(|polled| polled + limit)
        };
        self.until(oldest, limit).await;
    }

    /// Sleeps until the deadline that `deadline` computes has passed. While it computes none, it is asked again after
    /// `recheck`: within that time no deadline can pass.
    async fn until(&self, deadline: impl Fn(&State) -> Option<Instant>, recheck: std::time::Duration) {
        loop {
            let now = Instant::now();
            let wake = deadline(&self.state.lock()).unwrap_or(now + recheck);
            if wake <= now {
                return;
            }
            tokio::time::sleep_until(wake).await;
        }
    }
}

/// An open request.
pub(super) struct Running {
    id: u64,
    activity: Arc<Activity>,
}

impl Running {
    fn polled(&self) {
        let mut state = self.activity.state.lock();
        if let Some(request) = state.open.iter_mut().find(|request| request.id == self.id) {
            request.polled = Some(Instant::now());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.open.retain(|request| request.id != self.id);
        state.quiet_since = Instant::now();
    }
}

/// A response body that notes when hyper asks for more of it.
pub(super) struct TrackedBody {
    body: axum::body::Body,
    running: Running,
}

impl TrackedBody {
    pub(super) fn new(body: axum::body::Body, running: Running) -> Self {
        running.polled();
        Self { body, running }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.running.polled();
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DEADLINES: ClientDeadlines = ClientDeadlines {
        head: Duration::from_secs(10),
        idle: Duration::from_mins(1),
        body_rate: 1,
        stalled: Duration::from_secs(30),
    };

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_only_without_requests() {
        let activity = Arc::new(Activity::new(DEADLINES));
        let began = Instant::now();
        let request = activity.begin();
        let busy = async {
            tokio::time::sleep(Duration::from_secs(1000)).await;
            drop(request);
        };
        tokio::join!(busy, activity.idle());
        assert_eq!(began.elapsed().as_secs(), 1060);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_that_hyper_stops_asking_for_is_stalled() {
        let activity = Arc::new(Activity::new(DEADLINES));
        let began = Instant::now();
        let waiting = activity.begin();
        let reading = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            for _ in 0..10 {
                waiting.polled();
                tokio::time::sleep(Duration::from_secs(15)).await;
            }
        };
        tokio::join!(reading, activity.stalled());
        assert_eq!(began.elapsed().as_secs(), 100 + 9 * 15 + 30);
    }
}
