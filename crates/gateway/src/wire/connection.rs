//! A client's connection: bytes that were received and not used yet, bytes to be sent, and how long each may take.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;
use tokio_util::sync::WaitForCancellationFuture;
use toolgate_backend::IdleTimer;
use toolgate_h1::write;
use toolgate_state::UnixMillis;

use super::head::{self, AfterReply};
use super::pace::Pace;
use super::prefixed::Prefixed;
use crate::config::ClientDeadlines;
use crate::turn::{TurnBody, TurnReply};

/// Room for a request of the usual size in one read. Small, so that many idle clients cost little.
const USUAL_ROOM_BYTES: usize = 4 * 1024;

/// Room while a large body is received. Buffers that have grown beyond it are not kept.
const MAX_ROOM_BYTES: usize = 64 * 1024;

/// Room while nothing is expected.
const MIN_ROOM_BYTES: usize = 256;

/// How much a client may send ahead while it waits for a reply.
const MAX_AHEAD_BYTES: usize = 64 * 1024;

/// Output is written once it has this size. Bodies up to this size are written together with their head.
const MAX_WRITE_BYTES: usize = 32 * 1024;

/// How long a refused client may take to read the refusal and close.
const LINGER: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    stream: TcpStream,
    received: BytesMut,
    out: BytesMut,
    timer: IdleTimer,
    deadlines: ClientDeadlines,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, deadlines: ClientDeadlines) -> Self {
        let (received, out) = (BytesMut::new(), BytesMut::new());
        Self { stream, received, out, timer: IdleTimer::default(), deadlines }
    }

    /// Bytes that were received and not used yet.
    pub(super) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Removes the head of a request.
    pub(super) fn consume_head(&mut self, length: usize) {
        self.received.advance(length);
    }

    /// Waits for the first byte of a request. Fails if the client closes the connection or stays idle, or the gateway
    /// stops.
    pub(super) async fn wait(
        &mut self,
        mut stopping: Pin<&mut WaitForCancellationFuture<'_>>,
    ) -> io::Result<()> {
        if !self.received.is_empty() {
            return Ok(());
        }
        self.timer.restart();
        poll_fn(|cx| {
            if let Poll::Ready(received) = self.poll_receive(USUAL_ROOM_BYTES, cx) {
                return Poll::Ready(received);
            }
            if self.timer.poll(self.deadlines.idle, cx).is_ready() {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            ready!(stopping.as_mut().poll(cx));
            Poll::Ready(Err(ErrorKind::ConnectionAborted.into()))
        })
        .await
    }

    /// The time for a head begins.
    pub(super) fn begin_head(&mut self) {
        self.timer.restart();
    }

    /// Receives more of a head. Fails if the whole head takes too long.
    pub(super) async fn receive_head(&mut self) -> io::Result<()> {
        poll_fn(|cx| {
            if let Poll::Ready(received) = self.poll_receive(USUAL_ROOM_BYTES, cx) {
                return Poll::Ready(received);
            }
            self.timer.poll(self.deadlines.head, cx).map(|()| Err(ErrorKind::TimedOut.into()))
        })
        .await
    }

    /// The next bytes as a body of this length. Fails with `TimedOut` if they come too slowly.
    pub(super) async fn body(&mut self, length: usize) -> io::Result<Bytes> {
        let mut pace = Pace::new(&self.deadlines, self.received.len());
        self.timer.restart();
        while self.received.len() < length {
            let missing = length - self.received.len();
            let room = missing.clamp(USUAL_ROOM_BYTES, MAX_ROOM_BYTES);
            poll_fn(|cx| {
                if let Poll::Ready(received) = self.poll_receive(room, cx) {
                    return Poll::Ready(received);
                }
                while self.timer.poll(pace.window(), cx).is_ready() {
                    if !pace.next_window(self.received.len()) {
                        return Poll::Ready(Err(ErrorKind::TimedOut.into()));
                    }
                    self.timer.restart();
                }
                Poll::Pending
            })
            .await?;
        }
        let body = self.received.split_to(length).freeze();
        if length > MAX_ROOM_BYTES {
            // Bytes after the body share its memory and would keep all of it allocated.
            self.received = BytesMut::from(&*self.received);
        }
        Ok(body)
    }

    /// Waits for a reply while watching the client. If the client closes the connection, the caller drops the reply's
    /// future, which cancels the turn (T20).
    pub(super) async fn while_connected<T>(
        &mut self,
        mut reply: Pin<&mut impl Future<Output = T>>,
    ) -> io::Result<T> {
        poll_fn(|cx| match reply.as_mut().poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Ok(reply)),
            Poll::Pending => self.poll_client_closed(cx).map(Err),
        })
        .await
    }

    /// Sends a reply to its end. Fails if the client stops reading.
    pub(super) async fn send(
        &mut self,
        mut reply: TurnReply,
        date: UnixMillis,
        after: AfterReply,
    ) -> io::Result<()> {
        head::write_head(&reply, date, after, &mut self.out);
        self.timer.restart();
        match &mut reply.body {
            TurnBody::Whole(whole) => {
                let mut bytes = std::mem::take(&mut whole.bytes);
                if bytes.len() <= MAX_WRITE_BYTES {
                    self.out.extend_from_slice(&bytes);
                    bytes.clear();
                }
                poll_fn(|cx| {
                    ready!(self.poll_flush(cx))?;
                    self.poll_write(&mut bytes, cx)
                })
                .await?;
            }
            TurnBody::Stream(stream) => {
                let mut progress = Progress::BufferFull;
                poll_fn(|cx| self.poll_stream(|cx| stream.poll_bytes(cx), &mut progress, cx)).await?;
            }
        }
        reply.body.take_receipt().delivered();
        // The record is published when the body is dropped: after the last byte, so that no client waits for it.
        drop(reply);
        if self.out.capacity() > MAX_ROOM_BYTES {
            self.out = BytesMut::new();
        }
        Ok(())
    }

    /// Lets a client read a refusal before the connection closes. Closing with unread input would reset the connection,
    /// and the client might never see the refusal.
    pub(super) async fn linger(mut self) {
        self.timer.restart();
        let closed = poll_fn(|cx| {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            loop {
                self.received.clear();
                if self.timer.poll(LINGER, cx).is_ready() {
                    return Poll::Ready(io::Result::Ok(()));
                }
                ready!(self.poll_receive(MIN_ROOM_BYTES, cx))?;
            }
        });
        // Either way the connection is dropped now.
        closed.await.ok();
    }

    /// The connection for hyper, which reads the received bytes again.
    pub(super) fn into_prefixed(self) -> Prefixed {
        Prefixed::new(self.received, self.stream, self.deadlines.stalled)
    }

    fn poll_stream(
        &mut self,
        mut next: impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>>,
        progress: &mut Progress,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if *progress != Progress::Ended {
                *progress = self.fill(&mut next, cx);
            }
            ready!(self.poll_flush(cx))?;
            match progress {
                Progress::Ended => return Poll::Ready(Ok(())),
                Progress::Waiting => return self.poll_client_closed(cx).map(Err),
                Progress::BufferFull => {}
            }
        }
    }

    /// Takes what has arrived of a reply; bytes that arrive together are sent together.
    fn fill(
        &mut self,
        mut next: impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>>,
        cx: &mut Context<'_>,
    ) -> Progress {
        while self.out.len() < MAX_WRITE_BYTES {
            match next(cx) {
                Poll::Ready(Some(bytes)) => write::chunk(&mut self.out, &bytes),
                Poll::Ready(None) => {
                    write::last_chunk(&mut self.out);
                    return Progress::Ended;
                }
                Poll::Pending => return Progress::Waiting,
            }
        }
        Progress::BufferFull
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut out = std::mem::take(&mut self.out);
        let flushed = self.poll_write(&mut out, cx);
        self.out = out;
        flushed
    }

    /// Writes all bytes. Fails if the client takes none of them for too long.
    fn poll_write(&mut self, bytes: &mut impl Buf, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while bytes.has_remaining() {
            let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, bytes.chunk()) else {
                ready!(self.timer.poll(self.deadlines.stalled, cx));
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            };
            self.timer.restart();
            match written? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                count => bytes.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the client has closed the connection. Bytes that it sends ahead are kept.
    fn poll_client_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.received.len() < MAX_AHEAD_BYTES {
            if let Err(error) = ready!(self.poll_receive(MIN_ROOM_BYTES, cx)) {
                return Poll::Ready(error);
            }
        }
        Poll::Pending
    }

    /// Receives what has arrived; fails when nothing can arrive any more.
    fn poll_receive(&mut self, room: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.received.reserve(room);
        match ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.received))? {
            0 => Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// How far a streamed reply has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// More may have arrived, but the buffer must be written first.
    BufferFull,
    /// Nothing more has arrived yet.
    Waiting,
    /// The last chunk is in the buffer.
    Ended,
}

#[cfg(test)]
mod tests;
