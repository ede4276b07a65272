//! One turn from the request's bytes to the reply's: read, admit, find a back end, answer, account.

mod body;
mod count;
mod keep;
mod prepare;
mod record;
mod samples;
mod stream;
mod whole;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use toolgate_backend::{Answer, AnswerBody};
use toolgate_model::{Delivery, ErrorKind, Losses, TurnError};

use self::prepare::{Asked, prepare, recall};
use self::record::TurnRecord;
use self::samples::{Opened, Start};
use self::stream::Pending;
use crate::http::{Api, Caller, check_media_type, json, respond};
use crate::service::Worker;

pub(crate) use self::body::TurnBody;
pub(crate) use self::count::count_tokens;
pub(crate) use self::keep::{Kept, no_such_response, store_failed};
pub(crate) use self::stream::ReplyBody;

/// Who answered.
const UPSTREAM: HeaderName = HeaderName::from_static("x-toolgate-upstream");

/// The longest text of losses that goes into a header; proxies refuse heads that are much larger.
const MAX_LOSS_BYTES: usize = 1024;

/// A request for a turn whose head has come.
pub(crate) struct Begun {
    worker: Arc<Worker>,
    asking: Asking,
    checked: Result<(), TurnError>,
    /// In a box, as it is handed on until the last byte of the reply has gone out.
    record: Box<TurnRecord>,
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

/// Begins a turn. Dropped before it is answered, it tells that the client left.
pub(crate) fn begin(worker: &Arc<Worker>, api: Api, caller: Caller, headers: &HeaderMap) -> Begun {
    let record = Box::new(TurnRecord::begin(&worker.shared, api, &caller));
    let checked = check_media_type(headers);
    let session = headers.get(prepare::SESSION).cloned();
    let asking = Asking { api, caller, headers: prepare::forwarded(headers), session };
    Begun { worker: Arc::clone(worker), asking, checked, record }
}

impl Begun {
    /// Answers the turn once its body is there, or could not be read.
    pub(crate) async fn answer(self, body: Result<Bytes, TurnError>) -> Response<TurnBody> {
        let Self { worker, asking, checked, mut record } = self;
        let api = asking.api;
        let outcome = match checked.and(body) {
            Ok(body) => reply(&worker, asking, body, &mut record).await,
            Err(error) => Err(error),
        };
        respond_with(outcome, api, record)
    }
}

fn respond_with(
    outcome: Result<Reply, TurnError>,
    api: Api,
    mut record: Box<TurnRecord>,
) -> Response<TurnBody> {
    let id = record.id();
    let mut response = match outcome {
        Ok(Reply::Whole(bytes)) => {
            record.succeed();
            let mut response = json(bytes);
            describe(&mut response, &record);
            response.map(|body: TurnBody| body.told_by(record))
        }
        Ok(Reply::Stream(pending)) => {
            let mut response = Response::new(());
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            describe(&mut response, &record);
            response.map(|()| TurnBody::Stream(Box::new(ReplyBody::new(*pending, record))))
        }
        Err(error) => {
            record.lost(unsaid(api, &error));
            record.fail(&error);
            let mut response = respond(api, &error);
            describe(&mut response, &record);
            response.map(|body: TurnBody| body.told_by(record))
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
    body: Bytes,
    record: &mut TurnRecord,
) -> Result<Reply, TurnError> {
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
fn describe<B>(response: &mut Response<B>, record: &TurnRecord) {
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
fn name_request<B>(response: &mut Response<B>, id: uuid::Uuid) {
    if let Ok(id) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(HeaderName::from_static("request-id"), id.clone());
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
}

/// What open replies are told when the gateway ends.
fn going_away() -> TurnError {
    TurnError::new(ErrorKind::Unavailable, "the gateway is shutting down; send the request again in a moment")
}
