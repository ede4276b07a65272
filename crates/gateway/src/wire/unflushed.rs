//! Replies that hyper has taken to their last byte, until it has written them to the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use toolgate_backend::Receipt;

use crate::turn::TurnBody;

/// The receipts of the replies on one connection that are not written yet. If the connection ends first, they were not
/// delivered. Over HTTP/2 a client that takes nothing may hold back the end of a reply that counts as written.
#[derive(Clone, Default)]
pub(crate) struct Unflushed(Arc<Mutex<Vec<Receipt>>>);

impl Unflushed {
    /// The body of a reply that is sent on this connection.
    pub(crate) fn follow(&self, body: TurnBody) -> FollowedBody {
        FollowedBody { body, unflushed: self.clone() }
    }

    /// Everything that hyper had was written.
    pub(super) fn flushed(&self) {
        let receipts = std::mem::take(&mut *self.0.lock());
        receipts.into_iter().for_each(Receipt::delivered);
    }
}

/// A body that hands over its receipt with its last byte.
pub(crate) struct FollowedBody {
    body: TurnBody,
    unflushed: Unflushed,
}

impl Body for FollowedBody {
    type Data = Bytes;
    type Error = <TurnBody as Body>::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        if this.body.is_end_stream() || matches!(frame, Poll::Ready(None)) {
            this.unflushed.0.lock().push(this.body.take_receipt());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
