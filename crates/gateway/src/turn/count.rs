//! `POST /v1/messages/count_tokens`: asked of a host where one can be asked, else estimated (T35).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use toolgate_backend::{SessionSlot, Turn};
use toolgate_dialect::anthropic_messages;
use toolgate_model::{TurnError, estimate};
use uuid::Uuid;

use super::body::names_of;
use super::prepare;
use crate::http::{Api, Caller, check_media_type, read_body, respond};
use crate::service::Worker;

/// Says where a count comes from: `host` or `estimate`.
const COUNTED_BY: HeaderName = HeaderName::from_static("x-toolgate-count");

/// Answers how many input tokens a request has.
pub(crate) async fn count_tokens(worker: Arc<Worker>, caller: Caller, request: Request) -> Response {
    let id = Uuid::now_v7();
    let mut response = match count(&worker, &caller, request, id).await {
        Ok((count, counted_by)) => {
            let mut response = Response::new(Body::from(anthropic_messages::write_count(count)));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(COUNTED_BY, HeaderValue::from_static(counted_by));
            response
        }
        Err(error) => respond(Api::Messages, &error),
    };
    response.headers_mut().extend(names_of(id));
    response
}

async fn count(
    worker: &Worker,
    caller: &Caller,
    request: Request,
    id: Uuid,
) -> Result<(u64, &'static str), TurnError> {
    check_media_type(request.headers())?;
    let headers = prepare::forwarded(request.headers());
    let body = read_body(request.into_body(), worker.shared.limits.body_bytes).await?;
    let request = Arc::new(anthropic_messages::read_count_request(&body)?.value);
    caller.check_model(request.model.as_str())?;
    let route = worker.router.find(request.model.as_str())?;
    let turn = Turn {
        id,
        request: Arc::clone(&request),
        dialect: Api::Messages.dialect().id(),
        original: Some(body),
        model: None,
        headers,
        caller: caller.name(),
        session: SessionSlot::default(),
    };
    match route.count_tokens(&turn).await {
        Some(Ok(count)) => return Ok((count, "host")),
        Some(Err(error)) => {
            tracing::warn!(%id, %error, "the host did not count the tokens; they are estimated");
        }
        None => {}
    }
    Ok((estimate::input_tokens(&request), "estimate"))
}
