//! Connections to one host, reused.
//!
//! A pool belongs to one worker thread and one host. Idle HTTP/1.1 connections are a stack; an HTTP/2 connection is
//! shared by all requests.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::body::{HostBody, Transport};
use super::connect::Dialer;
use super::connection::Connection;
use super::failure::Host;
use super::request::HostRequest;
use super::request_error::RequestError;
use super::response_head::HostHead;
use crate::config::HostDeadlines;
use crate::idle_timer::IdleTimer;
use crate::stats::{InFlight, OpenConnection, UpstreamStats};

/// Idle connections that are kept, so that a burst finds them again.
const MAX_IDLE_CONNECTIONS: usize = 256;

/// How often idle connections are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A connection that was idle at this many checks is closed: after 40 to 50 seconds, before the minute after which
/// common load balancers close a silent connection. Counting ticks saves reading the clock for every exchange.
const MAX_IDLE_TICKS: u8 = 5;

/// Connections to one host.
pub(super) struct Pool {
    dialer: Dialer,
    host: Host,
    deadlines: HostDeadlines,
    stats: Arc<UpstreamStats>,
    idle: Mutex<IdleConnections>,
    shared: Mutex<Option<Http2Sender>>,
    myself: Weak<Self>,
}

type Http2Sender = http2::SendRequest<Full<Bytes>>;

#[derive(Default)]
struct IdleConnections {
    /// The connection used last is on top.
    stack: Vec<IdleConnection>,
    /// True while a task checks them.
    is_checked: bool,
}

struct IdleConnection {
    connection: Connection,
    /// At how many checks it was idle.
    idle_ticks: u8,
}

/// A response whose head was received.
pub(super) struct HostResponse {
    pub(super) head: HostHead,
    pub(super) body: HostBody,
}

/// A new connection.
enum Connected {
    /// HTTP/1.1: one exchange at a time.
    Exclusive(Connection),
    /// HTTP/2.
    Shared(Http2Sender),
}

impl Pool {
    /// A pool without connections.
    pub(super) fn new(
        dialer: Dialer,
        host: Host,
        deadlines: HostDeadlines,
        stats: Arc<UpstreamStats>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            dialer,
            host,
            deadlines,
            stats,
            idle: Mutex::default(),
            shared: Mutex::default(),
            myself: Weak::clone(myself),
        })
    }

    /// Sends a request and reads the head of the response. Dropping the future or the response's body cancels the
    /// exchange.
    ///
    /// A reused connection may have been closed by the host while it was idle. So when one breaks before the first
    /// byte of a response, the request is sent once more, on a new connection.
    pub(super) async fn request(
        self: &Arc<Self>,
        request: &HostRequest<'_>,
    ) -> Result<HostResponse, RequestError> {
        if let Some(connection) = self.take_idle() {
            match self.exchange(connection, request).await {
                Err(error) if error.is_stale_connection() => self.note_stale(&error),
                outcome => return outcome,
            }
        }
        // Boxed, because it is large and seldom needed.
        Box::pin(self.request_shared(request)).await
    }

    /// Sends a request over the shared connection, or else over a new one.
    async fn request_shared(
        self: &Arc<Self>,
        request: &HostRequest<'_>,
    ) -> Result<HostResponse, RequestError> {
        if let Some(sender) = self.shared_sender() {
            match self.exchange_http2(sender, request).await {
                Err(error) if error.is_stale_connection() => self.note_stale(&error),
                outcome => return outcome,
            }
        }
        match self.connect().await? {
            Connected::Exclusive(connection) => self.exchange(connection, request).await,
            Connected::Shared(sender) => self.exchange_http2(sender, request).await,
        }
    }

    /// Takes back a connection whose exchange is over.
    pub(super) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.stack.len() < MAX_IDLE_CONNECTIONS {
            idle.stack.push(IdleConnection { connection, idle_ticks: 0 });
        }
        if !idle.is_checked {
            idle.is_checked = true;
            TokioExecutor::new().execute(close_idle(Weak::clone(&self.myself)));
        }
    }

    /// A connection that can be used now. The one used last is the least likely to be closed.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(IdleConnection { mut connection, idle_ticks: _ }) = idle.stack.pop() {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn shared_sender(&self) -> Option<Http2Sender> {
        self.shared.lock().as_ref().filter(|sender| !sender.is_closed()).cloned()
    }

    fn note_stale(&self, error: &RequestError) {
        tracing::debug!(upstream = %self.host.name, %error, "a reused connection was closed; opening a new one");
        self.stats.add_retry();
        self.forget_closed();
    }

    fn forget_closed(&self) {
        self.shared.lock().take_if(|sender| sender.is_closed());
    }

    async fn exchange(
        self: &Arc<Self>,
        connection: Connection,
        request: &HostRequest<'_>,
    ) -> Result<HostResponse, RequestError> {
        let in_flight = InFlight::new(&self.stats);
        let mut exchange = connection.begin(request);
        let mut timer = IdleTimer::default();
        let head = poll_fn(|cx| exchange.poll_head(&mut timer, &self.deadlines, cx)).await;
        let head = head.map_err(|error| RequestError::from_connection(error, exchange.is_answered()))?;
        let transport = Transport::Http1 { exchange: Some(exchange), pool: Arc::clone(self) };
        Ok(HostResponse { head, body: self.body(transport, timer, in_flight) })
    }

    async fn exchange_http2(
        &self,
        mut sender: Http2Sender,
        request: &HostRequest<'_>,
    ) -> Result<HostResponse, RequestError> {
        let in_flight = InFlight::new(&self.stats);
        let mut message = Request::new(Full::new(request.body.clone()));
        *message.method_mut() = Method::POST;
        *message.uri_mut() = request.to.uri.clone();
        *message.headers_mut() = request.headers();
        let sent = timeout(self.deadlines.first_byte, sender.try_send_request(message)).await;
        let response = sent.map_err(|_| RequestError::FirstByteTimeout)?.map_err(RequestError::from_http2)?;
        let head = HostHead::from_parts(response.status().as_u16(), response.headers());
        let transport = Transport::Http2(response.into_body());
        Ok(HostResponse { head, body: self.body(transport, IdleTimer::default(), in_flight) })
    }

    fn body(&self, transport: Transport, timer: IdleTimer, in_flight: InFlight) -> HostBody {
        HostBody::new(transport, &self.host, self.deadlines.idle, (timer, in_flight))
    }

    /// Opens a connection. The deadline covers everything up to the first request on it.
    async fn connect(&self) -> Result<Connected, RequestError> {
        let connected = timeout(self.deadlines.connect, self.connect_unbounded()).await;
        connected.unwrap_or(Err(RequestError::ConnectTimeout))
    }

    async fn connect_unbounded(&self) -> Result<Connected, RequestError> {
        let stream = self.dialer.dial().await.map_err(RequestError::from_dial)?;
        let open = OpenConnection::new(&self.stats);
        if !stream.connected().is_negotiated_h2() {
            return Ok(Connected::Exclusive(Connection::new(TokioIo::new(stream), open)));
        }
        let ping_interval = self.deadlines.http2_keep_alive;
        let handshake = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(ping_interval)
            .keep_alive_timeout(ping_interval)
            .keep_alive_while_idle(true)
            .handshake(stream);
        let (sender, connection) = handshake.await.map_err(|error| RequestError::Connect(error.into()))?;
        let (pool, name) = (Weak::clone(&self.myself), Arc::clone(&self.host.name));
        TokioExecutor::new().execute(async move {
            if let Err(error) = connection.await {
                // Requests in flight have received the error themselves.
                tracing::debug!(upstream = %name, %error, "an HTTP/2 connection ended");
            }
            drop(open);
            if let Some(pool) = pool.upgrade() {
                pool.forget_closed();
            }
        });
        *self.shared.lock() = Some(sender.clone());
        Ok(Connected::Shared(sender))
    }
}

impl IdleConnection {
    /// Counts a check; false if the connection is to be closed.
    fn stays_open(&mut self) -> bool {
        self.idle_ticks += 1;
        self.idle_ticks < MAX_IDLE_TICKS && self.connection.is_usable()
    }
}

/// Closes idle connections after a while, until none is left. A connection that its host has closed would otherwise
/// keep its socket until the next request.
async fn close_idle(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock();
        idle.stack.retain_mut(IdleConnection::stays_open);
        if idle.stack.is_empty() {
            idle.is_checked = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests;
