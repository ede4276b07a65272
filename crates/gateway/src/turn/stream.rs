//! A reply as it comes: events written in the client's dialect, or the host's own frames.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use toolgate_backend::{AnswerBody, Batch, EventStream, RelayStream};
use toolgate_dialect::ReplyWriter;
use toolgate_model::reply::Fold;
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{ErrorKind, ReplyId, TurnError, TurnEvent};

use super::keep::Said;
use super::prepare::Asked;
use super::record::TurnRecord;
use super::samples::{Opened, Samples, Start, event_streams};
use super::{going_away, unsaid};
use crate::service::Worker;

/// Events that arrived together go out together, up to about this many bytes.
const MAX_JOINED_BYTES: usize = 16 * 1024;

/// A first guess at what one batch of events takes.
const USUAL_BATCH_BYTES: usize = 512;

/// A stream before its first byte.
pub(super) struct Pending {
    worker: Arc<Worker>,
    asked: Asked,
    source: Source,
}

impl Pending {
    /// The first event has not come yet.
    pub(super) fn starting(worker: Arc<Worker>, asked: Asked, start: Start) -> Self {
        Self { worker, asked, source: Source::Starting(start) }
    }

    /// The first event is there.
    pub(super) fn answered(worker: Arc<Worker>, asked: Asked, opened: Opened) -> Self {
        let source = Source::of(opened, &asked);
        Self { worker, asked, source }
    }
}

/// Where the reply comes from.
enum Source {
    Starting(Start),
    Events(EventStream),
    Relay(Box<dyn RelayStream>),
    Samples(Box<Samples>),
    /// What came is no stream.
    Unfit(TurnError),
    Ended,
}

impl Source {
    fn of(opened: Opened, asked: &Asked) -> Self {
        if !opened.others.is_empty() {
            return match event_streams(opened) {
                Ok(streams) => Self::Samples(Box::new(Samples::new(streams, &asked.context()))),
                Err(error) => Self::Unfit(error),
            };
        }
        match opened.first.body {
            AnswerBody::Events(events) => Self::Events(events),
            AnswerBody::Relay(relay) => Self::Relay(relay),
            AnswerBody::Whole(_) => Self::Unfit(TurnError::new(
                ErrorKind::Internal,
                "a stream was asked for and a whole reply came; please report this",
            )),
        }
    }
}

/// The body of a streamed reply. Dropping it cancels the turn at the host (T20).
pub(crate) struct ReplyBody {
    worker: Arc<Worker>,
    asked: Asked,
    source: Source,
    /// Made when first needed: a relayed stream writes nothing of its own unless something is wrong.
    writer: Option<Box<dyn ReplyWriter>>,
    settler: StopReasonNormalizer,
    /// The reply so far, where it is to be kept.
    fold: Option<Fold>,
    /// Keeps the reply; the last frames wait for it, so that a client can continue a reply as soon as it is over.
    keeping: Option<BoxFuture<'static, ()>>,
    out: Vec<u8>,
    last_write: Instant,
    ping: Pin<Box<Sleep>>,
    grace_over: Pin<Box<WaitForCancellationFutureOwned>>,
    record: Box<TurnRecord>,
}

impl ReplyBody {
    pub(super) fn new(pending: Pending, record: Box<TurnRecord>) -> Self {
        let Pending { worker, asked, source } = pending;
        let now = Instant::now();
        Self {
            ping: Box::pin(tokio::time::sleep_until(now + worker.shared.limits.ping_every)),
            grace_over: Box::pin(worker.tasks.grace_over().clone().cancelled_owned()),
            fold: asked.keeper.as_ref().map(|_| Fold::new()),
            worker,
            asked,
            source,
            writer: None,
            settler: StopReasonNormalizer::new(),
            keeping: None,
            out: Vec::new(),
            last_write: now,
            record,
        }
    }

    /// The next bytes: all that have come. `None` at the end of the reply.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(keeping) = &mut self.keeping {
                ready!(keeping.as_mut().poll(cx));
                self.keeping = None;
            }
            let is_over = matches!(self.source, Source::Ended);
            if is_over && self.out.is_empty() {
                return Poll::Ready(None);
            }
            if is_over || self.out.len() >= MAX_JOINED_BYTES {
                return self.send_out();
            }
            match self.poll_source(cx) {
                Poll::Ready(Some(frames)) => return self.send(frames),
                Poll::Ready(None) => {}
                Poll::Pending => {
                    if let Some(writer) = &mut self.writer {
                        writer.pause(&mut self.out);
                    }
                    if !self.out.is_empty() {
                        return self.send_out();
                    }
                    ready!(self.poll_quiet(cx));
                }
            }
        }
    }

    /// Takes one step; what is to be sent is in `out`, or returned where it is the host's own.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.source {
            Source::Starting(start) => match ready!(Pin::new(start).poll(cx)) {
                Ok(opened) => {
                    self.record.answered(&opened.first);
                    self.source = Source::of(opened, &self.asked);
                }
                Err(error) => self.fail(&error),
            },
            Source::Events(events) => match ready!(events.as_mut().poll_next(cx)) {
                Some(Ok(batch)) => self.write(batch),
                Some(Err(error)) => self.fail(&error),
                None => self.end_events(),
            },
            Source::Relay(relay) => match ready!(relay.poll_frames(cx)) {
                Some(Ok(frames)) if self.asked.keeper.is_none() => return Poll::Ready(Some(frames)),
                Some(Ok(frames)) => match relay.reading().repeated {
                    None => return Poll::Ready(Some(frames)),
                    // The last frames wait in `out` until the reply is kept.
                    Some(reply) => {
                        self.keeping = self.asked.keep_relayed(&self.worker, reply.as_bytes());
                        self.out.extend_from_slice(&frames);
                    }
                },
                Some(Err(error)) => self.fail(&error),
                None => self.end_relay(),
            },
            Source::Samples(samples) => match ready!(samples.poll_write(cx, &mut self.out)) {
                Some(Ok(losses)) => {
                    self.record.read(samples.usage());
                    self.record.lost(losses);
                }
                Some(Err(error)) => self.fail(&error),
                None => {
                    self.source = Source::Ended;
                    self.record.succeed();
                }
            },
            Source::Unfit(error) => {
                let error = error.clone();
                self.fail(&error);
            }
            Source::Ended => {}
        }
        Poll::Ready(None)
    }

    fn write(&mut self, batch: Batch) {
        self.record.lost(batch.losses);
        if self.out.capacity() == 0 {
            self.out.reserve(USUAL_BATCH_BYTES);
        }
        for event in batch.events {
            let mut event = self.settler.event(event);
            match &mut event {
                TurnEvent::Started(head) if self.fold.is_some() => {
                    head.id = Some(ReplyId::new(self.asked.api.reply_id(self.asked.turn.id)));
                }
                TurnEvent::Usage(usage) => self.record.read(Some(usage.clone())),
                TurnEvent::Finished(finish) => {
                    self.record.read(finish.usage.clone());
                    self.record.succeed();
                }
                TurnEvent::Started(_)
                | TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_) => {}
            }
            self.remember(&event);
            let writer = writer(&mut self.writer, &self.asked);
            writer.event(event, &mut self.out);
        }
    }

    /// Adds the event to the reply that is to be kept; with the last one, begins to keep it.
    fn remember(&mut self, event: &TurnEvent) {
        let Some(mut fold) = self.fold.take() else { return };
        if let Err(error) = fold.event(event.clone()) {
            tracing::error!(%error, id = %self.asked.turn.id, "a reply is not kept: its events are out of order");
            return;
        }
        if !matches!(event, TurnEvent::Finished(_)) {
            self.fold = Some(fold);
            return;
        }
        let (Ok(reply), Some(keeper)) = (fold.end(), self.asked.keeper.take()) else { return };
        let said = Said { reply, context: self.asked.context(), written: None };
        let request = Arc::clone(&self.asked.turn.request);
        let worker = Arc::clone(&self.worker);
        self.keeping = Some(Box::pin(keeper.keep(worker, self.asked.api.dialect(), request, said)));
    }

    fn end_events(&mut self) {
        self.source = Source::Ended;
        if let Some(writer) = &mut self.writer {
            let losses = writer.losses();
            self.record.lost(losses);
        }
        self.record.succeed();
    }

    fn end_relay(&mut self) {
        self.read_meter();
        if let Source::Relay(relay) = std::mem::replace(&mut self.source, Source::Ended)
            && let Some(error) = relay.reading().error
        {
            // The host told the client itself.
            self.record.fail(&error);
        }
        self.record.succeed();
    }

    /// Ends the stream with the dialect's error event (T17).
    fn fail(&mut self, error: &TurnError) {
        self.read_meter();
        self.source = Source::Ended;
        self.record.lost(unsaid(self.asked.api, error));
        self.record.fail(error);
        writer(&mut self.writer, &self.asked).error(error, &mut self.out);
    }

    fn read_meter(&mut self) {
        if let Source::Relay(relay) = &self.source {
            let reading = relay.reading();
            let usage = reading.usage.or_else(|| Some(self.asked.estimated_usage(reading.content_bytes?)));
            self.record.read(usage);
        }
    }

    /// Nothing comes: shows that we are alive when it is time (T19), or ends when the gateway does.
    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.grace_over.as_mut().poll(cx).is_ready() {
            self.fail(&going_away());
            return Poll::Ready(());
        }
        loop {
            ready!(self.ping.as_mut().poll(cx));
            let due = self.last_write + self.worker.shared.limits.ping_every;
            if due <= Instant::now() {
                break;
            }
            self.ping.as_mut().reset(due);
        }
        self.ping.as_mut().reset(Instant::now() + self.worker.shared.limits.ping_every);
        writer(&mut self.writer, &self.asked).ping(&mut self.out);
        Poll::Ready(())
    }

    fn send(&mut self, bytes: Bytes) -> Poll<Option<Bytes>> {
        self.last_write = Instant::now();
        Poll::Ready(Some(bytes))
    }

    fn send_out(&mut self) -> Poll<Option<Bytes>> {
        let out = std::mem::take(&mut self.out);
        self.send(out.into())
    }
}

impl Drop for ReplyBody {
    /// A client that left in the middle still pays for what it got.
    fn drop(&mut self) {
        self.read_meter();
    }
}

fn writer<'a>(made: &'a mut Option<Box<dyn ReplyWriter>>, asked: &Asked) -> &'a mut dyn ReplyWriter {
    made.get_or_insert_with(|| asked.api.dialect().reply_writer(asked.context())).as_mut()
}
