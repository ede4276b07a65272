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
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_backend::{Answer, AnswerBody};
use toolgate_model::{Delivery, ErrorKind, Losses, TurnError};

use self::prepare::{Asked, prepare, recall};
use self::record::TurnRecord;
use self::samples::{Opened, Start};
use self::stream::Pending;
use crate::http::{Api, Caller, check_media_type, respond};
use crate::service::Worker;

pub(crate) use self::body::{ID_NAMES, TurnBody, TurnReply};
pub(crate) use self::count::count_tokens;
pub(crate) use self::keep::{Kept, no_such_response, store_failed};
pub(crate) use self::stream::ReplyBody;

/// Who answered.
const UPSTREAM: HeaderName = HeaderName::from_static("x-toolgate-upstream");

/// What was lost on the way.
const LOSS: HeaderName = HeaderName::from_static("x-toolgate-loss");

/// The longest text of losses that goes into a header; proxies refuse heads that are much larger.
const MAX_LOSS_BYTES: usize = 1024;

/// A request for a turn whose head has come.
pub(crate) struct Begun {
    worker: Arc<Worker>,
    asking: Arc<Asking>,
    /// In a box, as it is handed on until the last byte of the reply has gone out.
    record: Box<TurnRecord>,
}

/// What the head of a request for a turn says. Another request with the same head asks the same.
pub(crate) struct Asking {
    api: Api,
    caller: Caller,
    /// Those that go on to a host.
    headers: Arc<[(HeaderName, HeaderValue)]>,
    /// The session it names.
    session: Option<HeaderValue>,
    /// Whether its body is of a kind that can be read.
    checked: Result<(), TurnError>,
}

impl Asking {
    /// What a caller asks with these headers.
    pub(crate) fn new(api: Api, caller: Caller, headers: &HeaderMap) -> Self {
        Self {
            api,
            caller,
            headers: prepare::forwarded(headers),
            session: headers.get(prepare::SESSION).cloned(),
            checked: check_media_type(headers),
        }
    }
}

/// Begins a turn. Dropped before it is answered, it tells that the client left.
pub(crate) fn begin(worker: &Arc<Worker>, asking: Arc<Asking>) -> Begun {
    let record = Box::new(TurnRecord::begin(&worker.shared, asking.api, &asking.caller));
    Begun { worker: Arc::clone(worker), asking, record }
}

impl Begun {
    /// Answers the turn once its body is there, or could not be read.
    pub(crate) async fn answer(self, body: Result<Bytes, TurnError>) -> TurnReply {
        let Self { worker, asking, mut record } = self;
        let outcome = match asking.checked.clone().and(body) {
            Ok(body) => reply(&worker, &asking, body, &mut record).await,
            Err(error) => Err(error),
        };
        respond_with(outcome, asking.api, record)
    }
}

fn respond_with(outcome: Result<Reply, TurnError>, api: Api, mut record: Box<TurnRecord>) -> TurnReply {
    match outcome {
        Ok(Reply::Whole(bytes)) => {
            record.succeed();
            let mut reply = TurnReply::new(HeaderValue::from_static("application/json"));
            describe(&mut reply, &record);
            reply.body = TurnBody::whole(bytes, record);
            reply
        }
        Ok(Reply::Stream(pending)) => {
            let mut reply = TurnReply::new(HeaderValue::from_static("text/event-stream; charset=utf-8"));
            reply.fields.push((CACHE_CONTROL, HeaderValue::from_static("no-cache")));
            describe(&mut reply, &record);
            reply.body = TurnBody::Stream(Box::new(ReplyBody::new(*pending, record)));
            reply
        }
        Err(error) => {
            record.lost(unsaid(api, &error));
            record.fail(&error);
            let mut reply = TurnReply::from(respond(api, &error));
            describe(&mut reply, &record);
            reply.body.tell_by(record);
            reply
        }
    }
}

/// A reply that is ready to go out.
enum Reply {
    Whole(Bytes),
    Stream(Box<Pending>),
}

async fn reply(
    worker: &Arc<Worker>,
    asking: &Asking,
    body: Bytes,
    record: &mut TurnRecord,
) -> Result<Reply, TurnError> {
    let mut asked = prepare(worker, asking, body, record)?;
    if asked.turn.request.previous.is_some() {
        recall(worker, &asking.caller, &mut asked).await?;
    }
    let mut start = samples::start(&asked)?;
    let Some(opened) = unless_ending(worker, first_event(worker, &asked, &mut start)).await? else {
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
        (opened, Delivery::Whole) => collect(worker, asked, opened, record).await,
    }
}

/// One reply from all that comes.
async fn collect(
    worker: &Arc<Worker>,
    asked: Asked,
    opened: Opened,
    record: &mut TurnRecord,
) -> Result<Reply, TurnError> {
    let bytes = Box::pin(whole::collect(worker, asked, opened, record));
    unless_ending(worker, bytes).await?.map(Reply::Whole)
}

/// What the future gives, unless the gateway ends before.
async fn unless_ending<T>(worker: &Worker, future: impl Future<Output = T>) -> Result<T, TurnError> {
    tokio::select! {
        biased;
        outcome = future => Ok(outcome),
        () = worker.tasks.grace_over().cancelled() => Err(going_away()),
    }
}

/// The answer; `None` where a stream should rather begin to show that it is alive.
async fn first_event(worker: &Worker, asked: &Asked, start: &mut Start) -> Option<Result<Opened, TurnError>> {
    match asked.turn.request.delivery {
        Delivery::Whole => Some(start.await),
        Delivery::Stream(_) => tokio::time::timeout(worker.shared.limits.commit_after, start).await.ok(),
    }
}

/// Which request this answers, who did, and what was lost on the way, as far as it is known now.
fn describe(reply: &mut TurnReply, record: &TurnRecord) {
    if let Some(name) = record.upstream().and_then(|name| HeaderValue::from_str(name).ok()) {
        reply.fields.push((UPSTREAM, name));
    }
    if let Some(session) = record.session().and_then(|session| HeaderValue::from_str(session).ok()) {
        reply.fields.push((prepare::SESSION, session));
    }
    if let Some(places) = lost_places(record.losses()) {
        reply.fields.push((LOSS, places));
    }
    reply.id = Some(record.id());
}

/// Where something was lost, as far as it fits into a header.
fn lost_places(losses: &Losses) -> Option<HeaderValue> {
    if losses.is_empty() {
        return None;
    }
    let mut places = String::new();
    for loss in losses.iter() {
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

/// What a host said of its error that this API has no words for.
fn unsaid(api: Api, error: &TurnError) -> Losses {
    let mut losses = Losses::default();
    // Only what is lost matters here: what this API can say is in the body already.
    error.extras.write(api.dialect().id(), "", &mut losses);
    losses
}

/// What open replies are told when the gateway ends.
fn going_away() -> TurnError {
    TurnError::new(ErrorKind::Unavailable, "the gateway is shutting down; send the request again in a moment")
}
