//! Connections to one host, used again and again.
//!
//! A pool belongs to one worker thread and one host, so it can be plainer and cheaper than a general client: idle
//! HTTP/1.1 connections are a stack, an HTTP/2 connection is shared by everybody.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use thiserror::Error;
use tower::ServiceExt;

/// Opens connections, encrypted or not.
pub(super) type Connector = HttpsConnector<HttpConnector>;

type Body = Full<Bytes>;

/// Connections kept while nobody uses them, so that a burst finds them again.
const MAX_IDLE_CONNECTIONS: usize = 256;

/// Under the minute after which common load balancers close a silent connection.
const IDLE_CONNECTION: Duration = Duration::from_secs(50);

/// An idle connection may be closed by the host at the very moment it is used; after this many of them in a row a
/// new one is opened.
const MAX_STALE: usize = 3;

/// Connections to one host.
pub(super) struct Pool {
    connector: Connector,
    /// Where the host is: scheme and authority.
    host: Uri,
    /// What HTTP/1.1 calls it.
    name: HeaderValue,
    idle: Mutex<Vec<Idle>>,
    shared: Mutex<Option<http2::SendRequest<Body>>>,
}

/// A connection that carries one exchange at a time; it may still be busy with its last.
struct Idle {
    sender: http1::SendRequest<Body>,
    since: Instant,
}

/// A connection to send over.
enum Sender {
    Exclusive(http1::SendRequest<Body>),
    Shared(http2::SendRequest<Body>),
}

/// Why no answer came.
#[derive(Debug, Error)]
pub(super) enum PoolError {
    /// There is no connection to the host.
    #[error("connecting failed")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The connection broke before the head of the answer came.
    #[error("the connection broke before an answer came")]
    Broken(#[source] hyper::Error),
}

impl Pool {
    /// No connection is opened yet.
    pub(super) fn new(connector: Connector, host: Uri, name: HeaderValue) -> Self {
        Self { connector, host, name, idle: Mutex::default(), shared: Mutex::default() }
    }

    /// Sends a request and gives the head of the answer. Dropping the future or the answer's body ends the exchange.
    pub(super) async fn request(&self, mut request: Request<Body>) -> Result<Response<Incoming>, PoolError> {
        for _ in 0..MAX_STALE {
            let Some(sender) = self.take() else { break };
            match self.send(sender, request).await? {
                Sent::Answered(response) => return Ok(response),
                Sent::Stale(unsent) => request = *unsent,
            }
        }
        let sender = self.connect().await?;
        match self.send(sender, request).await? {
            Sent::Answered(response) => Ok(response),
            Sent::Stale(_) => Err(PoolError::Connect("the host closed a new connection at once".into())),
        }
    }

    /// A connection that can be used now.
    fn take(&self) -> Option<Sender> {
        let mut shared = self.shared.lock();
        if let Some(sender) = shared.as_ref() {
            if !sender.is_closed() {
                return Some(Sender::Shared(sender.clone()));
            }
            *shared = None;
        }
        drop(shared);
        let mut idle = self.idle.lock();
        // The one used last is the one least likely to be closed by now.
        let at = idle.iter().rposition(|idle| idle.sender.is_ready())?;
        let found = idle.swap_remove(at);
        if found.since.elapsed() < IDLE_CONNECTION {
            return Some(Sender::Exclusive(found.sender));
        }
        idle.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < IDLE_CONNECTION);
        None
    }

    /// Takes a connection back at once: it is found again when its exchange is over.
    fn give_back(&self, sender: http1::SendRequest<Body>) {
        let mut idle = self.idle.lock();
        if idle.len() >= MAX_IDLE_CONNECTIONS {
            idle.retain(|idle| !idle.sender.is_closed());
        }
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(Idle { sender, since: Instant::now() });
        }
    }

    async fn send(&self, sender: Sender, mut request: Request<Body>) -> Result<Sent, PoolError> {
        let outcome = match sender {
            Sender::Exclusive(mut sender) => {
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
                request.headers_mut().insert(HOST, self.name.clone());
                let outcome = sender.try_send_request(request).await;
                if outcome.is_ok() {
                    self.give_back(sender);
                }
                outcome
            }
            Sender::Shared(mut sender) => {
                let path = request.uri().path_and_query().cloned();
                request.headers_mut().remove(HOST);
                *request.uri_mut() = self.absolute(path);
                sender.try_send_request(request).await
            }
        };
        match outcome {
            Ok(response) => Ok(Sent::Answered(response)),
            Err(mut error) => match error.take_message() {
                Some(unsent) => Ok(Sent::Stale(Box::new(unsent))),
                None => Err(PoolError::Broken(error.into_error())),
            },
        }
    }

    fn absolute(&self, path: Option<PathAndQuery>) -> Uri {
        let mut parts = self.host.clone().into_parts();
        parts.path_and_query = path.or(parts.path_and_query);
        // Scheme, authority and path are all there, which is all that can be missing.
        Uri::from_parts(parts).unwrap_or_else(|_| self.host.clone())
    }

    async fn connect(&self) -> Result<Sender, PoolError> {
        let stream = self.connector.clone().oneshot(self.host.clone()).await.map_err(PoolError::Connect)?;
        let broken = |error: hyper::Error| PoolError::Connect(error.into());
        if stream.connected().is_negotiated_h2() {
            let builder = http2::Builder::new(TokioExecutor::new()).timer(TokioTimer::new()).to_owned();
            let (sender, connection) = builder.handshake(stream).await.map_err(broken)?;
            drive(connection);
            *self.shared.lock() = Some(sender.clone());
            return Ok(Sender::Shared(sender));
        }
        let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
        drive(connection);
        Ok(Sender::Exclusive(sender))
    }
}

/// What became of a request.
enum Sent {
    Answered(Response<Incoming>),
    /// The connection was closed before any of it was sent.
    Stale(Box<Request<Body>>),
}

/// Lets a connection run until it ends.
fn drive(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) {
    TokioExecutor::new().execute(async move {
        if let Err(error) = connection.await {
            // Whoever used it has been told already.
            tracing::debug!(%error, "a connection to a host ended");
        }
    });
}
