//! What a back end is asked, and what it gives.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::Stream;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use toolgate_dialect::MeterReading;
use toolgate_model::{DialectId, Losses, ModelName, TurnError, TurnEvent, TurnRequest, Usage};
use uuid::Uuid;

use crate::host_headers::HostHeaders;

/// Something that answers turns.
pub trait Backend: Send + Sync {
    /// Begins a turn. Ready when the first event is there, so until then another back end can still be tried.
    /// Dropping the future, or what it gave, cancels the turn at once (T20).
    fn start(&self, turn: Turn) -> BoxFuture<'static, Result<Answer, TurnError>>;

    /// How many input tokens the request has, asked of who knows; `None` where nobody can be asked.
    fn count_tokens(&self, turn: Turn) -> BoxFuture<'static, Option<Result<u64, TurnError>>>;

    /// The dialect it speaks itself, where replies can be relayed unread.
    fn dialect(&self) -> Option<DialectId>;

    /// True where turns belong to sessions that a client may name (E3).
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// What logs and headers call it.
    fn name(&self) -> &Arc<str>;
}

/// One turn to be answered. Cheap to clone: failover needs copies.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Ours, for logs on both sides.
    pub id: Uuid,
    /// What is asked.
    pub request: Arc<TurnRequest>,
    /// The dialect the client asked in.
    pub dialect: DialectId,
    /// The body as the client sent it, while it still says exactly what `request` says.
    pub original: Option<Bytes>,
    /// The model's name at the back end, where it differs from the client's.
    pub model: Option<ModelName>,
    /// Headers that mean something to a host of the client's dialect (`anthropic-beta`).
    pub headers: Arc<[(HeaderName, HeaderValue)]>,
    /// Who asks: what is remembered for one caller is never shown to another.
    pub caller: Arc<str>,
    /// The session, where the back end keeps one.
    pub session: SessionSlot,
}

/// The session a client names (E3), and the one its turn turned out to be in. Told as soon as it is known, so that
/// it can stand in the head of a response that begins before the first event.
#[derive(Clone, Debug, Default)]
pub struct SessionSlot(Option<Arc<Slot>>);

#[derive(Debug)]
struct Slot {
    asked: Option<Box<str>>,
    told: OnceLock<Box<str>>,
}

impl SessionSlot {
    /// A client that named this session, or none.
    pub fn new(asked: Option<&str>) -> Self {
        Self(Some(Arc::new(Slot { asked: asked.map(Box::from), told: OnceLock::new() })))
    }

    /// What the client named.
    pub fn asked(&self) -> Option<&str> {
        self.0.as_ref()?.asked.as_deref()
    }

    /// The session the turn is in; only the first word counts.
    pub fn tell(&self, session: &str) {
        if let Some(slot) = &self.0 {
            slot.told.get_or_init(|| Box::from(session));
        }
    }

    /// The session the turn is in, where one is known.
    pub fn told(&self) -> Option<&str> {
        self.0.as_ref()?.told.get().map(|session| &**session)
    }
}

impl Turn {
    /// The model's name at the back end.
    pub fn host_model(&self) -> &str {
        self.model.as_ref().unwrap_or(&self.request.model).as_str()
    }
}

/// A turn whose first event is there.
pub struct Answer {
    /// Who answers.
    pub upstream: Arc<str>,
    /// What of the request did not reach the host, and what of a whole reply could not be read.
    pub losses: Losses,
    /// What is done to save the reply, while it comes.
    pub rescues: Rescues,
    /// The host's request id and rate limits.
    pub headers: HostHeaders,
    /// The reply.
    pub body: AnswerBody,
}

/// What was done to save a reply that was not written as it should be, by name. Whoever reads the reply tells; who
/// accounts for the turn looks when it is over.
#[derive(Clone, Debug, Default)]
pub struct Rescues(Option<Arc<Mutex<Vec<&'static str>>>>);

impl Rescues {
    /// For a back end that saves replies. The default takes nothing and costs nothing.
    pub(crate) fn kept() -> Self {
        Self(Some(Arc::default()))
    }

    /// Replaces what was told before.
    pub(crate) fn tell(&self, names: impl Iterator<Item = &'static str>) {
        if let Some(told) = &self.0 {
            let mut told = told.lock();
            told.clear();
            told.extend(names);
        }
    }

    /// What was done so far, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.as_ref().map(|told| told.lock().clone()).unwrap_or_default()
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

/// A reply as it comes. Ends after `Finished`, or after one error.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Batch, TurnError>> + Send>>;

/// Events that arrived together, and what could not be said in events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The events.
    pub events: Vec<TurnEvent>,
    /// What was lost beside them.
    pub losses: Losses,
}

impl From<Vec<TurnEvent>> for Batch {
    fn from(events: Vec<TurnEvent>) -> Self {
        Self { events, losses: Losses::default() }
    }
}

/// A stream relayed unread.
pub trait RelayStream: Send {
    /// The next whole frames. An error comes once and ends the stream: the host cut it, stalled or broke off.
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>>;

    /// What was read off in passing. An error here was told by the host itself and has reached the client.
    fn reading(&self) -> MeterReading;
}

/// A whole reply relayed unread.
#[derive(Clone, Debug)]
pub struct WholeBody {
    /// As the host wrote it.
    pub bytes: Bytes,
    /// The token counts in it.
    pub usage: Option<Usage>,
}
