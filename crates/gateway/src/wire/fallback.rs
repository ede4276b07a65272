//! Everything that is not an ordinary turn over HTTP/1.1, served by hyper.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::response::Response;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio_util::sync::CancellationToken;

use super::activity::{Activity, TrackedBody};
use super::panicked;
use super::prefixed::Prefixed;
use crate::http::{self, Peer};
use crate::service::Worker;

/// A connection served by hyper.
pub(super) struct Fallback {
    pub(super) worker: Arc<Worker>,
    pub(super) routes: axum::Router,
    pub(super) peer: Peer,
}

impl Fallback {
    pub(super) async fn serve(self, stream: Prefixed) {
        let deadlines = self.worker.shared.limits.deadlines;
        let tasks = self.worker.tasks.clone();
        let activity = Arc::new(Activity::new(deadlines));
        let service = {
            let (activity, this) = (Arc::clone(&activity), Arc::new(self));
            let unflushed = stream.unflushed().clone();
            hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
                let (activity, this) = (Arc::clone(&activity), Arc::clone(&this));
                request.extensions_mut().insert(unflushed.clone());
                async move {
                    let running = activity.begin();
                    let response = this.answer(request).await;
                    Ok::<_, Infallible>(response.map(|body| TrackedBody::new(body, running)))
                }
            })
        };
        let mut server = auto::Builder::new(tasks.clone());
        server.http1().timer(TokioTimer::new()).header_read_timeout(deadlines.head);
        server
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(deadlines.idle)
            .keep_alive_timeout(deadlines.head);
        let connection = server.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let stopping: &CancellationToken = tasks.stopping();
        let outcome = tokio::select! {
            biased;
            outcome = connection.as_mut() => outcome,
            () = activity.stalled() => return,
            () = stop_taking_requests(stopping, &activity) => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    outcome = connection => outcome,
                    () = activity.stalled() => return,
                }
            }
        };
        if let Err(error) = outcome {
            // Clients leave when they like; each turn has recorded what that meant for it.
            tracing::debug!(%error, "a connection ended early");
        }
    }

    async fn answer(&self, request: hyper::Request<Incoming>) -> Response {
        let api = http::Api::of(&request);
        let answered = match self.worker.shared.door.admit(&request, self.peer) {
            Ok(caller) => {
                let worker = Arc::clone(&self.worker);
                AssertUnwindSafe(http::answer(worker, self.routes.clone(), caller, request))
                    .catch_unwind()
                    .await
            }
            Err(error) => Ok(http::refuse(&request, &error)),
        };
        answered.unwrap_or_else(|_| http::respond(api, &panicked()))
    }
}

/// Ready when the gateway stops, or the client has sent no request for too long.
async fn stop_taking_requests(stopping: &CancellationToken, activity: &Activity) {
    tokio::select! {
        () = stopping.cancelled() => {}
        () = activity.idle() => {}
    }
}
