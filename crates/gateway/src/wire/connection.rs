//! A client's connection: what came and was not used yet, and what is still to go out.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::WaitForCancellationFuture;

use super::{Rewound, Sending, head};
use crate::turn::{TurnBody, TurnReply};

/// Room for a request of the usual size, in one read: small, so that many idle clients cost little.
const USUAL_ROOM_BYTES: usize = 4 * 1024;

/// Room while a large body comes. Buffers that have grown beyond it are not kept.
const MOST_ROOM_BYTES: usize = 64 * 1024;

/// Room while nothing is expected.
const LEAST_ROOM_BYTES: usize = 256;

/// How much a client may send ahead while it waits for a reply.
const MAX_AHEAD_BYTES: usize = 64 * 1024;

/// What is to go out is written as soon as it is this much, and whole bodies up to this size go out with their head.
const MAX_JOINED_BYTES: usize = 32 * 1024;

/// How long a client may say nothing between two requests, or in the middle of one; twice as long at most.
const MAX_SILENCE: Duration = Duration::from_mins(2);

pub(super) struct Connection {
    stream: TcpStream,
    /// Came and was not looked at yet.
    pub(super) received: BytesMut,
    out: BytesMut,
    /// Whether it has been quiet since the alarm rang, as far as something is awaited from the client.
    is_quiet: bool,
    /// Rings now and then, which costs less than to set it for every request: the second time in a quiet wait, that
    /// was too long.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        let (received, out) = (BytesMut::new(), BytesMut::new());
        Self { stream, received, out, is_quiet: false, alarm: None }
    }

    /// Returns when something has come. Fails when the connection is over: the client closed it or says nothing, or
    /// the gateway stops.
    pub(super) async fn wait(
        &mut self,
        mut stopping: Pin<&mut WaitForCancellationFuture<'_>>,
    ) -> io::Result<()> {
        if !self.received.is_empty() {
            return Ok(());
        }
        self.is_quiet = false;
        poll_fn(|cx| {
            if let Poll::Ready(came) = self.poll_awaited(USUAL_ROOM_BYTES, cx) {
                return Poll::Ready(came);
            }
            ready!(stopping.as_mut().poll(cx));
            Poll::Ready(Err(ErrorKind::ConnectionAborted.into()))
        })
        .await
    }

    /// The next bytes as a body of this length.
    pub(super) async fn body(&mut self, length: usize) -> io::Result<Bytes> {
        while self.received.len() < length {
            let room = (length - self.received.len()).clamp(USUAL_ROOM_BYTES, MOST_ROOM_BYTES);
            self.is_quiet = false;
            poll_fn(|cx| self.poll_awaited(room, cx)).await?;
        }
        let body = self.received.split_to(length).freeze();
        if length > MOST_ROOM_BYTES {
            // What came after it lies in the same memory and would hold all of it.
            self.received = BytesMut::from(&*self.received);
        }
        Ok(body)
    }

    /// Waits for a reply, and for the client to leave, which drops whatever works on the reply (T20).
    pub(super) async fn meanwhile<T>(
        &mut self,
        mut answer: Pin<&mut impl Future<Output = T>>,
    ) -> io::Result<T> {
        poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answered) => Poll::Ready(Ok(answered)),
            Poll::Pending => self.poll_gone(cx).map(Err),
        })
        .await
    }

    /// Sends a reply to its end.
    pub(super) async fn send(&mut self, mut reply: TurnReply, sending: Sending) -> io::Result<()> {
        head::write(&reply, sending, &mut self.out);
        match &mut reply.body {
            TurnBody::Whole(whole) => {
                let mut bytes = std::mem::take(&mut whole.bytes);
                if bytes.len() <= MAX_JOINED_BYTES {
                    self.out.extend_from_slice(&bytes);
                    bytes.clear();
                }
                poll_fn(|cx| {
                    ready!(self.poll_flush(cx))?;
                    poll_write_all(&mut self.stream, &mut bytes, cx)
                })
                .await?;
            }
            TurnBody::Stream(stream) => {
                let mut progress = Progress::Full;
                poll_fn(|cx| self.poll_stream(|cx| stream.poll_bytes(cx), &mut progress, cx)).await?;
            }
        }
        // Only now: what is told of the turn when its body is dropped keeps nobody waiting.
        drop(reply);
        if self.out.capacity() > MOST_ROOM_BYTES {
            self.out = BytesMut::new();
        }
        Ok(())
    }

    /// The connection for somebody else, who gets to see `first` and whatever came after it.
    pub(super) fn rewound(self, first: &[u8]) -> Rewound {
        let mut again = BytesMut::from(first);
        again.unsplit(self.received);
        Rewound::new(again, self.stream)
    }

    fn poll_stream(
        &mut self,
        mut reply: impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>>,
        progress: &mut Progress,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if *progress != Progress::Over {
                *progress = self.poll_chunks(&mut reply, cx);
            }
            ready!(self.poll_flush(cx))?;
            match progress {
                Progress::Over => return Poll::Ready(Ok(())),
                Progress::Waiting => return self.poll_gone(cx).map(Err),
                Progress::Full => {}
            }
        }
    }

    /// Takes what is there of a reply; what comes together goes out together.
    fn poll_chunks(
        &mut self,
        mut reply: impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>>,
        cx: &mut Context<'_>,
    ) -> Progress {
        while self.out.len() < MAX_JOINED_BYTES {
            match reply(cx) {
                Poll::Ready(Some(bytes)) => head::write_chunk(&bytes, &mut self.out),
                Poll::Ready(None) => {
                    head::write_last_chunk(&mut self.out);
                    return Progress::Over;
                }
                Poll::Pending => return Progress::Waiting,
            }
        }
        Progress::Full
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_write_all(&mut self.stream, &mut self.out, cx)
    }

    /// Ready when the client is gone. What it sends meanwhile is kept for later.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.received.len() < MAX_AHEAD_BYTES {
            if let Err(error) = ready!(self.poll_receive(LEAST_ROOM_BYTES, cx)) {
                return Poll::Ready(error);
            }
        }
        Poll::Pending
    }

    /// Reads what has come and fails when nothing came for too long.
    fn poll_awaited(&mut self, room: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(came) = self.poll_receive(room, cx) {
            return Poll::Ready(came);
        }
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(MAX_SILENCE)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            if self.is_quiet {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            self.is_quiet = true;
            alarm.as_mut().reset(Instant::now() + MAX_SILENCE);
        }
    }

    /// Reads what has come and fails when nothing can come any more.
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
    /// More may be there, but this much must go out first.
    Full,
    /// Nothing more is there yet.
    Waiting,
    /// Its end is on the way out.
    Over,
}

fn poll_write_all(
    stream: &mut TcpStream,
    bytes: &mut impl Buf,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while bytes.has_remaining() {
        let count = ready!(Pin::new(&mut *stream).poll_write(cx, bytes.chunk()))?;
        if count == 0 {
            return Poll::Ready(Err(ErrorKind::WriteZero.into()));
        }
        bytes.advance(count);
    }
    Poll::Ready(Ok(()))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A client, and the connection it is served on.
    async fn connected() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, Connection::new(listener.accept().await.unwrap().0))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_given_up_between_requests_and_within_one() {
        let (_client, mut connection) = connected().await;
        let running = CancellationToken::new();
        let began = Instant::now();
        let waited = connection.wait(std::pin::pin!(running.cancelled())).await;
        assert_eq!(waited.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        assert!((MAX_SILENCE..=MAX_SILENCE * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
        let within = connection.body(1).await;
        assert_eq!(within.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_wait_for_its_reply_for_as_long_as_it_takes() {
        let (client, mut connection) = connected().await;
        let reply = std::pin::pin!(tokio::time::sleep(MAX_SILENCE * 100));
        assert!(connection.meanwhile(reply).await.is_ok());
        drop(client);
        let reply = std::pin::pin!(std::future::pending::<()>());
        let gone = connection.meanwhile(reply).await;
        assert_eq!(gone.map_err(|error| error.kind()), Err(ErrorKind::UnexpectedEof));
    }

    #[tokio::test]
    async fn a_client_may_send_ahead_only_so_much() {
        let (client, mut connection) = connected().await;
        client.writable().await.unwrap();
        let (mut sent, mut refused_in_a_row) = (0, 0);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // Until the sockets hold no more, for nobody reads them.
        while refused_in_a_row < 1000 {
            assert!(connection.poll_gone(&mut cx).is_pending());
            refused_in_a_row += 1;
            match client.try_write(&[b'.'; 16 * 1024]) {
                Ok(count) => (sent, refused_in_a_row) = (sent + count, 0),
                Err(_) => tokio::task::yield_now().await,
            }
            assert!(sent < 1024 * MAX_AHEAD_BYTES, "{} bytes are held", connection.received.len());
        }
        assert!(connection.received.len() < 2 * MAX_AHEAD_BYTES, "{}", connection.received.len());
    }

    #[tokio::test]
    async fn an_end_that_has_to_wait_is_written_once() {
        let (mut client, mut connection) = connected().await;
        connection.stream.writable().await.unwrap();
        while connection.stream.try_write(&[b'.'; 4096]).is_ok() {}
        let mut left = vec![None, Some(Bytes::from_static(b"last"))];
        let mut progress = Progress::Full;
        let sending = poll_fn(|cx| {
            connection.poll_stream(
                |_| Poll::Ready(left.pop().expect("nothing after the end")),
                &mut progress,
                cx,
            )
        });
        let reading = async {
            let mut text = Vec::new();
            while !text.ends_with(b"0\r\n\r\n") {
                client.read_buf(&mut text).await.unwrap();
            }
            text
        };
        let (sent, text) = tokio::join!(sending, reading);
        sent.unwrap();
        assert!(text.ends_with(b".4\r\nlast\r\n0\r\n\r\n"));
    }
}
