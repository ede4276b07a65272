//! The stream of observed events, and the snapshot to begin with.
//!
//! ```text
//!  GET /console/api/events     event: hello   {epoch, seq, now, version}
//!                              event: reset   {}                 the position is gone: take a snapshot
//!                              id: epoch:seq  event: text_delta …
//!                              : ping
//!  GET /console/api/snapshot   {epoch, seq, now, sessions, open, pending}
//! ```
//!
//! A client subscribes first, takes the snapshot, and ignores events up to the snapshot's `seq`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio_util::sync::WaitForCancellationFutureOwned;
use toolgate_model::approval::Question;
use toolgate_model::observed::{EventPosition, ObservedEvent};
use toolgate_model::{ErrorKind, TurnError};
use toolgate_state::{BusSnapshot, Joined, SessionRow, Subscription};

use crate::http::refuse;
use crate::service::Worker;

/// How often a quiet stream sends a comment. Clients reopen a stream that is silent for much longer.
const PING_EVERY: Duration = Duration::from_secs(15);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Asks nginx not to buffer a stream.
const ACCEL_BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

const NO_STORE: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// `GET /console/api/events`.
pub(crate) async fn events(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    match open(&worker, request.headers()) {
        Ok(stream) => {
            let kind = (CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
            let headers = HeaderMap::from_iter([kind, NO_STORE, ACCEL_BUFFERING]);
            (headers, Body::from_stream(stream::unfold(stream, EventsStream::next))).into_response()
        }
        Err(error) => refuse(&request, &error),
    }
}

/// `GET /console/api/snapshot`.
pub(crate) async fn snapshot(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    // The events come first: a question that is asked meanwhile may be in both, but never in neither.
    let snapshot = worker.shared.bus.snapshot();
    let pending = match worker.shared.inbox.waiting().await {
        Ok(pending) => pending,
        Err(error) => {
            tracing::error!(%error, "the store failed");
            let message = "reading the open questions failed; try again, and see the gateway's log";
            return refuse(&request, &TurnError::new(ErrorKind::Internal, message).caused_by(error));
        }
    };
    let body = snapshot_json(&snapshot, &pending, worker.shared.clock.now().0);
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (HeaderMap::from_iter([kind, NO_STORE]), body.to_string()).into_response()
}

/// An open stream of events.
struct EventsStream {
    subscription: Subscription,
    /// What is sent first.
    greeting: Option<Bytes>,
    stopping: std::pin::Pin<Box<WaitForCancellationFutureOwned>>,
}

fn open(worker: &Worker, headers: &HeaderMap) -> Result<EventsStream, TurnError> {
    let bus = &worker.shared.bus;
    let last = headers.get(LAST_EVENT_ID);
    let from = last.and_then(|last| last.to_str().ok()?.parse::<EventPosition>().ok());
    let too_many = |error| TurnError::new(ErrorKind::Unavailable, format!("{error}"));
    let (subscription, is_reset) = match bus.subscribe(from).map_err(too_many)? {
        // An id that is no position is as useless as an old one.
        Joined::Continued(subscription) => (subscription, last.is_some() && from.is_none()),
        Joined::Reset(subscription) => (subscription, true),
    };
    let position = subscription.position();
    let now = worker.shared.clock.now().0;
    let hello = json!({
        "epoch": position.epoch.to_string(),
        "seq": position.seq,
        "now": now,
        "version": env!("CARGO_PKG_VERSION"),
    });
    let mut greeting = format!("event: hello\ndata: {hello}\n\n");
    if is_reset {
        greeting.push_str("event: reset\ndata: {}\n\n");
    }
    let stopping = Box::pin(worker.tasks.stopping().clone().cancelled_owned());
    Ok(EventsStream { subscription, greeting: Some(greeting.into()), stopping })
}

impl EventsStream {
    /// The next bytes; `None` if the client has fallen behind or the gateway stops. The client then resumes.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if let Some(greeting) = self.greeting.take() {
            return Some((Ok(greeting), self));
        }
        let bytes = tokio::select! {
            biased;
            () = self.stopping.as_mut() => return None,
            events = self.subscription.next() => frames(&events?),
            () = tokio::time::sleep(PING_EVERY) => Bytes::from_static(b": ping\n\n"),
        };
        Some((Ok(bytes), self))
    }
}

fn frames(events: &[Arc<ObservedEvent>]) -> Bytes {
    let mut frames = Vec::new();
    for event in events {
        let head = format!("id: {}\nevent: {}\ndata: ", event.position, event.observation.kind());
        frames.extend_from_slice(head.as_bytes());
        if let Err(error) = serde_json::to_writer(&mut frames, &**event) {
            tracing::error!(%error, "an observed event cannot be written; please report this");
        }
        frames.extend_from_slice(b"\n\n");
    }
    frames.into()
}

fn snapshot_json(snapshot: &BusSnapshot, pending: &[Question], now: i64) -> Value {
    let BusSnapshot { position, sessions, open } = snapshot;
    json!({
        "epoch": position.epoch,
        "seq": position.seq,
        "now": now,
        "sessions": sessions.iter().map(session_json).collect::<Vec<_>>(),
        "open": open,
        "pending": pending,
    })
}

fn session_json(row: &SessionRow) -> Value {
    let SessionRow { session, description, started_at, changed_at, open_turns, questions, usage } = row;
    let mut written = json!({
        "session": session,
        "started_at": started_at.0,
        "changed_at": changed_at.0,
        "open_turns": open_turns,
        "questions": questions,
        "usage": usage,
    });
    if let (Value::Object(written), Ok(Value::Object(description))) =
        (&mut written, serde_json::to_value(description))
    {
        written.extend(description);
    }
    written
}
