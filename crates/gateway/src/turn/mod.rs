//! One turn from the request's bytes to the reply's: read, admit, find a back end, answer, account.

mod count;
mod keep;
mod prepare;
mod record;
mod samples;
mod stream;
mod whole;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request};
use hyper::body::Incoming;
use toolgate_backend::{Answer, AnswerBody};
use toolgate_model::{Delivery, ErrorKind, Losses, TurnError};

use self::prepare::{Asked, prepare, recall};
use self::record::TurnRecord;
use self::samples::{Opened, Start};
use self::stream::{Pending, ReplyBody};
use crate::http::{Api, Caller, check_media_type, read_body, respond};
use crate::service::Worker;

pub(crate) use self::count::count_tokens;
pub(crate) use self::keep::{Kept, no_such_response, store_failed};

/// Who answered.
const UPSTREAM: HeaderName = HeaderName::from_static("x-toolgate-upstream");

/// The longest text of losses that goes into a header; proxies refuse heads that are much larger.
const MAX_LOSS_BYTES: usize = 1024;

/// Answers a request for a turn.
///
/// What a turn carries along from wait to wait is moved with it, so the rare and large steps have boxes of their own.
pub(crate) fn answer(
    worker: &Arc<Worker>,
    api: Api,
    caller: Caller,
    request: Request<Incoming>,
) -> impl Future<Output = Response> + Send + use<> {
    let mut record = TurnRecord::begin(&worker.shared, api, &caller);
    let worker = Arc::clone(worker);
    let (head, body) = request.into_parts();
    let checked = check_media_type(&head.headers);
    let session = head.headers.get(prepare::SESSION).cloned();
    let asking = Asking { api, caller, headers: prepare::forwarded(&head.headers), session };
    async move {
        let outcome = match checked {
            Ok(()) => reply(&worker, asking, body, &mut record).await,
            Err(error) => Err(error),
        };
        respond_with(outcome, api, record)
    }
}

/// A request for a turn, but for its body.
struct Asking {
    api: Api,
    caller: Caller,
    /// Those that go on to a host.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The session it names.
    session: Option<HeaderValue>,
}

fn respond_with(outcome: Result<Reply, TurnError>, api: Api, mut record: TurnRecord) -> Response {
    let id = record.id();
    let mut response = match outcome {
        Ok(Reply::Whole(bytes)) => {
            record.succeed();
            let mut response = Response::new(Body::from(bytes));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            describe(&mut response, &record);
            response
        }
        Ok(Reply::Stream(pending)) => {
            let mut response = Response::new(Body::empty());
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            describe(&mut response, &record);
            *response.body_mut() = Body::new(ReplyBody::new(*pending, record));
            response
        }
        Err(error) => {
            record.lost(unsaid(api, &error));
            record.fail(&error);
            let mut response = respond(api, &error);
            describe(&mut response, &record);
            response
        }
    };
    name_request(&mut response, id);
    response
}

/// A reply that is ready to go out.
enum Reply {
    Whole(Bytes),
    Stream(Box<Pending>),
}

async fn reply(
    worker: &Arc<Worker>,
    mut asking: Asking,
    body: Incoming,
    record: &mut TurnRecord,
) -> Result<Reply, TurnError> {
    let body = read_body(body, worker.shared.limits.body_bytes).await?;
    let mut asked = prepare(worker, &mut asking, body, record)?;
    if asked.turn.request.previous.is_some() {
        Box::pin(recall(worker, &asking.caller, &mut asked)).await?;
    }
    let mut start = samples::start(&asked)?;
    let opened = tokio::select! {
        biased;
        opened = first_event(worker, &asked, &mut start) => opened,
        () = worker.tasks.grace_over().cancelled() => return Err(going_away()),
    };
    let Some(opened) = opened else {
        return Ok(Reply::Stream(Box::new(Pending::starting(Arc::clone(worker), asked, start))));
    };
    let opened = opened?;
    record.answered(&opened.first);
    match (opened, asked.turn.request.delivery) {
        (opened, Delivery::Stream(_)) => {
            Ok(Reply::Stream(Box::new(Pending::answered(Arc::clone(worker), asked, opened))))
        }
        (Opened { first: Answer { body: AnswerBody::Whole(body), .. }, .. }, Delivery::Whole) => {
            record.read(body.usage);
            if let Some(keeping) = asked.keep_relayed(worker, &body.bytes) {
                keeping.await;
            }
            Ok(Reply::Whole(body.bytes))
        }
        (opened, Delivery::Whole) => {
            tokio::select! {
                biased;
                bytes = Box::pin(whole::collect(worker, asked, opened, record)) => Ok(Reply::Whole(bytes?)),
                () = worker.tasks.grace_over().cancelled() => Err(going_away()),
            }
        }
    }
}

/// The answer; `None` where a stream should rather begin to show that it is alive.
async fn first_event(worker: &Worker, asked: &Asked, start: &mut Start) -> Option<Result<Opened, TurnError>> {
    match asked.turn.request.delivery {
        Delivery::Whole => Some(start.await),
        Delivery::Stream(_) => tokio::time::timeout(worker.shared.limits.commit_after, start).await.ok(),
    }
}

/// Who answered, and what was lost on the way, as far as it is known now.
fn describe(response: &mut Response, record: &TurnRecord) {
    let headers = response.headers_mut();
    if let Some(name) = record.upstream().and_then(|name| HeaderValue::from_str(name).ok()) {
        headers.insert(UPSTREAM, name);
    }
    if let Some(session) = record.session().and_then(|session| HeaderValue::from_str(session).ok()) {
        headers.insert(prepare::SESSION, session);
    }
    let mut places = String::new();
    for loss in record.losses().iter() {
        let separator = if places.is_empty() { "" } else { ", " };
        if places.len() + separator.len() + loss.place.len() > MAX_LOSS_BYTES {
            places.push_str(", ...");
            break;
        }
        places.push_str(separator);
        places.extend(loss.place.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' '));
    }
    if let Some(places) = HeaderValue::try_from(places).ok().filter(|places| !places.is_empty()) {
        headers.insert(HeaderName::from_static("x-toolgate-loss"), places);
    }
}

/// What a host said of its error that this API has no words for.
fn unsaid(api: Api, error: &TurnError) -> Losses {
    let mut losses = Losses::default();
    // Only what is lost matters here: what this API can say is in the body already.
    error.extras.write(api.dialect().id(), "", &mut losses);
    losses
}

/// Both APIs' own names for the id of a request.
fn name_request(response: &mut Response, id: uuid::Uuid) {
    if let Ok(id) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(HeaderName::from_static("request-id"), id.clone());
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
}

/// What open replies are told when the gateway ends.
fn going_away() -> TurnError {
    TurnError::new(ErrorKind::Unavailable, "the gateway is shutting down; send the request again in a moment")
}
