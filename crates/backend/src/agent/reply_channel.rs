//! The channel between a process and the client of its turn. The process never waits for the client (B3) and notices
//! at once when the client is gone.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::stream::Stream;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_model::{ErrorKind, TurnError, TurnEvent};

use crate::turn::Batch;

/// How far a client may lag behind. Complete replies are smaller; a client that slow counts as gone.
const MAX_UNREAD_BYTES: usize = 64 * 1024 * 1024;

/// Creates the channel of one turn.
pub(super) fn reply_channel() -> (ReplySender, ReplyReceiver) {
    let shared = Arc::new(Mutex::new(ChannelBuffer::default()));
    let client_closed = CancellationToken::new();
    (
        ReplySender { shared: Arc::clone(&shared), client_closed: client_closed.clone() },
        ReplyReceiver { shared, client_closed },
    )
}

/// The process's end.
pub(super) struct ReplySender {
    shared: Arc<Mutex<ChannelBuffer>>,
    client_closed: CancellationToken,
}

/// The client's end: a stream of the turn's events. Dropping it cancels the turn.
pub(super) struct ReplyReceiver {
    shared: Arc<Mutex<ChannelBuffer>>,
    client_closed: CancellationToken,
}

#[derive(Default)]
struct ChannelBuffer {
    unread: VecDeque<Result<Batch, TurnError>>,
    bytes: usize,
    state: ChannelState,
    model_call: ModelCall,
    waker: Option<Waker>,
}

/// Whether the model has been called. Until then a failed turn can be retried in another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ModelCall {
    #[default]
    NotStarted,
    MaybeStarted,
}

#[derive(Default, PartialEq)]
enum ChannelState {
    #[default]
    Open,
    Closed,
}

impl ReplySender {
    pub(super) fn send(&self, batch: Batch) {
        let mut shared = self.shared.lock();
        if shared.state == ChannelState::Closed || (batch.events.is_empty() && batch.losses.is_empty()) {
            return;
        }
        shared.bytes += size(&batch);
        if shared.bytes > MAX_UNREAD_BYTES {
            shared.unread.clear();
            let error = TurnError::new(
                ErrorKind::Timeout,
                "the client read the reply too slowly; read it as it arrives",
            );
            shared.close(Err(error));
            self.client_closed.cancel();
            return;
        }
        shared.unread.push_back(Ok(batch));
        shared.wake();
    }

    /// The model may have been called from now on.
    pub(super) fn mark_model_called(&self) {
        self.shared.lock().model_call = ModelCall::MaybeStarted;
    }

    /// Ends the turn. Only the first end counts.
    pub(super) fn finish(self) {
        let mut shared = self.shared.lock();
        shared.state = ChannelState::Closed;
        shared.wake();
    }

    pub(super) fn fail(self, error: TurnError) {
        self.shared.lock().close(Err(error));
    }

    /// Cancelled when the client is gone.
    pub(super) fn client_closed(&self) -> &CancellationToken {
        &self.client_closed
    }
}

impl ReplyReceiver {
    /// Whether the model has been called.
    pub(super) fn model_call(&self) -> ModelCall {
        self.shared.lock().model_call
    }
}

impl ChannelBuffer {
    fn close(&mut self, last: Result<Batch, TurnError>) {
        if self.state == ChannelState::Open {
            self.unread.push_back(last);
            self.state = ChannelState::Closed;
            self.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for ReplySender {
    /// A process that ends without an error must not leave its client waiting.
    fn drop(&mut self) {
        let lost = TurnError::new(ErrorKind::Internal, "the agent's turn was lost; send the request again");
        self.shared.lock().close(Err(lost));
    }
}

impl Stream for ReplyReceiver {
    type Item = Result<Batch, TurnError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut shared = self.shared.lock();
        if let Some(next) = shared.unread.pop_front() {
            if let Ok(batch) = &next {
                shared.bytes = shared.bytes.saturating_sub(size(batch));
            }
            return Poll::Ready(Some(next));
        }
        if shared.state == ChannelState::Closed {
            return Poll::Ready(None);
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ReplyReceiver {
    fn drop(&mut self) {
        self.client_closed.cancel();
    }
}

fn size(batch: &Batch) -> usize {
    // The overhead of an event beside its text.
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
