//! One reply of a text-only model, read into calls, with the side requests that may save one.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, Stream, StreamExt};
use toolgate_model::reply::Fold;
use toolgate_model::{Block, Delta, TurnError, TurnEvent, TurnRequest, Usage};
use toolgate_prompted::{Continuation, Interpreter, Missing, Plan, Reason, Recovery};

use super::events_of;
use super::meter::Meter;
use crate::turn::{Backend, Batch, EventStream, Rescues, Turn};

/// How many values are asked for in one turn (P26). A model that leaves out more is better told by the client.
const MAX_VALUES: usize = 1;

/// How long an answer to such a question may be. A model that does not stop is left, and the call goes on without.
const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// A reply that is being read.
pub(super) struct PromptedReply {
    inner: Arc<dyn Backend>,
    /// As it was sent: the tools are text in it.
    turn: Turn,
    interpreter: Interpreter,
    /// `None` once the upstream is over or no longer wanted.
    events: Option<EventStream>,
    /// Arrived and not yet read: a value is asked for between two events.
    unread: VecDeque<TurnEvent>,
    out: Batch,
    values_left: usize,
    meter: Meter,
    rescues: Rescues,
}

impl PromptedReply {
    pub(super) fn new(
        inner: Arc<dyn Backend>,
        turn: Turn,
        plan: Plan,
        events: EventStream,
        rescues: Rescues,
    ) -> Self {
        Self {
            meter: Meter::new(turn.dialect, Arc::clone(&turn.request)),
            rescues,
            inner,
            turn,
            interpreter: Interpreter::new(plan),
            events: Some(events),
            unread: VecDeque::new(),
            out: Batch::default(),
            values_left: MAX_VALUES,
        }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Batch, TurnError>> + Send {
        stream::unfold(self, |mut reply| async move {
            let batch = reply.next().await?;
            Some((batch, reply))
        })
    }

    /// What can be said next. Whatever is known goes out before anything is waited for.
    async fn next(&mut self) -> Option<Result<Batch, TurnError>> {
        loop {
            self.read_what_came();
            self.account();
            if !self.out.events.is_empty() || !self.out.losses.is_empty() {
                return Some(Ok(std::mem::take(&mut self.out)));
            }
            if let Some(missing) = self.interpreter.missing() {
                self.fetch(missing).await;
                continue;
            }
            if let Some(continuation) = self.interpreter.continuation() {
                self.ask_on(&continuation).await;
                continue;
            }
            match self.events.as_mut()?.next().await {
                Some(Ok(batch)) => {
                    self.unread.extend(batch.events);
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

    /// Reads until a value is missing or nothing is left.
    fn read_what_came(&mut self) {
        while self.interpreter.missing().is_none() {
            let Some(mut event) = self.unread.pop_front() else { break };
            self.meter.hear(&mut event);
            self.interpreter.event(event, &mut self.out.events);
        }
        // Asked only now: what has arrived may hold the token counts.
        if self.unread.is_empty() && self.interpreter.wants_stop() {
            let counted = TurnEvent::Usage(self.meter.leave());
            self.interpreter.event(counted, &mut self.out.events);
            self.end();
        }
    }

    /// Tells what is known about the turn so far.
    fn account(&mut self) {
        self.meter.mark(&mut self.out.events);
        let recoveries = self.interpreter.recoveries();
        if !recoveries.is_empty() {
            self.rescues.tell(recoveries.iter().copied().map(Recovery::name));
        }
    }

    fn end(&mut self) {
        self.events = None;
        self.interpreter.end(&mut self.out.events);
    }

    /// P26
    async fn fetch(&mut self, missing: Missing) {
        let answer = match self.values_left.checked_sub(1) {
            None => None,
            Some(left) => {
                self.values_left = left;
                self.said_to(missing.request(&self.turn.request)).await
            }
        };
        match answer {
            Some(value) => self.interpreter.supply(&value, &mut self.out.events),
            None => self.interpreter.go_without(&mut self.out.events),
        }
    }

    /// The text a model answers a question with; None after logging why there is none.
    async fn said_to(&mut self, request: TurnRequest) -> Option<String> {
        let turn = self.aside(request);
        let started = self.inner.start(turn.clone());
        let asked = async { text_of(events_of(started.await?.body)?).await };
        match asked.await {
            Ok((text, usage)) => {
                self.interpreter.spend(self.meter.aside(&turn.request, usage, &text));
                Some(text).filter(|text| !text.trim().is_empty())
            }
            Err(error) => {
                self.warn(
                    &error,
                    "asking the model for a value that its call lacks failed; going on without",
                );
                None
            }
        }
    }

    /// P28, P32, or a call that cannot be understood.
    async fn ask_on(&mut self, continuation: &Continuation) {
        let turn = self.aside(continuation.request(&self.turn.request));
        if let Reason::Unreadable(fault) = &continuation.reason {
            tracing::info!(
                id = %self.turn.id, upstream = %self.inner.name(), %fault,
                "the model's call cannot be understood; it is asked to write it again"
            );
        }
        // What the first reply still has to say is of no interest.
        self.events = None;
        self.meter.ask(Arc::clone(&turn.request));
        let answer = self.inner.start(turn).await;
        let begun = match answer.and_then(|answer| events_of(answer.body)) {
            Ok(events) => self.begin(events).await,
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            self.warn(&error, "asking the model to go on failed; the reply ends as it is");
            self.end();
        }
    }

    /// Takes the first events of a continuation, with which the interpreter leaves the reply that was cut. That a host
    /// begins says little: it may still fail before it speaks.
    async fn begin(&mut self, mut events: EventStream) -> Result<(), TurnError> {
        while self.unread.iter().all(|event| matches!(event, TurnEvent::Started(_))) {
            let Some(batch) = events.next().await.transpose()? else {
                return Err(TurnError::upstream("the host said nothing; try again"));
            };
            self.unread.extend(batch.events);
            self.out.losses.append(batch.losses);
        }
        self.events = Some(events);
        Ok(())
    }

    fn aside(&self, request: TurnRequest) -> Turn {
        Turn { request: Arc::new(request), ..self.turn.clone() }
    }

    fn warn(&self, error: &TurnError, what: &'static str) {
        tracing::warn!(id = %self.turn.id, upstream = %self.inner.name(), %error, "{what}");
    }
}

/// The text of a whole reply, and its cost.
async fn text_of(mut events: EventStream) -> Result<(String, Option<Usage>), TurnError> {
    let mut fold = Fold::new();
    let mut length = 0;
    let no_sense = |error| TurnError::upstream("the host's reply makes no sense as a whole").caused_by(error);
    'reply: while let Some(batch) = events.next().await {
        for event in batch?.events {
            let is_last = matches!(event, TurnEvent::Finished(_));
            if let TurnEvent::BlockDelta(Delta::Text(text)) = &event {
                length += text.len();
            }
            if length > MAX_VALUE_BYTES {
                return Err(TurnError::upstream("the host says more than any value needs; try again"));
            }
            fold.event(event).map_err(no_sense)?;
            if is_last {
                break 'reply;
            }
        }
    }
    let reply = fold.end().map_err(no_sense)?;
    let usage = reply.finish.usage;
    let texts = reply.blocks.into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text),
        Block::Refusal(_) | Block::Reasoning(_) | Block::ToolCall(_) | Block::Opaque(_) => None,
    });
    Ok((texts.collect(), usage))
}
