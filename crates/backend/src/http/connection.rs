//! An HTTP/1.1 connection to a host, with no task between it and the turn that uses it.
//!
//! The turn's own task writes the request and reads the response. So a chunk of a reply wakes one task instead of
//! two, and chunks that were received together are read together.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;
use toolgate_h1::{Decoded, Exchange, ExchangeError};

use super::request::HostRequest;
use super::response_head::HostHead;
use crate::config::HostDeadlines;
use crate::idle_timer::IdleTimer;
use crate::stats::OpenConnection;

/// The socket of a host, encrypted or not.
pub(super) type Wire = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;

/// The receive buffer while little is received, so that many waiting streams need little memory.
const MIN_ROOM_BYTES: usize = 2 * 1024;

/// The largest receive buffer. It doubles up to this size when a read fills it.
const MAX_ROOM_BYTES: usize = 64 * 1024;

/// Enough for the head of nearly every request.
const USUAL_HEAD_BYTES: usize = 1024;

/// A body up to this size is sent in one write with its head.
const MAX_JOINED_BYTES: usize = 32 * 1024;

/// An open connection between two exchanges.
pub(super) struct Connection {
    /// Boxed, because the state of an encrypted connection is large and connections are moved often.
    wire: Box<Wire>,
    /// Received but not yet read.
    received: BytesMut,
    /// How much is received at once.
    room: usize,
    /// Counts the connection as open.
    _open: OpenConnection,
}

/// A request and its response on a connection. Dropping it closes the connection.
pub(super) struct HostExchange {
    connection: Connection,
    exchange: Exchange,
    sending: Sending,
    /// True once any byte of a response was received.
    is_answered: bool,
}

/// How far the request has been sent.
enum Sending {
    Unsent,
    Sent,
    /// The host may have answered before it closed its side, so the response is still read.
    Failed(io::Error),
}

/// Why an exchange failed.
#[derive(Debug, Error)]
pub(super) enum ConnectionError {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the host did not accept the request in time")]
    WriteTimeout,
    #[error("the host did not answer in time")]
    FirstByteTimeout,
}

impl Connection {
    pub(super) fn new(wire: Wire, open: OpenConnection) -> Self {
        Self { wire: Box::new(wire), received: BytesMut::new(), room: MIN_ROOM_BYTES, _open: open }
    }

    /// False if the host has closed the idle connection, or sent something that was not requested.
    pub(super) fn is_usable(&mut self) -> bool {
        // Only the current state matters, so nothing is to be woken.
        let mut cx = Context::from_waker(Waker::noop());
        self.received.is_empty() && self.poll_receive(&mut cx).is_pending()
    }

    /// Begins an exchange; nothing is sent yet.
    pub(super) fn begin(self, request: &HostRequest<'_>) -> HostExchange {
        let mut body = request.body.clone();
        let joined = if body.len() <= MAX_JOINED_BYTES { std::mem::take(&mut body) } else { Bytes::new() };
        let mut head = BytesMut::with_capacity(USUAL_HEAD_BYTES + joined.len());
        request.write_head(&mut head);
        head.extend_from_slice(&joined);
        let exchange = Exchange::new(head, body);
        HostExchange { connection: self, exchange, sending: Sending::Unsent, is_answered: false }
    }

    /// How many bytes were received; 0 when the host has closed the connection.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.received.reserve(self.room);
        let room = self.received.capacity() - self.received.len();
        let count = ready!(poll_read_buf(Pin::new(&mut *self.wire), cx, &mut self.received))?;
        if count == room {
            self.room = (self.room * 2).min(MAX_ROOM_BYTES);
        }
        Poll::Ready(Ok(count))
    }
}

impl HostExchange {
    /// Sends the request and reads the head of the response, both at the same time: a host may refuse a large
    /// request before it has read all of it.
    pub(super) fn poll_head(
        &mut self,
        timer: &mut IdleTimer,
        deadlines: &HostDeadlines,
        cx: &mut Context<'_>,
    ) -> Poll<Result<HostHead, ConnectionError>> {
        if self.poll_send(cx) {
            timer.restart();
        }
        while let Poll::Ready(received) = self.connection.poll_receive(cx) {
            match received {
                Ok(0) => return Poll::Ready(Err(self.closed())),
                Ok(_) => self.is_answered = true,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            let head = self.exchange.read_head(&mut self.connection.received, HostHead::read)?;
            if let Some(head) = head {
                timer.restart();
                return Poll::Ready(Ok(head));
            }
        }
        let (limit, error) = match self.sending {
            Sending::Unsent => (deadlines.write, ConnectionError::WriteTimeout),
            Sending::Sent | Sending::Failed(_) => (deadlines.first_byte, ConnectionError::FirstByteTimeout),
        };
        ready!(timer.poll(limit, cx));
        Poll::Ready(Err(error))
    }

    /// True once any byte of a response was received.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// All of the body that has been received; `None` at its end. After an error there is nothing more to read.
    pub(super) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ConnectionError>>> {
        loop {
            match self.exchange.read_body(&mut self.connection.received) {
                Ok(Decoded::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(Decoded::End) => return Poll::Ready(None),
                Ok(Decoded::Incomplete) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
            // The host may want the rest of the request before it sends the rest of its response.
            self.poll_send(cx);
            match ready!(self.connection.poll_receive(cx)) {
                Ok(0) => {
                    if let Err(error) = self.exchange.end_of_input() {
                        return Poll::Ready(Some(Err(error.into())));
                    }
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }

    /// True once the last byte of the body was read.
    pub(super) fn is_over(&self) -> bool {
        self.exchange.is_over()
    }

    /// The connection, if another exchange may follow this one.
    pub(super) fn into_connection(self) -> Option<Connection> {
        let is_reusable =
            matches!(self.sending, Sending::Sent) && self.exchange.is_reusable(&self.connection.received);
        is_reusable.then_some(self.connection)
    }

    /// Sends as much as the host accepts now; true if it accepted anything. An error is only noted.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_progress = false;
        while matches!(self.sending, Sending::Unsent) {
            let wire = Pin::new(&mut *self.connection.wire);
            let unsent = self.exchange.unsent();
            let outcome = if unsent.is_empty() {
                wire.poll_flush(cx).map_ok(|()| Sending::Sent)
            } else {
                wire.poll_write(cx, unsent).map_ok(|count| {
                    self.exchange.sent(count);
                    if count == 0 {
                        Sending::Failed(io::ErrorKind::WriteZero.into())
                    } else {
                        Sending::Unsent
                    }
                })
            };
            let Poll::Ready(outcome) = outcome else { break };
            self.sending = outcome.unwrap_or_else(Sending::Failed);
            has_progress = true;
        }
        has_progress
    }

    /// The host closed the connection before its response. A write error says more about the reason.
    fn closed(&mut self) -> ConnectionError {
        match std::mem::replace(&mut self.sending, Sending::Sent) {
            Sending::Failed(error) => error.into(),
            Sending::Unsent | Sending::Sent => ExchangeError::Closed.into(),
        }
    }
}

#[cfg(test)]
mod tests;
