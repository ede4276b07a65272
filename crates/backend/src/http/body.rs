//! The body of a host's response, with a bound on each wait.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use toolgate_model::TurnError;

use super::connection::HostExchange;
use super::failure::Host;
use super::pool::Pool;
use crate::idle_timer::IdleTimer;
use crate::stats::InFlight;

/// The body of a host's response. Dropping it cancels the request at the host (T20).
pub(super) struct HostBody {
    transport: Transport,
    host: Host,
    idle: Duration,
    timer: IdleTimer,
    /// Counts the request as in flight.
    _in_flight: InFlight,
}

/// Where a body is received from.
pub(super) enum Transport {
    /// `None` once the body has ended: the connection is back in its pool, or closed.
    Http1 {
        exchange: Option<HostExchange>,
        pool: Arc<Pool>,
    },
    Http2(Incoming),
}

impl HostBody {
    pub(super) fn new(
        transport: Transport,
        host: &Host,
        idle: Duration,
        (timer, in_flight): (IdleTimer, InFlight),
    ) -> Self {
        Self { transport, host: host.clone(), idle, timer, _in_flight: in_flight }
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Sets another bound on silence.
    pub(super) fn set_idle(&mut self, idle: Duration) {
        self.idle = idle;
    }

    /// All bytes that have been received; `None` at the end of the body.
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        match self.transport.poll_bytes(&self.host, cx) {
            Poll::Ready(bytes) => {
                self.timer.restart();
                Poll::Ready(bytes)
            }
            Poll::Pending => {
                ready!(self.timer.poll(self.idle, cx));
                Poll::Ready(Some(Err(self.host.silent_for(self.idle))))
            }
        }
    }

    /// The rest of the body, at most `limit` bytes.
    pub(super) async fn collect(&mut self, limit: usize) -> Result<Bytes, TurnError> {
        let Some(first) = poll_fn(|cx| self.poll_bytes(cx)).await else { return Ok(Bytes::new()) };
        let first = first?;
        if self.transport.is_over() && first.len() <= limit {
            return Ok(first);
        }
        let mut whole = BytesMut::from(first);
        loop {
            if whole.len() > limit {
                return Err(self.host.too_large(limit));
            }
            let Some(bytes) = poll_fn(|cx| self.poll_bytes(cx)).await else { return Ok(whole.freeze()) };
            whole.extend_from_slice(&bytes?);
        }
    }
}

impl Transport {
    fn poll_bytes(&mut self, host: &Host, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        match self {
            Self::Http1 { exchange, pool } => {
                let Some(open) = exchange else { return Poll::Ready(None) };
                let bytes = ready!(open.poll_bytes(cx));
                let is_over = open.is_over() || !matches!(bytes, Some(Ok(_)));
                if is_over && let Some(connection) = exchange.take().and_then(HostExchange::into_connection) {
                    pool.give_back(connection);
                }
                Poll::Ready(bytes.map(|bytes| bytes.map_err(|error| host.cut(error))))
            }
            Self::Http2(incoming) => loop {
                match ready!(Pin::new(&mut *incoming).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        // Trailers have no meaning here.
                        let Ok(bytes) = frame.into_data() else { continue };
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(host.cut(error)))),
                    None => return Poll::Ready(None),
                }
            },
        }
    }

    /// True once the last byte was read.
    fn is_over(&self) -> bool {
        match self {
            Self::Http1 { exchange, pool: _ } => exchange.is_none(),
            Self::Http2(incoming) => incoming.is_end_stream(),
        }
    }
}
