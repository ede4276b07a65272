//! What goes back to a client for a turn, together with the account of the turn.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::record::TurnRecord;
use super::stream::ReplyBody;

/// The body of a reply. Dropping it tells what became of the turn: whoever sends it does so first and keeps the
/// client waiting for nothing.
pub(crate) enum TurnBody {
    /// A reply in one piece, or an error.
    Whole(WholeReply),
    /// A reply as it comes.
    Stream(Box<ReplyBody>),
}

/// A reply in one piece.
pub(crate) struct WholeReply {
    /// Empty once they were given.
    pub(crate) bytes: Bytes,
    /// Only held: it tells when it is dropped. A request that was not let in is no turn and has none.
    _record: Option<Box<TurnRecord>>,
}

impl TurnBody {
    /// The same, accounted for by this record.
    pub(super) fn told_by(self, record: Box<TurnRecord>) -> Self {
        match self {
            Self::Whole(whole) => Self::Whole(WholeReply { _record: Some(record), ..whole }),
            Self::Stream(reply) => Self::Stream(reply),
        }
    }
}

impl From<Bytes> for TurnBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(WholeReply { bytes, _record: None })
    }
}

impl Body for TurnBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) if whole.bytes.is_empty() => Poll::Ready(None),
            Self::Whole(whole) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut whole.bytes))))),
            Self::Stream(reply) => Pin::new(&mut **reply).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.bytes.is_empty(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => SizeHint::with_exact(whole.bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
