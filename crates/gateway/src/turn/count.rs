//! `POST /v1/messages/count_tokens`: counted by the host if it can, else estimated (T35).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use toolgate_backend::{ClientTurn, SessionSlot};
use toolgate_dialect::anthropic_messages;
use toolgate_model::{Delivery, ModelName, TurnError, estimate};
use uuid::Uuid;

use super::head::forwarded;
use super::reply::id_headers;
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
    response.headers_mut().extend(id_headers(id));
    response
}

async fn count(
    worker: &Worker,
    caller: &Caller,
    request: Request,
    id: Uuid,
) -> Result<(u64, &'static str), TurnError> {
    check_media_type(request.headers())?;
    let headers = forwarded(request.headers());
    let body = read_body(request.into_body(), &worker.shared.limits).await?;
    let dialect = Api::Messages.dialect();
    let peek = dialect.peek_request(&body)?;
    caller.check_model(&peek.model)?;
    let route = worker.router.find(&peek.model)?;
    let turn = ClientTurn {
        id,
        dialect,
        model: ModelName::from(&*peek.model),
        delivery: Delivery::Whole,
        request: None,
        body: Some(body.clone()),
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
    let request = anthropic_messages::read_count_request(&body)?.value;
    Ok((estimate::input_tokens(&request), "estimate"))
}
