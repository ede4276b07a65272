//! `/console` and the guard of `/console/api`: only the holder of a console token may look and decide. Callers' keys do
//! not open it, because callers are who the rules are for.
//!
//! `Host` and `Origin` were checked before (`door.rs`). No answer has CORS headers, so pages of other sites cannot read
//! it, and a POST must be JSON, which such pages cannot send without asking first.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_model::{ErrorKind, TurnError};

use super::{Api, approvals, check_media_type, error, read_body, respond};
use crate::console;
use crate::service::Worker;

/// The API below `/console/api`.
const API: &str = "/console/api";

/// What `/console` says: the page is not built yet.
const ABOUT: &str = "\
This is toolgate's console. It has an API, but no page yet.

  toolgate approvals    answers the agents' questions from a terminal
  /console/api/…        the same over HTTP: see docs/approvals.md
";

/// True for paths that a console token opens instead of a caller's key.
pub(super) fn is_console(path: &str) -> bool {
    path.strip_prefix("/console").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn routes(worker: &Arc<Worker>) -> Router<Arc<Worker>> {
    let api = approvals::routes()
        .route("/events", get(console::events))
        .route("/snapshot", get(console::snapshot))
        .fallback(unknown_path)
        .layer(middleware::from_fn_with_state(Arc::clone(worker), guard));
    Router::new().route("/console", get(about)).nest(API, api)
}

async fn about() -> &'static str {
    ABOUT
}

async fn guard(State(worker): State<Arc<Worker>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&worker, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => refuse(&error),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn admit(worker: &Worker, request: &Request) -> Result<(), TurnError> {
    if !worker.shared.console.admits(request.headers(), worker.shared.clock.now()) {
        return Err(TurnError::new(
            ErrorKind::Authentication,
            "this needs a console token as `Authorization: Bearer`; `toolgate console` prints one",
        ));
    }
    if request.method() == Method::POST {
        if !request.headers().contains_key(CONTENT_TYPE) {
            let mut error = TurnError::invalid("send `content-type: application/json`");
            error.status = Some(StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16());
            return Err(error);
        }
        check_media_type(request.headers())?;
    }
    Ok(())
}

/// An error of the console's API: `{"error": {"message": …}}`.
pub(super) fn refuse(error: &TurnError) -> Response {
    let mut response: Response = respond(Api::Chat, error);
    if error.kind == ErrorKind::Authentication {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The JSON body of a request, read strictly.
pub(super) async fn read_json<T: DeserializeOwned>(
    request: Request,
    worker: &Worker,
) -> Result<T, TurnError> {
    let body = read_body(request.into_body(), &worker.shared.limits).await?;
    serde_json::from_slice(&body)
        .map_err(|error| TurnError::invalid(format!("the body is not valid: {error}")))
}

/// A JSON answer.
pub(super) fn answer_json(status: StatusCode, body: &Value) -> Response {
    let mut response: Response = error::json(body.to_string().into());
    *response.status_mut() = status;
    response
}

async fn unknown_path(request: Request) -> Response {
    let message = format!("{} {}: see docs/approvals.md", request.method(), request.uri().path());
    refuse(&TurnError::new(ErrorKind::NotFound, message)).into_response()
}
