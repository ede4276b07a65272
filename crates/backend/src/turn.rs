//! What a back end receives and returns.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::Stream;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use toolgate_dialect::{ClientDialect, MeterReading};
use toolgate_model::observed::BackendKind;
use toolgate_model::{
    Delivery, DialectId, ErrorKind, Losses, ModelName, TurnError, TurnEvent, TurnRequest, Usage,
};
use uuid::Uuid;

use crate::host_headers::HostHeaders;
use crate::receipt::Receipt;

/// Something that answers turns.
pub trait Backend: Send + Sync {
    /// Begins a turn. Ready when the first event is there, so until then another back end can still be tried.
    /// Dropping the future, or the answer, cancels the turn at once (T20).
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>>;

    /// The host behind this back end, if it takes the client's bytes as they are. `request` is `None` while the request
    /// is not parsed; a back end that decides by its parts answers `None` then.
    fn relay_host(&self, _request: Option<&TurnRequest>) -> Option<&dyn Relay> {
        None
    }

    /// True if turns belong to sessions that a client may name (E3).
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// The kind of back end, for people who watch.
    fn kind(&self) -> BackendKind {
        BackendKind::Native
    }

    /// The name used in logs and headers.
    fn name(&self) -> &Arc<str>;
}

/// A host that takes the requests of its own dialect as clients write them.
pub trait Relay: Send + Sync {
    /// The dialect.
    fn dialect(&self) -> DialectId;

    /// True if it is known what this model accepts. A request for another model is then rewritten for it.
    fn knows(&self, model: &ModelName) -> bool;

    /// Sends the client's body to the host, as [`Backend::start`] sends a parsed request.
    fn relay(&self, turn: RelayTurn) -> BoxFuture<'static, Result<Answer, TurnError>>;

    /// Asks the host how many input tokens the body has; `None` if the host has no such endpoint (T35).
    fn count_tokens(&self, turn: RelayTurn) -> BoxFuture<'static, Option<Result<u64, TurnError>>>;

    /// Asks the host to compact a conversation; `None` if its dialect has no such endpoint.
    fn compact(&self, turn: RelayTurn) -> BoxFuture<'static, Option<Result<Answer, TurnError>>>;
}

/// What a client asks, before a target is chosen. Cheap to clone: failover needs copies.
#[derive(Clone)]
pub struct ClientTurn {
    /// Ours, for logs on both sides.
    pub id: Uuid,
    /// The client's dialect.
    pub dialect: &'static dyn ClientDialect,
    /// The model the client named.
    pub model: ModelName,
    /// In one piece or as a stream.
    pub delivery: Delivery,
    /// The parsed request. `None` if every target relays the body.
    pub request: Option<Arc<TurnRequest>>,
    /// The body as the client sent it, while it still says exactly what the client asks.
    pub body: Option<Bytes>,
    /// Headers that mean something to a host of the client's dialect (`anthropic-beta`).
    pub headers: Arc<[(HeaderName, HeaderValue)]>,
    /// The caller: what is remembered for one caller is never shown to another.
    pub caller: Arc<str>,
    /// The session, if the back end keeps one.
    pub session: SessionSlot,
    /// What tells this request from an equal one.
    pub identity: RequestIdentity,
}

impl ClientTurn {
    /// The request, parsed now unless it was parsed before.
    pub fn request(&self) -> Result<Arc<TurnRequest>, TurnError> {
        match (&self.request, &self.body) {
            (Some(request), _) => Ok(Arc::clone(request)),
            (None, Some(body)) => Ok(Arc::new(self.dialect.read_request(body)?.value)),
            (None, None) => Err(TurnError::new(
                ErrorKind::Internal,
                "a turn has neither a body nor a request; please report this",
            )),
        }
    }
}

/// One turn for a back end that needs the parsed request.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Ours, for logs on both sides.
    pub id: Uuid,
    /// What is asked.
    pub request: Arc<TurnRequest>,
    /// The client's own body, if it speaks the host's dialect and nothing between them reads the reply.
    pub body: Option<Bytes>,
    /// The dialect the client asked in.
    pub dialect: DialectId,
    /// The model's name at the back end, if it differs from the client's.
    pub model: Option<ModelName>,
    /// Headers that mean something to a host of the client's dialect.
    pub headers: Arc<[(HeaderName, HeaderValue)]>,
    /// The caller.
    pub caller: Arc<str>,
    /// The session, if the back end keeps one.
    pub session: SessionSlot,
    /// What tells this request from an equal one.
    pub identity: RequestIdentity,
}

/// What tells a request from another with the same words, or says that both are the same (B7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestIdentity {
    /// The client's own name for the request: requests with the same name are the same request.
    pub idempotency_key: Option<Arc<str>>,
    /// What the client says about sending the request again.
    pub retry: RetryHint,
    /// Which of several answers to one request this turn gives (`n`).
    pub sample: Option<u32>,
}

/// What a client says about sending a request again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryHint {
    /// Nothing.
    #[default]
    None,
    /// It has sent the request before and got no reply.
    Retry,
    /// It wants a new reply.
    Fresh,
}

/// One turn for a host that gets the client's body, with only the model's name replaced.
#[derive(Clone, Debug)]
pub struct RelayTurn {
    /// Ours, for logs on both sides.
    pub id: Uuid,
    /// The body as the client sent it.
    pub body: Bytes,
    /// In one piece or as a stream.
    pub delivery: Delivery,
    /// The model's name at the host, if it differs from the client's.
    pub model: Option<ModelName>,
    /// Headers that mean something to the host.
    pub headers: Arc<[(HeaderName, HeaderValue)]>,
}

/// The session a client names (E3), and the one its turn is in. The back end sets it as soon as it is known, so that
/// a response that begins before its first event can have it in its head.
#[derive(Clone, Debug, Default)]
pub struct SessionSlot(Option<Arc<Slot>>);

#[derive(Debug)]
struct Slot {
    named: Option<Box<str>>,
    actual: OnceLock<Box<str>>,
}

impl SessionSlot {
    /// For a client that named this session, or none.
    pub fn new(named: Option<&str>) -> Self {
        Self(Some(Arc::new(Slot { named: named.map(Box::from), actual: OnceLock::new() })))
    }

    /// True if the back end keeps sessions.
    pub fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// The session the client named.
    pub fn named(&self) -> Option<&str> {
        self.0.as_ref()?.named.as_deref()
    }

    /// Sets the session the turn is in. Only the first call counts, and returns true.
    pub fn set(&self, session: &str) -> bool {
        self.0.as_ref().is_some_and(|slot| slot.actual.set(Box::from(session)).is_ok())
    }

    /// The session the turn is in, if it is known.
    pub fn actual(&self) -> Option<&str> {
        self.0.as_ref()?.actual.get().map(|session| &**session)
    }
}

impl Turn {
    /// The model's name at the back end.
    pub fn host_model(&self) -> &str {
        self.model.as_ref().unwrap_or(&self.request.model).as_str()
    }
}

/// A turn whose first event has arrived.
pub struct Answer {
    /// The name of the upstream that answers.
    pub upstream: Arc<str>,
    /// What of the request could not be sent to the host, and what of a whole reply could not be read.
    pub losses: Losses,
    /// How the reply is recovered while it arrives.
    pub recoveries: Recoveries,
    /// The host's request id and rate limits.
    pub headers: HostHeaders,
    /// The reply.
    pub body: AnswerBody,
    /// Whether this is the reply of an earlier run.
    pub origin: ReplyOrigin,
    /// To be told whether the client got the reply.
    pub receipt: Receipt,
}

impl Answer {
    /// An answer about which nothing else is known.
    pub fn new(upstream: Arc<str>, body: AnswerBody) -> Self {
        Self {
            upstream,
            losses: Losses::default(),
            recoveries: Recoveries::default(),
            headers: HostHeaders::default(),
            body,
            origin: ReplyOrigin::default(),
            receipt: Receipt::default(),
        }
    }
}

/// Where a reply comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyOrigin {
    /// This turn.
    #[default]
    Turn,
    /// The record of an earlier turn that gave it (B7). It was paid for then.
    Record,
}

/// How a reply that did not follow its instructions was recovered, by name. The reader of the reply sets it; the
/// turn's record reads it at the end.
#[derive(Clone, Debug, Default)]
pub struct Recoveries(Option<Arc<Mutex<Vec<&'static str>>>>);

impl Recoveries {
    /// For a back end that recovers replies. The default stores nothing.
    pub(crate) fn recorded() -> Self {
        Self(Some(Arc::default()))
    }

    /// Replaces the names.
    pub(crate) fn set(&self, names: impl Iterator<Item = &'static str>) {
        if let Some(kept) = &self.0 {
            let mut kept = kept.lock();
            kept.clear();
            kept.extend(names);
        }
    }

    /// The recoveries so far, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.as_ref().map(|kept| kept.lock().clone()).unwrap_or_default()
    }
}

/// A reply in one of its three forms.
pub enum AnswerBody {
    /// Events, to be written in the client's dialect.
    Events(EventStream),
    /// The host's own stream, which is already in the client's dialect.
    Relay(Box<dyn RelayStream>),
    /// The host's own body, which is already in the client's dialect.
    Whole(WholeBody),
}

/// A reply as it arrives. Ends after `Finished`, or after one error.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Batch, TurnError>> + Send>>;

/// Events that arrived together, and what could not be expressed in events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The events.
    pub events: Vec<TurnEvent>,
    /// What was lost with them.
    pub losses: Losses,
}

impl From<Vec<TurnEvent>> for Batch {
    fn from(events: Vec<TurnEvent>) -> Self {
        Self { events, losses: Losses::default() }
    }
}

/// A stream that is relayed without being parsed.
pub trait RelayStream: Send {
    /// The next whole frames. An error comes once and ends the stream: the host closed it, stalled or broke the protocol.
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>>;

    /// What was read off in passing. An error here was sent by the host itself and has reached the client.
    fn reading(&self) -> MeterReading;

    /// What could not be said in the client's dialect since the last call.
    fn take_losses(&mut self) -> Losses {
        Losses::default()
    }
}

/// A whole reply that is relayed without being parsed.
#[derive(Clone, Debug)]
pub struct WholeBody {
    /// As the host wrote it.
    pub bytes: Bytes,
    /// The token counts in it.
    pub usage: Option<Usage>,
}
