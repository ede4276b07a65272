//! What goes back to a client for a turn, together with the account of the turn.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use uuid::Uuid;

use super::record::TurnRecord;
use super::stream::ReplyBody;

/// Room for the fields of nearly every reply.
const USUAL_FIELDS: usize = 4;

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
    record: Option<Box<TurnRecord>>,
}

/// A reply with its head. The fields stand as they are written: a map would be filled and read once.
pub(crate) struct TurnReply {
    pub(crate) status: StatusCode,
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    /// Told in fields of its own (see [`ID_NAMES`]). A request that was not let in has none.
    pub(crate) id: Option<Uuid>,
    pub(crate) body: TurnBody,
}

/// The names that the APIs have for the id of a request.
pub(crate) const ID_NAMES: [&str; 2] = ["request-id", "x-request-id"];

/// The id of a request under those names.
pub(super) fn names_of(id: Uuid) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let mut text = Uuid::encode_buffer();
    let id = HeaderValue::from_str(id.hyphenated().encode_lower(&mut text)).ok();
    ID_NAMES.map(HeaderName::from_static).into_iter().filter_map(move |name| Some((name, id.clone()?)))
}

impl TurnReply {
    /// A reply that went well, with nothing in it yet.
    pub(super) fn new(content_type: HeaderValue) -> Self {
        let mut fields = Vec::with_capacity(USUAL_FIELDS);
        fields.push((CONTENT_TYPE, content_type));
        Self { status: StatusCode::OK, fields, id: None, body: TurnBody::from(Bytes::new()) }
    }
}

impl From<Response<TurnBody>> for TurnReply {
    fn from(response: Response<TurnBody>) -> Self {
        let (head, body) = response.into_parts();
        let fields = head.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { status: head.status, fields, id: None, body }
    }
}

impl From<TurnReply> for Response<TurnBody> {
    fn from(reply: TurnReply) -> Self {
        let mut response = Self::new(reply.body);
        *response.status_mut() = reply.status;
        response
            .headers_mut()
            .extend(reply.fields.into_iter().chain(reply.id.into_iter().flat_map(names_of)));
        response
    }
}

impl TurnBody {
    pub(super) fn whole(bytes: Bytes, record: Box<TurnRecord>) -> Self {
        Self::Whole(WholeReply { bytes, record: Some(record) })
    }

    /// Lets this record account for a body that was made without one.
    pub(super) fn tell_by(&mut self, record: Box<TurnRecord>) {
        if let Self::Whole(whole) = self {
            whole.record = Some(record);
        }
    }
}

impl From<Bytes> for TurnBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(WholeReply { bytes, record: None })
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
            Self::Stream(reply) => {
                reply.poll_bytes(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
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
