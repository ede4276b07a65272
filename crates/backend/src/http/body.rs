//! A reply's bytes as they come, each wait bounded.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};
use toolgate_model::TurnError;

use super::failure::Host;

/// Chunks that wait together go on together, up to about this many bytes.
const MAX_JOINED_BYTES: usize = 16 * 1024;

/// Room for a handful of a model's frames.
const USUAL_JOINED_BYTES: usize = 2 * 1024;

/// The body of a host's answer. Dropping it ends the request at the host (T20).
pub(super) struct HostBody {
    incoming: Incoming,
    host: Host,
    idle: Duration,
    last_bytes: Instant,
    /// Rings when the host may have been silent for too long. It is moved only when it rings, not with every chunk.
    alarm: Pin<Box<Sleep>>,
    gathered: Gathered,
    turn: Turn,
    /// How the body ended, while bytes that came before are still to be given.
    end: End,
}

/// How the body ended.
enum End {
    NotYet,
    Clean,
    Broken(TurnError),
}

/// Bytes that came and were not given yet.
enum Gathered {
    Nothing,
    /// One chunk, as it came.
    One(Bytes),
    Several(BytesMut),
}

/// Whose turn it is to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ours,
    /// The connection had its chance to hand over the next chunk, if it has one.
    Given,
}

impl HostBody {
    pub(super) fn new(incoming: Incoming, host: &Host, idle: Duration) -> Self {
        let alarm = Box::pin(tokio::time::sleep(idle));
        Self {
            incoming,
            host: host.clone(),
            idle,
            last_bytes: Instant::now(),
            alarm,
            gathered: Gathered::Nothing,
            turn: Turn::Ours,
            end: End::NotYet,
        }
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Waits less from now on.
    pub(super) fn set_idle(&mut self, idle: Duration) {
        self.idle = idle;
        self.alarm.as_mut().reset(Instant::now() + idle);
    }

    /// The next bytes; `None` at the end of the body.
    ///
    /// The connection is a task of its own that hands over one chunk at a time, even where it has read many at once.
    /// So after each chunk it gets a turn to hand over the next, and only when it has none the bytes go on: several
    /// chunks then cost one write to the client instead of one each. A lone chunk waits for one turn, which is
    /// microseconds.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        loop {
            match &self.end {
                End::NotYet => {}
                End::Clean => return Poll::Ready(self.gathered.take().map(Ok)),
                End::Broken(error) => {
                    return Poll::Ready(Some(self.gathered.take().ok_or_else(|| error.clone())));
                }
            }
            match self.poll_chunk(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.turn = Turn::Ours;
                    self.gathered.add(bytes);
                    if self.incoming.is_end_stream() {
                        self.end = End::Clean;
                    } else if self.gathered.len() >= MAX_JOINED_BYTES {
                        return Poll::Ready(self.gathered.take().map(Ok));
                    }
                }
                Poll::Ready(Some(Err(error))) => self.end = End::Broken(error),
                Poll::Ready(None) => self.end = End::Clean,
                Poll::Pending if matches!(self.gathered, Gathered::Nothing) => return Poll::Pending,
                Poll::Pending if self.turn == Turn::Ours => {
                    self.turn = Turn::Given;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => return Poll::Ready(self.gathered.take().map(Ok)),
            }
        }
    }

    /// The whole body, at most `limit` bytes of it.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Bytes, TurnError> {
        let mut whole = Gathered::Nothing;
        while !self.incoming.is_end_stream() {
            let Some(bytes) = poll_fn(|cx| self.poll_chunk(cx)).await else { break };
            whole.add(bytes?);
            if whole.len() > limit {
                return Err(self.host.too_large(limit));
            }
        }
        Ok(whole.take().unwrap_or_default())
    }

    /// The next chunk as the connection hands it over.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers say nothing to us.
                    let Ok(bytes) = frame.into_data() else { continue };
                    self.last_bytes = Instant::now();
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(self.host.cut(error)))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    ready!(self.poll_silence(cx));
                    return Poll::Ready(Some(Err(self.host.silent_for(self.idle))));
                }
            }
        }
    }

    /// Ready when the host has been silent for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let patience_ends = self.last_bytes + self.idle;
            if patience_ends <= Instant::now() {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(patience_ends);
        }
    }
}

impl Gathered {
    fn add(&mut self, bytes: Bytes) {
        *self = match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => Self::One(bytes),
            Self::One(first) => {
                let mut several =
                    BytesMut::with_capacity((first.len() + bytes.len()).max(USUAL_JOINED_BYTES));
                several.extend_from_slice(&first);
                several.extend_from_slice(&bytes);
                Self::Several(several)
            }
            Self::Several(mut several) => {
                several.extend_from_slice(&bytes);
                Self::Several(several)
            }
        };
    }

    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(bytes) => bytes.len(),
            Self::Several(bytes) => bytes.len(),
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => None,
            Self::One(bytes) => Some(bytes),
            Self::Several(bytes) => Some(bytes.freeze()),
        }
    }
}
