//! `POST /v1/messages/count_tokens` and `POST /v1/responses/input_tokens`: counted by the host if it can, else estimated
//! (T35).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use toolgate_backend::{ClientTurn, RequestIdentity, SessionSlot};
use toolgate_dialect::{anthropic_messages, openai_responses};
use toolgate_model::{Delivery, ModelName, TurnError, TurnRequest, estimate};
use uuid::Uuid;

use super::complete::complete;
use super::head::forwarded;
use super::reply::id_headers;
use super::request::names_stored_parts;
use crate::http::{Api, Caller, check_media_type, read_body, respond};
use crate::service::Worker;

/// Says where a count comes from: `host` or `estimate`.
const COUNTED_BY: HeaderName = HeaderName::from_static("x-toolgate-count");

/// Answers how many input tokens a request has.
pub(crate) async fn count_tokens(
    worker: Arc<Worker>,
    api: Api,
    caller: Caller,
    request: Request,
) -> Response {
    let id = Uuid::now_v7();
    let mut response = match count(&worker, api, &caller, request, id).await {
        Ok((count, counted_by)) => {
            let mut response = Response::new(Body::from(write(api, count)));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(COUNTED_BY, HeaderValue::from_static(counted_by));
            response
        }
        Err(error) => respond(api, &error),
    };
    response.headers_mut().extend(id_headers(id));
    response
}

async fn count(
    worker: &Worker,
    api: Api,
    caller: &Caller,
    request: Request,
    id: Uuid,
) -> Result<(u64, &'static str), TurnError> {
    check_media_type(request.headers())?;
    let headers = forwarded(request.headers());
    let body = read_body(request.into_body(), &worker.shared.limits).await?;
    let dialect = api.dialect();
    let peek = dialect.peek_request(&body)?;
    let route = caller.route(&worker.router, &peek.model)?;
    let mut turn = ClientTurn {
        id,
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
    let mut missing = None;
    if api == Api::Responses
        && names_stored_parts(&peek)
        && let Some(completed) = complete(worker, caller, &route, &read(api, &body)?).await?
    {
        missing = completed.missing;
        turn.request = Some(Arc::new(completed.request));
        turn.body = turn.body.filter(|_| completed.is_in_body);
    }
    if let Some(missing) = &missing
        && !caller.is_only_tenant()
    {
        return Err(missing.clone());
    }
    match (route.count_tokens(&turn).await, missing) {
        (Some(Ok(count)), _) => return Ok((count, "host")),
        (Some(Err(error)), Some(_)) => return Err(error),
        (None, Some(missing)) => return Err(missing),
        (Some(Err(error)), None) => {
            tracing::warn!(%id, %error, "the host did not count the tokens; they are estimated");
        }
        (None, None) => {}
    }
    let request = match turn.request {
        Some(request) => request,
        None => Arc::new(read(api, &body)?),
    };
    Ok((estimate::input_tokens(&request), "estimate"))
}

/// Reads a request that is counted and not answered.
fn read(api: Api, body: &Bytes) -> Result<TurnRequest, TurnError> {
    let read = match api {
        Api::Messages => anthropic_messages::read_count_request(body)?,
        Api::Chat | Api::Responses => api.dialect().read_unpaired(body)?,
    };
    Ok(read.value)
}

fn write(api: Api, count: u64) -> Vec<u8> {
    match api {
        Api::Messages | Api::Chat => anthropic_messages::write_count(count),
        Api::Responses => openai_responses::write_count(count),
    }
}
