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

/// The body of a host's answer. Dropping it ends the request at the host (T20).
pub(super) struct HostBody {
    incoming: Incoming,
    host: Host,
    idle: Duration,
    last_bytes: Instant,
    /// Rings when the host may have been silent for too long. It is moved only when it rings, not with every chunk.
    alarm: Pin<Box<Sleep>>,
}

impl HostBody {
    pub(super) fn new(incoming: Incoming, host: &Host, idle: Duration) -> Self {
        let alarm = Box::pin(tokio::time::sleep(idle));
        Self { incoming, host: host.clone(), idle, last_bytes: Instant::now(), alarm }
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
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
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

    /// The whole body, at most `limit` bytes of it.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Bytes, TurnError> {
        let Some(first) = poll_fn(|cx| self.poll_bytes(cx)).await else { return Ok(Bytes::new()) };
        let first = first?;
        let Some(second) = poll_fn(|cx| self.poll_bytes(cx)).await else { return Ok(first) };
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second?);
        while let Some(bytes) = poll_fn(|cx| self.poll_bytes(cx)).await {
            whole.extend_from_slice(&bytes?);
            if whole.len() > limit {
                return Err(self.host.too_large(limit));
            }
        }
        Ok(whole.freeze())
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
