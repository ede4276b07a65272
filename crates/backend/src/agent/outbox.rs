//! Between a process and the client of its turn: the process never waits for the client (B3), and learns at once
//! when the client has left.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::stream::Stream;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_model::{ErrorKind, TurnError, TurnEvent};

use crate::turn::Batch;

/// How many bytes a client may lag behind. A whole reply has fewer; a client that slow is as good as gone.
const MAX_UNREAD_BYTES: usize = 64 * 1024 * 1024;

/// The two ends of one turn.
pub(super) fn outbox() -> (Outbox, Inbox) {
    let shared = Arc::new(Mutex::new(Shared::default()));
    let left = CancellationToken::new();
    (Outbox { shared: Arc::clone(&shared), left: left.clone() }, Inbox { shared, left })
}

/// The process's end.
pub(super) struct Outbox {
    shared: Arc<Mutex<Shared>>,
    left: CancellationToken,
}

/// The client's end: the turn's events. Dropping it tells the process that nobody wants them any more.
pub(super) struct Inbox {
    shared: Arc<Mutex<Shared>>,
    left: CancellationToken,
}

#[derive(Default)]
struct Shared {
    unread: VecDeque<Result<Batch, TurnError>>,
    bytes: usize,
    end: End,
    asked: Asked,
    waker: Option<Waker>,
}

/// Whether the model has been asked. Until then a failed turn may be tried again elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Asked {
    #[default]
    NotYet,
    Perhaps,
}

#[derive(Default, PartialEq)]
enum End {
    #[default]
    Open,
    Closed,
}

impl Outbox {
    pub(super) fn send(&self, batch: Batch) {
        let mut shared = self.shared.lock();
        if shared.end == End::Closed || (batch.events.is_empty() && batch.losses.is_empty()) {
            return;
        }
        shared.bytes += size(&batch);
        if shared.bytes > MAX_UNREAD_BYTES {
            shared.unread.clear();
            let error =
                TurnError::new(ErrorKind::Timeout, "the reply was not read in time: read it as it comes");
            shared.close(Err(error));
            self.left.cancel();
            return;
        }
        shared.unread.push_back(Ok(batch));
        shared.wake();
    }

    /// From now on the model may know of the turn.
    pub(super) fn asking(&self) {
        self.shared.lock().asked = Asked::Perhaps;
    }

    /// Ends the turn. Only the first end counts.
    pub(super) fn finish(self) {
        let mut shared = self.shared.lock();
        shared.end = End::Closed;
        shared.wake();
    }

    pub(super) fn fail(self, error: TurnError) {
        self.shared.lock().close(Err(error));
    }

    /// Cancelled when the client has left.
    pub(super) fn left(&self) -> &CancellationToken {
        &self.left
    }
}

impl Inbox {
    /// Whether the model has been asked.
    pub(super) fn asked(&self) -> Asked {
        self.shared.lock().asked
    }
}

impl Shared {
    fn close(&mut self, last: Result<Batch, TurnError>) {
        if self.end == End::Open {
            self.unread.push_back(last);
            self.end = End::Closed;
            self.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Outbox {
    /// A process that ends without a word must not leave its client waiting.
    fn drop(&mut self) {
        let lost = TurnError::new(ErrorKind::Internal, "the agent's turn was lost; send the request again");
        self.shared.lock().close(Err(lost));
    }
}

impl Stream for Inbox {
    type Item = Result<Batch, TurnError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut shared = self.shared.lock();
        if let Some(next) = shared.unread.pop_front() {
            if let Ok(batch) = &next {
                shared.bytes = shared.bytes.saturating_sub(size(batch));
            }
            return Poll::Ready(Some(next));
        }
        if shared.end == End::Closed {
            return Poll::Ready(None);
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.left.cancel();
    }
}

fn size(batch: &Batch) -> usize {
    // What an event takes beside its text.
    const EVENT_BYTES: usize = 128;
    let event_size = |event: &TurnEvent| match event {
        TurnEvent::BlockDelta(delta) => delta.len(),
        TurnEvent::Started(_)
        | TurnEvent::BlockStarted(_)
        | TurnEvent::BlockFinished(_)
        | TurnEvent::Usage(_)
        | TurnEvent::Finished(_) => 0,
    };
    batch.events.iter().map(|event| event_size(event) + EVENT_BYTES).sum()
}
