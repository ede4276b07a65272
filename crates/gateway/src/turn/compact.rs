//! `POST /v1/responses/compact`: a host that speaks the Responses API compacts the conversation. Other hosts have nothing
//! like it, and the compacted form is readable only for the host that made it.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use toolgate_backend::{AnswerBody, ClientTurn, RequestIdentity, SessionSlot};
use toolgate_model::{Delivery, ErrorKind, ModelName, TurnError};

use super::answer::Reply;
use super::complete::complete;
use super::head::forwarded;
use super::record::TurnRecord;
use super::reply::TurnReply;
use super::request::names_stored_parts;
use crate::http::{Api, Caller, check_media_type, read_body};
use crate::service::Worker;

const API: Api = Api::Responses;

/// Answers with the compacted conversation.
pub(crate) async fn compact(worker: Arc<Worker>, caller: Caller, request: Request) -> Response {
    let mut record = Box::new(TurnRecord::begin(&worker.shared, API, &caller));
    let reply = match ask_host(&worker, &caller, request, &mut record).await {
        Ok(reply) => TurnReply::success(reply, record),
        Err(error) => TurnReply::failure(API, &error, record),
    };
    http::Response::from(reply).map(axum::body::Body::new)
}

async fn ask_host(
    worker: &Worker,
    caller: &Caller,
    request: Request,
    record: &mut TurnRecord,
) -> Result<Reply, TurnError> {
    check_media_type(request.headers())?;
    let headers = forwarded(request.headers());
    let body = read_body(request.into_body(), &worker.shared.limits).await?;
    let dialect = API.dialect();
    let peek = dialect.peek_request(&body)?;
    record.set_model(&peek.model);
    caller.check_model(&peek.model)?;
    let route = worker.router.find(&peek.model)?;
    if names_stored_parts(&peek) && !caller.is_only_tenant() {
        let request = dialect.read_unpaired(&body)?.value;
        let completed = complete(worker, caller, &route, &request).await?;
        if let Some(missing) = completed.and_then(|completed| completed.missing) {
            return Err(missing);
        }
    }
    let turn = ClientTurn {
        id: record.id(),
        dialect,
        model: ModelName::from(&*peek.model),
        delivery: Delivery::Whole,
        request: None,
        body: Some(body.clone()),
        headers,
        caller: caller.name(),
        session: SessionSlot::default(),
        identity: RequestIdentity::default(),
    };
    let mut answer = route.compact(&turn).await.unwrap_or_else(|| Err(not_supported(&peek.model)))?;
    record.set_answer(&mut answer);
    match answer.body {
        AnswerBody::Whole(body) => {
            record.set_usage(body.usage);
            Ok(Reply::Whole(body.bytes))
        }
        AnswerBody::Events(_) | AnswerBody::Relay(_) => Err(TurnError::new(
            ErrorKind::Internal,
            "the back end streams a compacted conversation; please report this",
        )),
    }
}

/// A status below 500, because clients repeat what fails with 500 and above.
fn not_supported(model: &str) -> TurnError {
    const SHOWN_CHARS: usize = 100;
    let shown: String = model.chars().take(SHOWN_CHARS).collect();
    let mut error = TurnError::invalid_param(
        "model",
        format!(
            "model: no host of `{shown}` speaks the Responses API, so its conversations cannot be compacted; send the \
             conversation as it is, or ask the model for a summary"
        ),
    );
    error.code = Some("unsupported_endpoint".to_owned());
    error
}
