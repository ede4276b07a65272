//! Paths, and what stands before them: who may call, and how errors are told.

mod api;
mod caller;
mod door;
mod error;
mod intake;
mod models;
mod stored;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use toolgate_model::{ErrorKind, TurnError};

use crate::service::Worker;
use crate::turn;

pub(crate) use api::Api;
pub(crate) use caller::Caller;
pub(crate) use door::{Door, Peer};
pub(crate) use error::{refuse, respond};
pub(crate) use intake::read_body;

/// All paths of the service.
pub(crate) fn routes(worker: Arc<Worker>) -> Router {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/responses", post(responses))
        .route("/v1/responses/{id}", get(stored::show).delete(stored::delete))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::show))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(worker)
}

async fn messages(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    turn::answer(worker, Api::Messages, request).await
}

async fn chat_completions(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    turn::answer(worker, Api::Chat, request).await
}

async fn responses(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    turn::answer(worker, Api::Responses, request).await
}

async fn count_tokens(State(worker): State<Arc<Worker>>, request: Request) -> Response {
    turn::count_tokens(worker, request).await
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn metrics(State(worker): State<Arc<Worker>>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match worker.shared.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "writing the metrics failed");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn unknown_path(request: Request) -> Response {
    let message = format!(
        "{} {}: there is no such path here; the APIs are at /v1/messages, /v1/chat/completions and /v1/responses",
        request.method(),
        request.uri().path()
    );
    refuse(&request, &TurnError::new(ErrorKind::NotFound, message))
}

async fn wrong_method(request: Request) -> Response {
    let message = format!(
        "{} {}: this path does not take that method; turns are asked for with POST",
        request.method(),
        request.uri().path()
    );
    let mut error = TurnError::invalid(message);
    error.status = Some(StatusCode::METHOD_NOT_ALLOWED.as_u16());
    refuse(&request, &error)
}
