//! Routes, and the checks before them: who may call, and how errors are written.

mod api;
mod approvals;
mod caller;
mod console;
mod door;
mod error;
mod hooks;
mod intake;
mod models;
mod query;
mod rules;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use toolgate_model::{ErrorKind, TurnError};
use tower::ServiceExt;

use crate::service::Worker;
use crate::turn::{self, OpenTurn, TurnHead};
use crate::wire::Unflushed;

pub(crate) use api::Api;
pub(crate) use caller::Caller;
pub(crate) use door::{Door, Entrance, Peer};
pub(crate) use error::{refuse, respond};
pub(crate) use intake::{check_media_type, read_body};

/// How long the store may take to show that it is writable.
const MAX_READY_WAIT: Duration = Duration::from_secs(2);

/// Answers a request whose caller was admitted.
pub(crate) async fn answer(
    worker: Arc<Worker>,
    routes: Router,
    caller: Caller,
    request: http::Request<Incoming>,
) -> Response {
    if request.method() == Method::POST
        && let Some(api) = Api::at(request.uri().path())
    {
        let turn = OpenTurn::new(&worker, TurnHead::new(api, caller, request.headers()));
        let unflushed = request.extensions().get::<Unflushed>().cloned().unwrap_or_default();
        let body = read_body(request.into_body(), &worker.shared.limits).await;
        let reply = http::Response::from(turn.answer(body).await);
        return reply.map(|body| axum::body::Body::new(unflushed.follow(body)));
    }
    let mut request: Request = request.map(axum::body::Body::new);
    request.extensions_mut().insert(caller);
    match routes.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// All routes except turns, which [`answer`] handles itself.
pub(crate) fn routes(worker: Arc<Worker>) -> Router {
    Router::new()
        .route("/v1/messages", any(wrong_method))
        .route("/v1/messages/count_tokens", post(count_messages))
        .route("/v1/chat/completions", any(wrong_method))
        .route("/v1/responses", any(wrong_method))
        .route("/v1/responses/input_tokens", post(count_responses))
        .route("/v1/responses/compact", post(compact))
        .route("/v1/responses/{id}", get(stored::show).delete(stored::delete))
        .route("/v1/responses/{id}/input_items", get(stored::input_items))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::show))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .merge(console::routes(&worker))
        .route("/hooks/permission-request", post(hooks::permission_request))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(worker)
}

async fn count_messages(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    turn::count_tokens(worker, Api::Messages, caller, request).await
}

async fn count_responses(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    turn::count_tokens(worker, Api::Responses, caller, request).await
}

async fn compact(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    turn::compact(worker, caller, request).await
}

async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready if the store takes writes: a load balancer should send requests elsewhere if it does not, or if the gateway is
/// stopping.
async fn readyz(State(worker): State<Arc<Worker>>) -> Response {
    if worker.tasks.stopping().is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    let written = tokio::time::timeout(MAX_READY_WAIT, worker.shared.store.check_writable()).await;
    match written {
        Ok(Ok(())) => "ready\n".into_response(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store cannot be written");
            (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be written\n").into_response()
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
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
