//! Several answers to one request (`n`) from hosts that give one at a time: one turn for each, joined into one answer.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::try_join_all;
use toolgate_backend::{
    Answer, AnswerBody, Batch, ClientTurn, EventStream, RelayStream, ReplyOrigin, RequestIdentity, WholeBody,
};
use toolgate_dialect::openai_chat::{ChatWriter, merge_choices};
use toolgate_dialect::{MeterReading, ReplyContext, ReplyWriter};
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{Delivery, ErrorKind, Losses, ReplyId, TurnError, TurnEvent, TurnRequest, Usage};

use super::answer::Start;
use super::request::RoutedTurn;
use super::whole::fold;
use crate::http::Api;

/// The most answers to one request: each is a turn that is paid for.
const MAX_SAMPLES: u32 = 16;

/// How many turns it takes to answer; `None` if one turn is enough, because the client wants one answer or the hosts
/// give several themselves.
pub(super) fn wanted(routed: &RoutedTurn) -> Result<Option<u32>, TurnError> {
    let samples = routed.turn.request.as_ref().and_then(|request| request.samples).unwrap_or(1);
    let host_gives_several = routed.route.speaks_only(routed.turn.dialect.id());
    if routed.api != Api::Chat || samples <= 1 || host_gives_several {
        return Ok(None);
    }
    if samples > MAX_SAMPLES {
        return Err(TurnError::invalid_param(
            "n",
            format!("n: this model gives at most {MAX_SAMPLES} answers to one request; ask for fewer"),
        ));
    }
    Ok(Some(samples))
}

/// Starts all turns. Their joined answer is already in the client's dialect.
pub(super) fn start(routed: &RoutedTurn, count: u32) -> Start {
    let request = TurnRequest { samples: None, ..TurnRequest::clone(&routed.request()) };
    let turn = ClientTurn { request: Some(Arc::new(request)), body: None, ..routed.turn.clone() };
    let sample = |number| {
        let identity = RequestIdentity { sample: Some(number), ..turn.identity.clone() };
        routed.route.start(ClientTurn { identity, ..turn.clone() })
    };
    let starts: Vec<Start> = (0..count).map(sample).collect();
    let (context, delivery) = (routed.context(), turn.delivery);
    Box::pin(async move {
        let mut answers = try_join_all(starts).await?.into_iter();
        let Some(first) = answers.next() else { return Err(cannot_join()) };
        let Answer { upstream, mut losses, recoveries, headers, body, mut origin, mut receipt } = first;
        let mut bodies = vec![body];
        for answer in answers {
            bodies.push(answer.body);
            receipt = receipt.and(answer.receipt);
            if answer.origin == ReplyOrigin::Turn {
                origin = ReplyOrigin::Turn;
            }
        }
        let streams = bodies.into_iter().map(events).collect::<Result<Vec<_>, _>>()?;
        let body = match delivery {
            Delivery::Stream(_) => AnswerBody::Relay(Box::new(SampleStream::new(streams, &context))),
            Delivery::Whole => AnswerBody::Whole(collect(streams, &context, &mut losses).await?),
        };
        Ok(Answer { upstream, losses, recoveries, headers, body, origin, receipt })
    })
}

fn events(body: AnswerBody) -> Result<EventStream, TurnError> {
    match body {
        AnswerBody::Events(events) => Ok(events),
        AnswerBody::Relay(_) | AnswerBody::Whole(_) => Err(cannot_join()),
    }
}

fn cannot_join() -> TurnError {
    TurnError::new(ErrorKind::Internal, "the answers to one request cannot be joined; please report this")
}

/// All answers in one body.
async fn collect(
    streams: Vec<EventStream>,
    context: &ReplyContext,
    losses: &mut Losses,
) -> Result<WholeBody, TurnError> {
    let mut written = Vec::with_capacity(streams.len());
    let mut usage = None;
    for events in streams {
        let reply = fold(events, losses, |_| ()).await?;
        add_usage(&mut usage, reply.finish.usage.as_ref());
        let choice = Api::Chat.dialect().write_reply(&reply, context);
        losses.append(choice.losses);
        written.push(choice.value);
    }
    Ok(WholeBody { bytes: merge_choices(written).into(), usage })
}

/// Several answers written into one stream as they arrive.
struct SampleStream {
    open: Vec<Sample>,
    /// Closes the stream when all answers are complete; `None` once it did.
    closer: Option<ChatWriter>,
    reply_id: ReplyId,
    usage: Option<Usage>,
    losses: Losses,
}

struct Sample {
    events: EventStream,
    writer: ChatWriter,
    normalizer: StopReasonNormalizer,
    /// What its host has reported so far.
    usage: Option<Usage>,
}

impl SampleStream {
    fn new(streams: Vec<EventStream>, context: &ReplyContext) -> Self {
        let open = streams.into_iter().zip(0..).map(|(events, choice)| Sample {
            events,
            writer: ChatWriter::new(context.clone()).with_choice(choice),
            normalizer: StopReasonNormalizer::new(),
            usage: None,
        });
        Self {
            open: open.collect(),
            closer: Some(ChatWriter::new(context.clone())),
            reply_id: ReplyId::new(context.fallback_id.as_str()),
            usage: None,
            losses: Losses::default(),
        }
    }

    /// Writes the events of one answer.
    fn write(&mut self, index: usize, batch: Batch, out: &mut Vec<u8>) {
        self.losses.append(batch.losses);
        for event in batch.events {
            let sample = &mut self.open[index];
            let mut event = sample.normalizer.event(event);
            match &mut event {
                // All chunks of a stream have one id.
                TurnEvent::Started(head) => head.id = Some(self.reply_id.clone()),
                TurnEvent::Usage(usage) => sample.usage = Some(usage.clone()),
                TurnEvent::Finished(finish) => {
                    add_usage(&mut self.usage, finish.usage.as_ref().or(sample.usage.as_ref()));
                }
                TurnEvent::BlockStarted(_) | TurnEvent::BlockDelta(_) | TurnEvent::BlockFinished(_) => {}
            }
            sample.writer.event(event, out);
        }
    }

    /// Writes everything that has arrived. True if something did.
    fn poll_samples(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<bool, TurnError> {
        let (mut index, mut has_progress) = (0, false);
        while index < self.open.len() {
            match self.open[index].events.as_mut().poll_next(cx) {
                Poll::Pending => index += 1,
                Poll::Ready(Some(batch)) => {
                    has_progress = true;
                    self.write(index, batch?, out);
                    index += 1;
                }
                Poll::Ready(None) => {
                    has_progress = true;
                    let mut ended = self.open.remove(index);
                    self.losses.append(ended.writer.losses());
                    if self.open.is_empty() {
                        // This writer knows the head that every chunk repeats.
                        self.closer = Some(ended.writer);
                    }
                }
            }
        }
        Ok(has_progress)
    }
}

impl RelayStream for SampleStream {
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        let mut out = Vec::new();
        while out.is_empty() {
            if self.open.is_empty() {
                let Some(mut closer) = self.closer.take() else { return Poll::Ready(None) };
                closer.close(self.usage.as_ref(), &mut out);
                break;
            }
            match self.poll_samples(cx, &mut out) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        Poll::Ready(Some(Ok(out.into())))
    }

    fn reading(&self) -> MeterReading {
        MeterReading { usage: self.usage.clone(), complete: self.closer.is_none(), ..MeterReading::default() }
    }

    fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }
}

/// The prompt counts once and the tokens of the answers add up, as this API defines it for `n`.
fn add_usage(total: &mut Option<Usage>, more: Option<&Usage>) {
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
