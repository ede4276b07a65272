//! Errors and whole replies as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode};
use toolgate_model::TurnError;

use super::Api;

/// The error as the API that the request means tells it.
pub(crate) fn refuse<B>(request: &Request<B>, error: &TurnError) -> Response {
    respond(Api::of(request), error)
}

/// The error as this API tells it.
pub(crate) fn respond(api: Api, error: &TurnError) -> Response {
    let mut response = json(api.dialect().write_error(error).into());
    *response.status_mut() =
        StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(wait) = error.retry_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A JSON body.
pub(crate) fn json(body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
