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
use toolgate_model::{Delivery, ErrorKind, TurnError};

use self::prepare::{Asked, prepare};
use self::record::TurnRecord;
use self::samples::{Opened, Start};
use self::stream::{Pending, ReplyBody};
use crate::http::{Api, Caller, read_body, respond};
use crate::service::Worker;

pub(crate) use self::count::count_tokens;
pub(crate) use self::keep::{Kept, no_such_response, store_failed};

/// Who answered.
const UPSTREAM: HeaderName = HeaderName::from_static("x-toolgate-upstream");

/// The longest text of losses that goes into a header; proxies refuse heads that are much larger.
const MAX_LOSS_BYTES: usize = 1024;

/// Answers a request for a turn.
pub(crate) async fn answer(
    worker: Arc<Worker>,
    api: Api,
    caller: Caller,
    request: Request<Incoming>,
) -> Response {
    let mut record = TurnRecord::begin(&worker.shared, api, &caller);
    let id = record.id();
    let outcome = match begin(&worker, api, &caller, request, &mut record).await {
        Ok(begun) => finish(worker, begun, &mut record).await,
        Err(error) => Err(error),
    };
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

/// A turn at the back end, which may have answered already.
struct Begun {
    asked: Asked,
    answer: Answered,
}

/// Whether the back end's first event came in time.
enum Answered {
    Yes(Box<Opened>),
    NotYet(Start),
}

async fn begin(
    worker: &Arc<Worker>,
    api: Api,
    caller: &Caller,
    request: Request<Incoming>,
    record: &mut TurnRecord,
) -> Result<Begun, TurnError> {
    let headers = prepare::forwarded(request.headers());
    let body = read_body(request, worker.shared.limits.body_bytes).await?;
    let mut asked = prepare(worker, api, caller, body, record).await?;
    asked.turn.headers = headers;
    let mut start = samples::start(&asked)?;
    let answer = tokio::select! {
        biased;
        answer = first_event(worker, &asked, &mut start) => answer,
        () = worker.tasks.grace_over().cancelled() => return Err(going_away()),
    };
    let answer = match answer {
        Some(opened) => {
            let opened = opened?;
            record.answered(&opened.first);
            Answered::Yes(Box::new(opened))
        }
        None => Answered::NotYet(start),
    };
    Ok(Begun { asked, answer })
}

/// The answer; `None` where a stream should rather begin to show that it is alive.
async fn first_event(worker: &Worker, asked: &Asked, start: &mut Start) -> Option<Result<Opened, TurnError>> {
    match asked.turn.request.delivery {
        Delivery::Whole => Some(start.await),
        Delivery::Stream(_) => tokio::time::timeout(worker.shared.limits.commit_after, start).await.ok(),
    }
}

async fn finish(worker: Arc<Worker>, begun: Begun, record: &mut TurnRecord) -> Result<Reply, TurnError> {
    let Begun { asked, answer } = begun;
    let opened = match answer {
        Answered::NotYet(start) => {
            return Ok(Reply::Stream(Box::new(Pending::starting(worker, asked, start))));
        }
        Answered::Yes(opened) => *opened,
    };
    match (opened, asked.turn.request.delivery) {
        (opened, Delivery::Stream(_)) => {
            Ok(Reply::Stream(Box::new(Pending::answered(worker, asked, opened))))
        }
        (Opened { first: Answer { body: AnswerBody::Whole(body), .. }, .. }, Delivery::Whole) => {
            record.read(body.reading.usage);
            Ok(Reply::Whole(body.bytes))
        }
        (opened, Delivery::Whole) => {
            let grace_over = worker.tasks.grace_over().clone();
            let bytes = tokio::select! {
                biased;
                bytes = whole::collect(&worker, asked, opened, record) => bytes?,
                () = grace_over.cancelled() => return Err(going_away()),
            };
            Ok(Reply::Whole(bytes))
        }
    }
}

/// Who answered, and what was lost on the way, as far as it is known now.
fn describe(response: &mut Response, record: &TurnRecord) {
    let headers = response.headers_mut();
    if let Some(name) = record.upstream().and_then(|name| HeaderValue::from_str(name).ok()) {
        headers.insert(UPSTREAM, name);
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
