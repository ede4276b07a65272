//! HTTP/1.1 as a client, with no task between the connection and whoever reads from it.
//!
//! The task that answers a client writes the request to the host and reads the reply itself. So a chunk of a reply
//! wakes one task, not two, chunks that came together are read together, and nothing is handed over.

mod framing;
mod head;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

use self::framing::{Decoded, Framing, FramingError};
use self::head::HeadError;
use super::answer_head::AnswerHead;
use super::ask::Ask;

/// Bytes of a host, encrypted or not.
pub(super) type Wire = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;

/// Room for what is read at once: small while little comes, so that many waiting streams cost little.
const LEAST_ROOM_BYTES: usize = 2 * 1024;

/// Room once a read has filled all there was.
const MOST_ROOM_BYTES: usize = 64 * 1024;

/// Room for the head of nearly every request.
const USUAL_HEAD_BYTES: usize = 1024;

/// The room of a larger request is given back: connections are many, and most of them wait.
const MAX_KEPT_BYTES: usize = 8 * 1024;

/// A body up to this size goes out in one piece with its head.
const MAX_JOINED_BYTES: usize = 32 * 1024;

/// An open connection, between two exchanges.
pub(super) struct Connection {
    /// Boxed, as the state of an encrypted connection is large and connections are handed around.
    wire: Box<Wire>,
    /// Came and was not looked at yet.
    received: BytesMut,
    room: usize,
    /// Still to go out. Empty between two exchanges, and kept for its room.
    out: BytesMut,
}

/// Why an exchange failed.
#[derive(Debug, Error)]
pub(super) enum ExchangeError {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the host closed the connection")]
    Closed,
    #[error("the host does not speak HTTP as it should")]
    Head(#[from] HeadError),
    #[error("the host does not mark the end of its body as it should")]
    Framing(#[from] FramingError),
}

impl Connection {
    pub(super) fn new(wire: Wire) -> Self {
        let (received, out) = (BytesMut::new(), BytesMut::new());
        Self { wire: Box::new(wire), received, room: LEAST_ROOM_BYTES, out }
    }

    /// False if the host has closed the connection, or said something unasked, while it was idle.
    pub(super) fn is_usable(&mut self) -> bool {
        // Nobody is to be woken: this only asks what has happened so far.
        let mut cx = Context::from_waker(Waker::noop());
        self.received.is_empty() && self.poll_receive(&mut cx).is_pending()
    }

    /// Sends a request and reads the head of the answer. Dropping the future closes the connection.
    pub(super) async fn exchange(mut self, ask: &Ask<'_>) -> Result<(AnswerHead, Reply), ExchangeError> {
        let mut body = self.put_request(ask);
        let answered = poll_fn(|cx| self.poll_answer(&mut body, cx)).await?;
        // A host that answers before it has read everything will not take another request after this one.
        let stays_open = answered.stays_open && self.out.is_empty() && body.is_empty();
        if ask.body.len() > MAX_KEPT_BYTES {
            self.out = BytesMut::new();
        }
        let reply = Reply { connection: Some(self), framing: answered.framing, stays_open };
        Ok((answered.head, reply))
    }

    /// Puts a request on its way; gives what of its body is to be sent after that.
    fn put_request(&mut self, ask: &Ask<'_>) -> Bytes {
        let mut body = ask.body.clone();
        self.out.reserve(USUAL_HEAD_BYTES + body.len().min(MAX_JOINED_BYTES));
        ask.write_head(&mut self.out);
        if body.len() <= MAX_JOINED_BYTES {
            self.out.extend_from_slice(&body);
            body.clear();
        }
        body
    }

    /// Reads while it still writes: a host may refuse a large body before it has read it all.
    fn poll_answer(
        &mut self,
        body: &mut Bytes,
        cx: &mut Context<'_>,
    ) -> Poll<Result<head::Answer, ExchangeError>> {
        // A connection that cannot be written to may still hold an answer that says why.
        let sent = self.poll_send(body, cx);
        loop {
            match ready!(self.poll_receive(cx)) {
                Ok(0) | Err(_) if matches!(sent, Poll::Ready(Err(_))) => {
                    let Poll::Ready(Err(error)) = sent else { return Poll::Pending };
                    return Poll::Ready(Err(error.into()));
                }
                Ok(0) => return Poll::Ready(Err(ExchangeError::Closed)),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            while let Some(answer) = head::read(&mut self.received)? {
                if !answer.head.status.is_informational() {
                    return Poll::Ready(Ok(answer));
                }
            }
        }
    }

    fn poll_send(&mut self, body: &mut Bytes, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let count = ready!(Pin::new(&mut *self.wire).poll_write(cx, &self.out))?;
            self.out.advance(nonzero(count)?);
        }
        while !body.is_empty() {
            let count = ready!(Pin::new(&mut *self.wire).poll_write(cx, body))?;
            body.advance(nonzero(count)?);
        }
        Pin::new(&mut *self.wire).poll_flush(cx)
    }

    /// How many bytes came; 0 when the host has closed the connection.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.received.reserve(self.room);
        let room = self.received.capacity() - self.received.len();
        let count = ready!(poll_read_buf(Pin::new(&mut *self.wire), cx, &mut self.received))?;
        if count == room {
            self.room = (self.room * 2).min(MOST_ROOM_BYTES);
        }
        Poll::Ready(Ok(count))
    }
}

fn nonzero(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

/// The body of an answer, and the connection it comes over. Dropping it before its end closes the connection.
pub(super) struct Reply {
    /// Gone once the body has ended.
    connection: Option<Connection>,
    framing: Framing,
    stays_open: bool,
}

impl Reply {
    /// The next bytes: all that have come. `None` at the end of the body.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ExchangeError>>> {
        loop {
            let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
            match self.framing.decode(&mut connection.received) {
                Ok(Decoded::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(Decoded::End) => return Poll::Ready(None),
                Ok(Decoded::Nothing) => {}
                Err(error) => return Poll::Ready(Some(Err(self.broken(error.into())))),
            }
            match ready!(connection.poll_receive(cx)) {
                Ok(0) if self.framing.ends_with_connection() => {
                    self.connection = None;
                    return Poll::Ready(None);
                }
                Ok(0) => return Poll::Ready(Some(Err(self.broken(ExchangeError::Closed)))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(self.broken(error.into())))),
            }
        }
    }

    /// True once the last byte of the body was given.
    pub(super) fn is_over(&self) -> bool {
        self.connection.is_none() || self.framing.is_over()
    }

    /// The connection, if the body has ended and another exchange may follow.
    pub(super) fn take_connection(&mut self) -> Option<Connection> {
        if !self.framing.is_over() {
            return None;
        }
        self.connection.take().filter(|connection| self.stays_open && connection.received.is_empty())
    }

    fn broken(&mut self, error: ExchangeError) -> ExchangeError {
        self.connection = None;
        error
    }
}
