//! A host's stream, parsed into events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use toolgate_dialect::ReplyReader;
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder};
use toolgate_model::{TurnError, TurnEvent};

use super::MAX_CLOSING;
use super::body::HostBody;
use crate::turn::Batch;

/// A stream of events. Each batch holds the events of all frames that were received together.
pub(super) struct HostEvents {
    body: HostBody,
    decoder: SseDecoder,
    reader: Box<dyn ReplyReader>,
    /// The first batch, after `poll_first` has read it.
    first: Option<Batch>,
    state: State,
}

enum State {
    Open,
    /// `Finished` was sent on; only the end of the body is missing.
    Finished,
    /// The events before this error go out first.
    Failed(TurnError),
    Over,
}

impl HostEvents {
    pub(super) fn new(body: HostBody, reader: Box<dyn ReplyReader>) -> Self {
        let decoder = SseDecoder::new(MAX_FRAME_BYTES);
        Self { body, decoder, reader, first: None, state: State::Open }
    }

    /// Ready when the first event was read; the stream then gives it as usual. An error among the first frames fails
    /// the turn, so that another host can be tried.
    pub(super) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TurnError>> {
        let first = match ready!(self.poll_batch(cx)) {
            Some(first) => first?,
            None => return Poll::Ready(Err(self.body.host().ended_early())),
        };
        if let State::Failed(error) = &self.state {
            return Poll::Ready(Err(error.clone()));
        }
        self.first = Some(first);
        Poll::Ready(Ok(()))
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Batch, TurnError>>> {
        loop {
            match &self.state {
                State::Open | State::Finished => {}
                State::Over => return Poll::Ready(None),
                State::Failed(error) => {
                    let error = error.clone();
                    self.state = State::Over;
                    return Poll::Ready(Some(Err(error)));
                }
            }
            let mut batch = Batch::default();
            let outcome = match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(bytes)) => self.read(&bytes, &mut batch),
                // The reply is complete, so an error after it does not matter.
                Some(Err(_)) | None if matches!(self.state, State::Finished) => {
                    self.state = State::Over;
                    continue;
                }
                Some(Err(error)) => Err(error),
                None => self.end(&mut batch),
            };
            self.note_finish(&batch.events);
            if let Err(error) = outcome {
                self.state = State::Failed(error);
            }
            if !batch.events.is_empty() || !batch.losses.is_empty() {
                return Poll::Ready(Some(Ok(batch)));
            }
        }
    }

    fn read(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<(), TurnError> {
        self.decoder.push(bytes);
        loop {
            let frame = self.decoder.next_frame().map_err(|error| self.body.host().cut(error))?;
            let Some(frame) = frame else { return Ok(()) };
            self.reader.frame(frame, &mut batch.events)?;
        }
    }

    fn end(&mut self, batch: &mut Batch) -> Result<(), TurnError> {
        // T17: half a frame means that the reply was cut.
        if let Some(last) = self.decoder.end().map_err(|error| self.body.host().cut(error))? {
            self.reader.frame(last, &mut batch.events)?;
        }
        self.reader.end(&mut batch.events)?;
        batch.losses = self.reader.losses();
        self.state = State::Over;
        Ok(())
    }

    fn note_finish(&mut self, events: &[TurnEvent]) {
        if matches!(self.state, State::Open) && matches!(events.last(), Some(TurnEvent::Finished(_))) {
            self.state = State::Finished;
            self.body.set_idle(MAX_CLOSING);
        }
    }
}

impl Stream for HostEvents {
    type Item = Result<Batch, TurnError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.poll_batch(cx)
    }
}
