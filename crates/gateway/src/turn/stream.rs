//! A reply as it arrives: events written in the client's dialect, or the host's own frames.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use toolgate_backend::{AnswerBody, Batch, EventStream, RelayStream};
use toolgate_dialect::frame::SseDecoder;
use toolgate_dialect::{ReplyWriter, registry};
use toolgate_model::reply::Fold;
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{DialectId, ErrorKind, ReplyId, TurnError, TurnEvent};

use super::answer::Start;
use super::going_away;
use super::record::TurnRecord;
use super::relay_reader::RelayReader;
use super::reply::unsupported_extras;
use super::request::RoutedTurn;
use super::stored_item::IdIssuer;
use super::stored_reply::CompleteReply;
use crate::service::Worker;

/// Events that arrived together are sent together, up to about this many bytes.
const MAX_BATCH_BYTES: usize = 16 * 1024;

/// A first guess at what one batch of events takes.
const USUAL_BATCH_BYTES: usize = 512;

/// A stream before its first byte.
pub(super) struct OpenStream {
    worker: Arc<Worker>,
    routed: RoutedTurn,
    source: Source,
}

impl OpenStream {
    /// A stream that begins before its first event.
    pub(super) fn starting(worker: &Arc<Worker>, routed: RoutedTurn, start: Start) -> Box<Self> {
        Box::new(Self { worker: Arc::clone(worker), routed, source: Source::Starting(start) })
    }

    /// A stream whose first event has arrived.
    pub(super) fn answered(worker: &Arc<Worker>, routed: RoutedTurn, body: AnswerBody) -> Box<Self> {
        Box::new(Self { worker: Arc::clone(worker), routed, source: body.into() })
    }
}

/// Where the reply comes from.
pub(super) enum Source {
    /// The first event has not arrived yet.
    Starting(Start),
    Events(EventStream),
    Relay(Box<dyn RelayStream>),
    /// The back end gave something that cannot be streamed.
    Unfit(TurnError),
    Ended,
}

impl From<AnswerBody> for Source {
    fn from(body: AnswerBody) -> Self {
        match body {
            AnswerBody::Events(events) => Self::Events(events),
            AnswerBody::Relay(relay) => Self::Relay(relay),
            AnswerBody::Whole(_) => Self::Unfit(TurnError::new(
                ErrorKind::Internal,
                "the back end relays one body for a request that asked for a stream; please report this",
            )),
        }
    }
}

/// The body of a streamed reply. Dropping it cancels the turn at the host (T20).
pub(crate) struct StreamBody {
    worker: Arc<Worker>,
    routed: RoutedTurn,
    source: Source,
    /// Made when first needed: a relayed stream writes nothing of its own unless something is wrong.
    writer: Option<Box<dyn ReplyWriter>>,
    normalizer: StopReasonNormalizer,
    /// Reads a relayed reply for people who watch.
    relay_reader: Option<RelayReader>,
    /// The reply so far, if it is to be stored.
    fold: Option<Fold>,
    /// Stores the reply. The last frames wait for it, so that a client can continue a reply as soon as it has ended.
    keeping: Option<BoxFuture<'static, ()>>,
    out: Vec<u8>,
    last_write: Instant,
    ping: Pin<Box<Sleep>>,
    grace_over: Pin<Box<WaitForCancellationFutureOwned>>,
    record: Box<TurnRecord>,
}

impl StreamBody {
    pub(super) fn new(stream: OpenStream, record: Box<TurnRecord>) -> Self {
        let OpenStream { worker, routed, source } = stream;
        let now = Instant::now();
        let relay_reader = RelayReader::open(&source, &routed, &record);
        Self {
            ping: Box::pin(tokio::time::sleep_until(now + worker.shared.limits.ping_every)),
            grace_over: Box::pin(worker.tasks.grace_over().clone().cancelled_owned()),
            fold: routed.keeper.as_ref().map(|_| Fold::new()),
            worker,
            routed,
            source,
            writer: None,
            normalizer: StopReasonNormalizer::new(),
            relay_reader,
            keeping: None,
            out: Vec::new(),
            last_write: now,
            record,
        }
    }

    /// The next bytes: everything that has arrived. `None` at the end of the reply.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(keeping) = &mut self.keeping {
                ready!(keeping.as_mut().poll(cx));
                self.keeping = None;
            }
            let is_over = matches!(self.source, Source::Ended);
            if is_over {
                self.record.ending();
            }
            if is_over && self.out.is_empty() {
                return Poll::Ready(None);
            }
            if is_over || self.out.len() >= MAX_BATCH_BYTES {
                return self.flush();
            }
            match self.poll_source(cx) {
                Poll::Ready(Some(frames)) => return self.send(frames),
                Poll::Ready(None) => {}
                Poll::Pending => {
                    if let Some(writer) = &mut self.writer {
                        writer.pause(&mut self.out);
                    }
                    if !self.out.is_empty() {
                        return self.flush();
                    }
                    ready!(self.poll_quiet(cx));
                }
            }
        }
    }

    /// Takes one step. New bytes are in `out`, or returned if they are the host's own.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.source {
            Source::Starting(start) => match ready!(start.as_mut().poll(cx)) {
                Ok(mut answer) => {
                    self.record.set_answer(&mut answer);
                    self.record.watch_answer(&answer, &self.routed);
                    self.source = answer.body.into();
                    self.relay_reader = RelayReader::open(&self.source, &self.routed, &self.record);
                }
                Err(error) => self.fail(&error),
            },
            Source::Events(events) => match ready!(events.as_mut().poll_next(cx)) {
                Some(Ok(batch)) => self.write(batch),
                Some(Err(error)) => self.fail(&error),
                None => self.end_events(),
            },
            Source::Relay(relay) => match ready!(relay.poll_frames(cx)) {
                Some(Ok(frames)) => {
                    if let Some(reader) = &mut self.relay_reader {
                        reader.read(&frames, &mut self.record);
                    }
                    let repeated = self.routed.keeper.as_ref().and_then(|_| relay.reading().repeated);
                    let Some(reply) = repeated else { return Poll::Ready(Some(frames)) };
                    // The last frames wait in `out` until the reply is stored.
                    let upstream = self.record.upstream().cloned().unwrap_or_default();
                    self.keeping = self.routed.keep_relayed(&self.worker, &upstream, reply.as_bytes());
                    self.out.extend_from_slice(&frames);
                }
                Some(Err(error)) => self.fail(&error),
                None => self.end_relay(),
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
        self.record.add_losses(batch.losses);
        if self.out.capacity() == 0 {
            self.out.reserve(USUAL_BATCH_BYTES);
        }
        for event in batch.events {
            let mut event = self.normalizer.event(event);
            self.record.watch_event(&event);
            match &mut event {
                TurnEvent::Started(head) if self.fold.is_some() => {
                    head.id = Some(ReplyId::new(self.routed.api.reply_id(self.routed.turn.id)));
                }
                TurnEvent::Usage(usage) => self.record.set_usage(Some(usage.clone())),
                TurnEvent::Finished(finish) => {
                    self.record.set_usage(finish.usage.clone());
                    self.record.succeed();
                }
                TurnEvent::Started(_)
                | TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_) => {}
            }
            let is_last = matches!(event, TurnEvent::Finished(_));
            self.remember(&event);
            let begin = self.out.len();
            writer(&mut self.writer, &self.routed).event(event, &mut self.out);
            if is_last {
                self.keep(begin);
            }
        }
    }

    /// Adds the event to the reply that is to be stored.
    fn remember(&mut self, event: &TurnEvent) {
        let Some(fold) = &mut self.fold else { return };
        if let Err(error) = fold.event(event.clone()) {
            tracing::error!(%error, id = %self.routed.turn.id, "a reply is not stored: its events are out of order");
            self.fold = None;
        }
    }

    /// Starts storing the reply, with the ids in its last frames, which begin here in the output.
    fn keep(&mut self, last_frames: usize) {
        let Some(fold) = self.fold.take() else { return };
        let (Ok(reply), Some(keeper)) = (fold.end(), self.routed.keeper.take()) else { return };
        let dialect = self.routed.turn.dialect;
        let written = repeated_reply(dialect.id(), &self.out[last_frames..]);
        let context = self.routed.context();
        let complete = CompleteReply { reply, context, written, ids: IdIssuer::Gateway };
        let (worker, request) = (Arc::clone(&self.worker), self.routed.request());
        self.keeping = Some(Box::pin(keeper.keep(worker, dialect, request, complete)));
    }

    fn end_events(&mut self) {
        self.source = Source::Ended;
        if let Some(writer) = &mut self.writer {
            let losses = writer.losses();
            self.record.add_losses(losses);
        }
        self.record.succeed();
    }

    fn end_relay(&mut self) {
        self.read_meter();
        self.source = Source::Ended;
        self.record.succeed();
    }

    /// Ends the stream with the dialect's error event (T17).
    fn fail(&mut self, error: &TurnError) {
        self.read_meter();
        self.source = Source::Ended;
        self.record.add_losses(unsupported_extras(self.routed.api, error));
        self.record.fail(error);
        writer(&mut self.writer, &self.routed).error(error, &mut self.out);
    }

    /// Records what the meter saw. A reply whose last frame was sent is complete, even if the client closes the
    /// connection before the host does.
    fn read_meter(&mut self) {
        let Source::Relay(relay) = &mut self.source else { return };
        let reading = relay.reading();
        self.record.add_losses(relay.take_losses());
        let estimated = |bytes| self.routed.estimated_usage(bytes);
        self.record.set_usage(reading.usage.or_else(|| reading.content_bytes.map(estimated)));
        match reading.error {
            // The host's own error event has reached the client.
            Some(error) => self.record.fail(&error),
            None if reading.complete => self.record.succeed(),
            None => {}
        }
    }

    /// Nothing arrives: sends a ping when it is due (T19), or ends the stream when the gateway stops.
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
        writer(&mut self.writer, &self.routed).ping(&mut self.out);
        Poll::Ready(())
    }

    /// The record, while the turn is not over.
    pub(super) fn record(&mut self) -> &mut TurnRecord {
        &mut self.record
    }

    fn send(&mut self, bytes: Bytes) -> Poll<Option<Bytes>> {
        self.last_write = Instant::now();
        self.record.add_sent(&bytes);
        Poll::Ready(Some(bytes))
    }

    fn flush(&mut self) -> Poll<Option<Bytes>> {
        let out = std::mem::take(&mut self.out);
        self.send(out.into())
    }
}

impl Drop for StreamBody {
    /// A client that leaves in the middle still pays for what it got.
    fn drop(&mut self) {
        self.read_meter();
    }
}

/// The whole reply in the last frames of a stream, in dialects that repeat it there.
fn repeated_reply(dialect: DialectId, frames: &[u8]) -> Option<Vec<u8>> {
    let mut meter = registry::find(dialect.name)?.upstream.meter();
    let mut decoder = SseDecoder::new(frames.len());
    decoder.push(frames);
    while let Ok(Some(frame)) = decoder.next_frame() {
        meter.frame(frame);
    }
    meter.reading().repeated.map(|reply| reply.as_bytes().to_vec())
}

fn writer<'a>(made: &'a mut Option<Box<dyn ReplyWriter>>, routed: &RoutedTurn) -> &'a mut dyn ReplyWriter {
    made.get_or_insert_with(|| routed.turn.dialect.reply_writer(routed.context())).as_mut()
}
