//! Interprets one reply of a text-only model and sends the side requests that may save a call.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt};
use toolgate_model::reply::Fold;
use toolgate_model::{Block, Delta, TurnError, TurnEvent, TurnRequest, Usage};
use toolgate_prompted::{FollowUp, FollowUpReason, Interpreter, MissingValue, ParsePlan, Recovery};

use super::events_of;
use super::meter::UsageMeter;
use crate::turn::{Backend, Batch, EventStream, Recoveries, Turn};

/// The maximum number of values requested in one turn (P26). If a model omits more, the client's validator reports it.
const MAX_VALUE_REQUESTS: usize = 1;

/// The maximum length of a requested value. Beyond it the side request fails, and the call is completed without.
const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// A reply that is being interpreted.
pub(super) struct PromptedReply {
    inner: Arc<dyn Backend>,
    /// The turn as sent to the inner back end, with the tools as text.
    turn: Turn,
    interpreter: Interpreter,
    /// `None` once the upstream has ended or its reply is no longer needed.
    events: Option<EventStream>,
    /// Events that have arrived but were not interpreted: interpreting pauses while a value is requested.
    pending: VecDeque<TurnEvent>,
    out: Batch,
    value_requests_left: usize,
    meter: UsageMeter,
    recoveries: Recoveries,
}

impl PromptedReply {
    pub(super) fn new(
        inner: Arc<dyn Backend>,
        turn: Turn,
        plan: ParsePlan,
        events: EventStream,
        recoveries: Recoveries,
    ) -> Self {
        Self {
            meter: UsageMeter::new(turn.dialect, plan.delivery(), Arc::clone(&turn.request)),
            recoveries,
            inner,
            turn,
            interpreter: Interpreter::new(plan),
            events: Some(events),
            pending: VecDeque::new(),
            out: Batch::default(),
            value_requests_left: MAX_VALUE_REQUESTS,
        }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Batch, TurnError>> + Send {
        stream::unfold(self, |mut reply| async move {
            let batch = reply.next().await?;
            Some((batch, reply))
        })
    }

    /// The next batch of events. Sends what is ready before it waits for anything.
    async fn next(&mut self) -> Option<Result<Batch, TurnError>> {
        loop {
            self.interpret_pending();
            self.record();
            if !self.out.events.is_empty() || !self.out.losses.is_empty() {
                return Some(Ok(std::mem::take(&mut self.out)));
            }
            if let Some(missing) = self.interpreter.missing_value() {
                self.request_value(missing).await;
                continue;
            }
            if let Some(follow_up) = self.interpreter.follow_up() {
                self.follow_up(&follow_up).await;
                continue;
            }
            match self.events.as_mut()?.next().await {
                Some(Ok(batch)) => {
                    self.pending.extend(batch.events);
                    self.out.losses.append(batch.losses);
                }
                Some(Err(error)) => {
                    self.events = None;
                    return Some(Err(error));
                }
                None => self.end(),
            }
        }
    }

    /// Interprets events until a value is missing or no event is left.
    fn interpret_pending(&mut self) {
        while self.interpreter.missing_value().is_none() {
            let Some(mut event) = self.pending.pop_front() else { break };
            self.meter.observe(&mut event);
            self.interpreter.event(event, &mut self.out.events);
        }
        // Checked after all pending events, because one of them may contain the usage.
        if self.pending.is_empty() && self.interpreter.wants_stop() {
            let usage = TurnEvent::Usage(self.meter.abandon());
            self.interpreter.event(usage, &mut self.out.events);
            self.end();
        }
    }

    /// Marks estimates in the output, and records the heuristics used so far.
    fn record(&mut self) {
        self.meter.mark_estimates(&mut self.out.events);
        self.meter.hide_usage(&mut self.out.events);
        self.recoveries.set(self.interpreter.recoveries().map(Recovery::name));
    }

    fn end(&mut self) {
        self.events = None;
        self.interpreter.end(&mut self.out.events);
    }

    /// P26: requests a missing value, unless the turn has used up its requests.
    async fn request_value(&mut self, missing: MissingValue) {
        let value = match self.value_requests_left.checked_sub(1) {
            None => None,
            Some(left) => {
                self.value_requests_left = left;
                self.reply_text(missing.request(&self.turn.request)).await
            }
        };
        match value {
            Some(value) => self.interpreter.supply_value(&value, &mut self.out.events),
            None => self.interpreter.decline_value(&mut self.out.events),
        }
    }

    /// The text of the reply to a side request. On failure logs the reason and returns `None`.
    async fn reply_text(&mut self, request: TurnRequest) -> Option<String> {
        let turn = self.side_turn(request);
        let started = self.inner.start(turn.clone());
        let reply = async { text_of(events_of(started.await?.body)?).await };
        match reply.await {
            Ok((text, usage)) => {
                self.interpreter.add_usage(self.meter.side_request(&turn.request, usage, &text));
                Some(text).filter(|text| !text.trim().is_empty())
            }
            Err(error) => {
                self.warn(&error, "requesting a missing value failed; the call is completed without it");
                None
            }
        }
    }

    /// P28, P32: continues, nudges or retries.
    async fn follow_up(&mut self, follow_up: &FollowUp) {
        let turn = self.side_turn(follow_up.request(&self.turn.request));
        if let FollowUpReason::InvalidCall(fault) = &follow_up.reason {
            tracing::info!(
                id = %self.turn.id, upstream = %self.inner.name(), %fault,
                "the model's call could not be parsed; requesting a new answer"
            );
        }
        // The rest of the first reply is not needed.
        self.events = None;
        self.meter.next_reply(Arc::clone(&turn.request));
        let answer = self.inner.start(turn).await;
        let started = match answer.and_then(|answer| events_of(answer.body)) {
            Ok(events) => self.switch_to(events).await,
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            self.warn(&error, "the follow-up request failed; the reply ends as it is");
            self.end();
        }
    }

    /// Switches to the reply of a follow-up once it has content. The interpreter leaves the first reply at the first
    /// event, and a host may still fail after its `Started` event.
    async fn switch_to(&mut self, mut events: EventStream) -> Result<(), TurnError> {
        while self.pending.iter().all(|event| matches!(event, TurnEvent::Started(_))) {
            let Some(batch) = events.next().await.transpose()? else {
                return Err(TurnError::upstream("the host's reply is empty; try again"));
            };
            self.pending.extend(batch.events);
            self.out.losses.append(batch.losses);
        }
        self.events = Some(events);
        Ok(())
    }

    fn side_turn(&self, request: TurnRequest) -> Turn {
        Turn { request: Arc::new(request), ..self.turn.clone() }
    }

    fn warn(&self, error: &TurnError, what: &'static str) {
        tracing::warn!(id = %self.turn.id, upstream = %self.inner.name(), %error, "{what}");
    }
}

/// The text and usage of a whole reply.
async fn text_of(mut events: EventStream) -> Result<(String, Option<Usage>), TurnError> {
    let mut fold = Fold::new();
    let mut length = 0;
    let malformed = |error| TurnError::upstream("the host's reply is malformed").caused_by(error);
    'reply: while let Some(batch) = events.next().await {
        for event in batch?.events {
            let is_last = matches!(event, TurnEvent::Finished(_));
            if let TurnEvent::BlockDelta(Delta::Text(text)) = &event {
                length += text.len();
            }
            if length > MAX_VALUE_BYTES {
                return Err(TurnError::upstream("the host's reply is longer than a value may be; try again"));
            }
            fold.event(event).map_err(malformed)?;
            if is_last {
                break 'reply;
            }
        }
    }
    let reply = fold.end().map_err(malformed)?;
    let usage = reply.finish.usage;
    let texts = reply.blocks.into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text),
        Block::Refusal(_) | Block::Reasoning(_) | Block::ToolCall(_) | Block::Opaque(_) => None,
    });
    Ok((texts.collect(), usage))
}
