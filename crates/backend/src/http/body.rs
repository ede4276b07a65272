//! A reply's bytes as they come, each wait bounded.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use tokio::time::{Instant, Sleep};
use toolgate_model::TurnError;

use super::failure::Host;
use super::pool::Arriving;

/// The body of a host's answer. Dropping it ends the request at the host (T20).
pub(super) struct HostBody {
    arriving: Arriving,
    host: Host,
    idle: Duration,
    /// Since when something is waited for.
    waits_since: Option<Instant>,
    /// Rings when the host may have been silent for too long. It is made when there is something to wait for, and
    /// moved only when it rings, not with every chunk.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl HostBody {
    pub(super) fn new(arriving: Arriving, host: &Host, idle: Duration) -> Self {
        Self { arriving, host: host.clone(), idle, waits_since: None, alarm: None }
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Waits less from now on.
    pub(super) fn set_idle(&mut self, idle: Duration) {
        self.idle = idle;
        self.alarm = None;
    }

    /// The next bytes: all that have come. `None` at the end of the body.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        match self.arriving.poll_bytes(&self.host, cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                self.waits_since = None;
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => {
                ready!(self.poll_silence(cx));
                Poll::Ready(Some(Err(self.host.silent_for(self.idle))))
            }
        }
    }

    /// The whole body, or what is left of it, at most `limit` bytes.
    pub(super) async fn collect(&mut self, limit: usize) -> Result<Bytes, TurnError> {
        let Some(first) = poll_fn(|cx| self.poll_bytes(cx)).await else { return Ok(Bytes::new()) };
        let first = first?;
        if self.arriving.is_over() && first.len() <= limit {
            return Ok(first);
        }
        let mut whole = BytesMut::from(first);
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
        let ends = *self.waits_since.get_or_insert_with(Instant::now) + self.idle;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(ends)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            if ends <= Instant::now() {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(ends);
        }
    }
}

impl Arriving {
    fn poll_bytes(&mut self, host: &Host, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        match self {
            Self::Exclusive { reply, pool } => {
                let bytes = ready!(reply.poll_bytes(cx));
                if let Some(connection) = reply.take_connection() {
                    pool.give_back(connection);
                }
                Poll::Ready(bytes.map(|bytes| bytes.map_err(|error| host.cut(error))))
            }
            Self::Shared(incoming) => loop {
                match ready!(Pin::new(&mut *incoming).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        // Trailers say nothing to us.
                        let Ok(bytes) = frame.into_data() else { continue };
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(host.cut(error)))),
                    None => return Poll::Ready(None),
                }
            },
        }
    }

    /// True once the last byte was given.
    fn is_over(&self) -> bool {
        match self {
            Self::Exclusive { reply, pool: _ } => reply.is_over(),
            Self::Shared(incoming) => incoming.is_end_stream(),
        }
    }
}
