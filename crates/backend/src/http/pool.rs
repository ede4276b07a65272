//! Connections to one host, used again and again.
//!
//! A pool belongs to one worker thread and one host, so it can be plainer and cheaper than a general client: idle
//! HTTP/1.1 connections are a stack, an HTTP/2 connection is shared by everybody.

use std::error::Error;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use thiserror::Error;
use tower::ServiceExt;

use super::answer_head::AnswerHead;
use super::ask::Ask;
use super::h1::{Connection, ExchangeError, Reply};

/// Opens connections, encrypted or not.
pub(super) type Connector = HttpsConnector<HttpConnector>;

/// Connections kept while nobody uses them, so that a burst finds them again.
const MAX_IDLE_CONNECTIONS: usize = 256;

/// How often idle connections are looked through for those that are closed or too old.
const TIDY_EVERY: Duration = Duration::from_secs(10);

/// A connection seen idle so often is too old: it is closed after 40 to 50 seconds, under the minute after which common
/// load balancers close a silent one. Counted, since to read the clock for every exchange costs more.
const MAX_LOOKS: u8 = 5;

/// Connections to one host.
pub(super) struct Pool {
    connector: Connector,
    /// Where the host is: scheme and authority.
    host: Uri,
    idle: Mutex<IdleConnections>,
    shared: Mutex<Option<http2::SendRequest<Full<Bytes>>>>,
    myself: Weak<Self>,
}

#[derive(Default)]
struct IdleConnections {
    /// The one used last is on top.
    stack: Vec<IdleConnection>,
    /// True while a task looks after them.
    is_tended: bool,
}

struct IdleConnection {
    connection: Connection,
    /// How often it was seen like this.
    looks: u8,
}

/// An answer whose body is still to come.
pub(super) struct Answered {
    pub(super) head: AnswerHead,
    pub(super) body: Arriving,
}

/// The body of an answer, over either kind of connection.
pub(super) enum Arriving {
    Exclusive { reply: Reply, pool: Arc<Pool> },
    Shared(Incoming),
}

/// Why no answer came.
#[derive(Debug, Error)]
pub(super) enum PoolError {
    /// There is no connection to the host.
    #[error("connecting failed")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    /// The connection broke before the head of the answer came.
    #[error("the connection broke before an answer came")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

impl Pool {
    /// No connection is opened yet.
    pub(super) fn new(connector: Connector, host: Uri) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            connector,
            host,
            idle: Mutex::default(),
            shared: Mutex::default(),
            myself: Weak::clone(myself),
        })
    }

    /// Sends a request and gives the head of the answer. Dropping the future or the answer's body ends the exchange.
    pub(super) async fn request(self: &Arc<Self>, ask: &Ask<'_>) -> Result<Answered, PoolError> {
        if let Some(connection) = self.take() {
            return self.send(connection, ask).await;
        }
        // In a box of its own, as it is large and seldom needed: what a turn carries along is moved with it.
        Box::pin(self.request_anew(ask)).await
    }

    /// Sends a request over a connection that is new or shared.
    async fn request_anew(self: &Arc<Self>, ask: &Ask<'_>) -> Result<Answered, PoolError> {
        if let Some(sender) = self.shared() {
            match self.send_shared(sender, ask).await? {
                Sent::Answered(response) => return Ok(response),
                Sent::Stale => *self.shared.lock() = None,
            }
        }
        match self.connect().await? {
            Connected::Exclusive(connection) => self.send(connection, ask).await,
            Connected::Shared(sender) => match self.send_shared(sender, ask).await? {
                Sent::Answered(response) => Ok(response),
                Sent::Stale => Err(PoolError::Connect("the host closed a new connection at once".into())),
            },
        }
    }

    /// Takes a connection back whose exchange is over.
    pub(super) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.stack.len() < MAX_IDLE_CONNECTIONS {
            idle.stack.push(IdleConnection { connection, looks: 0 });
        }
        if !idle.is_tended {
            idle.is_tended = true;
            TokioExecutor::new().execute(tend(Weak::clone(&self.myself)));
        }
    }

    /// A connection that can be used now. The one used last is the one least likely to be closed.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(IdleConnection { mut connection, looks: _ }) = idle.stack.pop() {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn shared(&self) -> Option<http2::SendRequest<Full<Bytes>>> {
        self.shared.lock().as_ref().filter(|sender| !sender.is_closed()).cloned()
    }

    async fn send(self: &Arc<Self>, connection: Connection, ask: &Ask<'_>) -> Result<Answered, PoolError> {
        let broken = |error: ExchangeError| PoolError::Broken(error.into());
        let (head, reply) = connection.exchange(ask).await.map_err(broken)?;
        Ok(Answered { head, body: Arriving::Exclusive { reply, pool: Arc::clone(self) } })
    }

    async fn send_shared(
        &self,
        mut sender: http2::SendRequest<Full<Bytes>>,
        ask: &Ask<'_>,
    ) -> Result<Sent, PoolError> {
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = ask.to.uri.clone();
        *request.headers_mut() = ask.headers();
        match sender.try_send_request(request).await {
            Ok(response) => {
                let head = AnswerHead::of(response.status(), response.headers());
                Ok(Sent::Answered(Answered { head, body: Arriving::Shared(response.into_body()) }))
            }
            Err(mut error) => match error.take_message() {
                Some(_unsent) => Ok(Sent::Stale),
                None => Err(PoolError::Broken(error.into_error().into())),
            },
        }
    }

    async fn connect(&self) -> Result<Connected, PoolError> {
        let stream = self.connector.clone().oneshot(self.host.clone()).await.map_err(PoolError::Connect)?;
        if !stream.connected().is_negotiated_h2() {
            return Ok(Connected::Exclusive(Connection::new(TokioIo::new(stream))));
        }
        let builder = http2::Builder::new(TokioExecutor::new()).timer(TokioTimer::new()).to_owned();
        let handshake = builder.handshake(stream).await;
        let (sender, connection) = handshake.map_err(|error| PoolError::Connect(error.into()))?;
        TokioExecutor::new().execute(async move {
            if let Err(error) = connection.await {
                // Whoever used it has been told already.
                tracing::debug!(%error, "a connection to a host ended");
            }
        });
        *self.shared.lock() = Some(sender.clone());
        Ok(Connected::Shared(sender))
    }
}

impl IdleConnection {
    /// Looks at it; false if it is to be closed.
    fn passes(&mut self) -> bool {
        self.looks += 1;
        self.looks < MAX_LOOKS && self.connection.is_usable()
    }
}

/// A new connection.
enum Connected {
    /// Carries one exchange at a time.
    Exclusive(Connection),
    Shared(http2::SendRequest<Full<Bytes>>),
}

/// What became of a request.
enum Sent {
    Answered(Answered),
    /// The connection was closed before any of it was sent.
    Stale,
}

/// Closes what nobody used for a while, until nothing is left: an idle connection that its host has closed would
/// otherwise keep its socket until the next request.
async fn tend(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock();
        idle.stack.retain_mut(IdleConnection::passes);
        if idle.stack.is_empty() {
            idle.is_tended = false;
            return;
        }
    }
}
