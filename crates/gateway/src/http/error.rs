//! Errors and whole replies as HTTP responses.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use toolgate_model::TurnError;

use super::Api;

/// The error in the format of the API that the request is meant for.
pub(crate) fn refuse<B, R: From<Bytes>>(request: &Request<B>, error: &TurnError) -> Response<R> {
    respond(Api::of(request), error)
}

/// The error in the format of this API.
pub(crate) fn respond<R: From<Bytes>>(api: Api, error: &TurnError) -> Response<R> {
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
pub(crate) fn json<R: From<Bytes>>(body: Bytes) -> Response<R> {
    let mut response = Response::new(R::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
