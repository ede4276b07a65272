//! Several answers to one request (`n`), for hosts that give one at a time: as many turns as answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::{BoxFuture, try_join_all};
use toolgate_backend::{Answer, AnswerBody, Batch, EventStream, Turn};
use toolgate_dialect::openai_chat::ChatWriter;
use toolgate_dialect::{ReplyContext, ReplyWriter};
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{ErrorKind, Losses, ReplyId, TurnError, TurnEvent, TurnRequest, Usage};

use super::prepare::Asked;
use crate::http::Api;

/// The most answers to one request: each is a turn of its own and is paid for.
const MAX_SAMPLES: u32 = 16;

/// A turn that waits for its first event, or several that wait for theirs.
pub(super) enum Start {
    One(BoxFuture<'static, Result<Answer, TurnError>>),
    Several(BoxFuture<'static, Result<Vec<Answer>, TurnError>>),
}

/// Turns whose first events are there: one, or one for each answer asked for.
pub(super) struct Opened {
    pub(super) first: Answer,
    pub(super) others: Vec<Answer>,
}

impl Future for Start {
    type Output = Result<Opened, TurnError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::One(start) => {
                let answer = ready!(start.as_mut().poll(cx));
                Poll::Ready(answer.map(|first| Opened { first, others: Vec::new() }))
            }
            Self::Several(starts) => {
                let mut answers = ready!(starts.as_mut().poll(cx))?.into_iter();
                let nothing =
                    || TurnError::new(ErrorKind::Internal, "no answer was begun; please report this");
                let first = answers.next().ok_or_else(nothing);
                Poll::Ready(first.map(|first| Opened { first, others: answers.collect() }))
            }
        }
    }
}

/// Begins the turn, or as many as it takes.
pub(super) fn start(asked: &Asked) -> Result<Start, TurnError> {
    let samples = asked.turn.request.samples.unwrap_or(1);
    let host_gives_several = asked.route.speaks_only(asked.turn.dialect);
    if asked.api != Api::Chat || samples <= 1 || host_gives_several {
        return Ok(Start::One(asked.route.start(asked.turn.clone())));
    }
    if samples > MAX_SAMPLES {
        return Err(TurnError::invalid_param(
            "n",
            format!(
                "n: at most {MAX_SAMPLES} answers to one request are given for this model; ask for fewer"
            ),
        ));
    }
    let request = Arc::new(TurnRequest { samples: None, ..TurnRequest::clone(&asked.turn.request) });
    let turn = Turn { request, original: None, ..asked.turn.clone() };
    let turns = (0..samples).map(|_| asked.route.start(turn.clone()));
    Ok(Start::Several(Box::pin(try_join_all(turns))))
}

/// The events of each answer.
pub(super) fn event_streams(opened: Opened) -> Result<Vec<EventStream>, TurnError> {
    let answers = std::iter::once(opened.first).chain(opened.others);
    let streams = answers.map(|answer| match answer.body {
        AnswerBody::Events(events) => Ok(events),
        AnswerBody::Relay(_) | AnswerBody::Whole(_) => Err(TurnError::new(
            ErrorKind::Internal,
            "one of several answers came unread and cannot be joined; please report this",
        )),
    });
    streams.collect()
}

/// Several answers written into one stream as they come.
pub(super) struct Samples {
    open: Vec<Sample>,
    /// Closes the stream when all answers are complete.
    closer: ChatWriter,
    reply_id: ReplyId,
    usage: Option<Usage>,
}

struct Sample {
    events: EventStream,
    writer: ChatWriter,
    settler: StopReasonNormalizer,
}

impl Samples {
    pub(super) fn new(streams: Vec<EventStream>, context: &ReplyContext) -> Self {
        let open = streams.into_iter().zip(0..).map(|(events, choice)| Sample {
            events,
            writer: ChatWriter::new(context.clone()).with_choice(choice),
            settler: StopReasonNormalizer::new(),
        });
        Self {
            open: open.collect(),
            closer: ChatWriter::new(context.clone()),
            reply_id: ReplyId::new(context.fallback_id.as_str()),
            usage: None,
        }
    }

    /// Writes what has come. `None` when all answers are complete and the stream is closed.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<Result<Losses, TurnError>>> {
        let mut losses = Losses::default();
        let mut came = false;
        let mut index = 0;
        while index < self.open.len() {
            match self.open[index].events.as_mut().poll_next(cx) {
                Poll::Pending => index += 1,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(batch))) => {
                    came = true;
                    self.write(index, batch, &mut losses, out);
                    index += 1;
                }
                Poll::Ready(None) => {
                    came = true;
                    let mut ended = self.open.remove(index);
                    losses.append(ended.writer.losses());
                    if self.open.is_empty() {
                        // Knows the head that every chunk repeats.
                        self.closer = ended.writer;
                    }
                }
            }
        }
        if came {
            return Poll::Ready(Some(Ok(losses)));
        }
        if !self.open.is_empty() {
            return Poll::Pending;
        }
        self.closer.close(self.usage.as_ref(), out);
        Poll::Ready(None)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.clone()
    }

    fn write(&mut self, index: usize, batch: Batch, losses: &mut Losses, out: &mut Vec<u8>) {
        losses.append(batch.losses);
        for event in batch.events {
            let sample = &mut self.open[index];
            let mut event = sample.settler.event(event);
            match &mut event {
                // All chunks of a stream have one id.
                TurnEvent::Started(head) => head.id = Some(self.reply_id.clone()),
                TurnEvent::Finished(finish) => add(&mut self.usage, finish.usage.as_ref()),
                TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_)
                | TurnEvent::Usage(_) => {}
            }
            sample.writer.event(event, out);
        }
    }
}

/// The prompt counts once and the answers' tokens add up, as this API defines it for `n`.
pub(super) fn add(total: &mut Option<Usage>, more: Option<&Usage>) {
    let Some(more) = more else { return };
    match total {
        None => *total = Some(more.clone()),
        Some(total) => {
            total.output = total.output.saturating_add(more.output);
            total.reasoning = match (total.reasoning, more.reasoning) {
                (Some(total), Some(more)) => Some(total.saturating_add(more)),
                (one, other) => one.or(other),
            };
        }
    }
}
