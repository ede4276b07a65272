//! What goes back to a client for a turn: status, headers and a body that holds the turn's record.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use toolgate_backend::Receipt;
use toolgate_model::{Losses, TurnError};
use uuid::Uuid;

use super::answer::Reply;
use super::head::SESSION;
use super::record::TurnRecord;
use super::stream::StreamBody;
use crate::http::{Api, respond};

/// Names the upstream that answered.
const UPSTREAM: HeaderName = HeaderName::from_static("x-toolgate-upstream");

/// Lists what was lost in translation.
const LOSS: HeaderName = HeaderName::from_static("x-toolgate-loss");

/// Says that the reply is that of an earlier turn (B7).
const REPLAYED: HeaderName = HeaderName::from_static("x-toolgate-replayed");

/// The id under which the host logged the request.
const UPSTREAM_REQUEST_ID: HeaderName = HeaderName::from_static("x-toolgate-upstream-request-id");

/// Asks nginx not to buffer a stream.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The longest list of losses in a header; proxies refuse heads that are much larger.
const MAX_LOSS_BYTES: usize = 1024;

/// Room for the fields of nearly every reply.
const USUAL_FIELDS: usize = 6;

/// The names that the APIs have for the id of a request.
pub(crate) const ID_NAMES: [&str; 2] = ["request-id", "x-request-id"];

/// A reply with its head. The fields are a list, because they are only written, never looked up.
pub(crate) struct TurnReply {
    pub(crate) status: StatusCode,
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    /// Sent under each of [`ID_NAMES`]. A request that was not admitted has none.
    pub(crate) id: Option<Uuid>,
    pub(crate) body: TurnBody,
}

/// The body of a reply. Dropping it publishes the turn's record, so the client never waits for log or metrics.
pub(crate) enum TurnBody {
    /// A reply in one body, or an error.
    Whole(WholeReply),
    /// A reply as it arrives.
    Stream(Box<StreamBody>),
}

/// A reply in one body.
pub(crate) struct WholeReply {
    /// Empty once they were taken.
    pub(crate) bytes: Bytes,
    /// Held only to be dropped with the body. A request that was not admitted has none.
    record: Option<Box<TurnRecord>>,
}

impl TurnReply {
    /// The reply of a turn that went well, at least so far.
    pub(super) fn success(reply: Reply, mut record: Box<TurnRecord>) -> Self {
        let mut fields = Vec::with_capacity(USUAL_FIELDS);
        match &reply {
            Reply::Whole(bytes) => {
                record.succeed();
                record.ending();
                record.add_sent(bytes);
                fields.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
            }
            Reply::Stream(_) => {
                fields.push((CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")));
                fields.push((CACHE_CONTROL, HeaderValue::from_static("no-cache")));
                fields.push((ACCEL_BUFFERING, HeaderValue::from_static("no")));
            }
        }
        describe(&mut fields, &record);
        let id = Some(record.id());
        let body = match reply {
            Reply::Whole(bytes) => TurnBody::Whole(WholeReply { bytes, record: Some(record) }),
            Reply::Stream(stream) => TurnBody::Stream(Box::new(StreamBody::new(*stream, record))),
        };
        Self { status: StatusCode::OK, fields, id, body }
    }

    /// The reply of a turn that failed before its first byte.
    pub(super) fn failure(api: Api, error: &TurnError, mut record: Box<TurnRecord>) -> Self {
        record.add_losses(unsupported_extras(api, error));
        record.fail(error);
        let mut reply = Self::from(respond::<TurnBody>(api, error));
        describe(&mut reply.fields, &record);
        reply.id = Some(record.id());
        if let TurnBody::Whole(whole) = &mut reply.body {
            whole.record = Some(record);
        }
        reply
    }
}

/// The id of a request as response headers.
pub(super) fn id_headers(id: Uuid) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let mut text = Uuid::encode_buffer();
    let id = HeaderValue::from_str(id.hyphenated().encode_lower(&mut text)).ok();
    ID_NAMES.map(HeaderName::from_static).into_iter().filter_map(move |name| Some((name, id.clone()?)))
}

/// Adds who answered, in which session, and what was lost, as far as it is known before the first byte.
fn describe(fields: &mut Vec<(HeaderName, HeaderValue)>, record: &TurnRecord) {
    if let Some(name) = record.upstream().and_then(|name| HeaderValue::from_str(name).ok()) {
        fields.push((UPSTREAM, name));
    }
    if let Some(session) = record.session().and_then(|session| HeaderValue::from_str(session).ok()) {
        fields.push((SESSION, session));
    }
    if record.is_replay() {
        fields.push((REPLAYED, HeaderValue::from_static("true")));
    }
    if let Some(places) = lost_places(record.losses()) {
        fields.push((LOSS, places));
    }
    let headers = record.host_headers();
    if let Some(id) = headers.request_id().and_then(|id| HeaderValue::from_str(id).ok()) {
        fields.push((UPSTREAM_REQUEST_ID, id));
    }
    // The names of request ids are used for ours, and an error has its `retry-after` already.
    let has =
        |fields: &[(HeaderName, HeaderValue)], name: &HeaderName| fields.iter().any(|(own, _)| own == name);
    for (name, value) in headers.iter() {
        if !ID_NAMES.contains(&name.as_str()) && !has(fields, name) {
            fields.push((name.clone(), value.clone()));
        }
    }
}

/// Where something was lost, routine losses last, as far as it fits into a header.
fn lost_places(losses: &Losses) -> Option<HeaderValue> {
    if losses.is_empty() {
        return None;
    }
    let mut places = String::new();
    for loss in losses.routine_last() {
        let separator = if places.is_empty() { "" } else { ", " };
        if places.len() + separator.len() + loss.place.len() > MAX_LOSS_BYTES {
            places.push_str(", ...");
            break;
        }
        places.push_str(separator);
        places.extend(loss.place.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' '));
    }
    HeaderValue::try_from(places).ok().filter(|places| !places.is_empty())
}

/// The fields of a host's error that this API has no place for.
pub(super) fn unsupported_extras(api: Api, error: &TurnError) -> Losses {
    let mut losses = Losses::default();
    // The error's body has all other fields already, so only the losses matter here.
    error.extras.write(api.dialect().id(), "", &mut losses);
    losses
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
            .extend(reply.fields.into_iter().chain(reply.id.into_iter().flat_map(id_headers)));
        response
    }
}

impl TurnBody {
    /// Takes the receipt, to be told when the last byte of the body was written.
    pub(crate) fn take_receipt(&mut self) -> Receipt {
        match self {
            Self::Whole(whole) => {
                whole.record.as_mut().map(|record| record.take_receipt()).unwrap_or_default()
            }
            Self::Stream(stream) => stream.record().take_receipt(),
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
            Self::Stream(stream) => {
                stream.poll_bytes(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
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
