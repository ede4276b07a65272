//! Token usage of a turn: the host's counts for every request of the turn, and an estimate where the host reports none
//! or its reply was abandoned. An estimate is marked in the reply with `"estimated": true`. The host always reports its
//! counts to the gateway; the client gets them as its dialect says.

use std::sync::Arc;

use serde_json::Value;
use toolgate_dialect::openai_chat;
use toolgate_model::{Delivery, DialectId, TurnEvent, TurnRequest, Usage, UsageReport, estimate};

/// Meters one turn, reply by reply.
pub(super) struct UsageMeter {
    /// The client's dialect, in which estimates are marked.
    dialect: DialectId,
    /// The request of the current reply.
    request: Arc<TurnRequest>,
    /// The number of bytes of the current reply so far.
    reply_bytes: usize,
    /// The usage that the host reported for the current reply.
    reported: Option<Usage>,
    estimates: Estimates,
    audience: UsageAudience,
}

/// Who gets the usage of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UsageAudience {
    Client,
    /// Only the gateway, for its records.
    Gateway,
}

impl UsageAudience {
    /// Only streams of Chat Completions leave out token counts that the client did not request.
    fn of(dialect: DialectId, delivery: Delivery) -> Self {
        match delivery {
            Delivery::Stream(UsageReport::Default | UsageReport::Omitted) if dialect == openai_chat::ID => {
                Self::Gateway
            }
            Delivery::Whole | Delivery::Stream(_) => Self::Client,
        }
    }
}

/// Whether any count of the turn is an estimate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Estimates {
    None,
    Some,
}

impl UsageMeter {
    /// `delivery` is what the client requested, `request` what the host receives.
    pub(super) fn new(dialect: DialectId, delivery: Delivery, request: Arc<TurnRequest>) -> Self {
        let audience = UsageAudience::of(dialect, delivery);
        Self { dialect, request, reply_bytes: 0, reported: None, estimates: Estimates::None, audience }
    }

    /// Starts to meter the reply to a follow-up request.
    pub(super) fn next_reply(&mut self, request: Arc<TurnRequest>) {
        self.request = request;
        self.reply_bytes = 0;
        self.reported = None;
    }

    /// Meters an event of the reply. Adds an estimate to the last event if the host reported no usage.
    pub(super) fn observe(&mut self, event: &mut TurnEvent) {
        match event {
            TurnEvent::BlockDelta(delta) => self.reply_bytes += delta.len(),
            TurnEvent::Usage(usage) => self.reported = Some(usage.clone()),
            TurnEvent::Finished(finish) => {
                if finish.usage.is_none() && self.reported.is_none() {
                    finish.usage = Some(estimated(&self.request, self.reply_bytes));
                    self.estimates = Estimates::Some;
                }
                self.reported = finish.usage.clone().or(self.reported.take());
            }
            TurnEvent::Started(_) | TurnEvent::BlockStarted(_) | TurnEvent::BlockFinished(_) => {}
        }
    }

    /// The usage of a reply that is abandoned before its end. Many hosts report usage only at the end, and some report
    /// the input tokens earlier.
    pub(super) fn abandon(&mut self) -> Usage {
        let estimate = estimated(&self.request, self.reply_bytes);
        match self.reported.take() {
            Some(reported) if reported.output >= estimate.output => reported,
            reported => {
                self.estimates = Estimates::Some;
                Usage { output: estimate.output, ..reported.unwrap_or(estimate) }
            }
        }
    }

    /// The usage of a side request.
    pub(super) fn side_request(
        &mut self,
        request: &TurnRequest,
        reported: Option<Usage>,
        reply: &str,
    ) -> Usage {
        reported.unwrap_or_else(|| {
            self.estimates = Estimates::Some;
            estimated(request, reply.len())
        })
    }

    /// Moves the usage of the last event into an event of its own, which the gateway records and the client does not get.
    pub(super) fn hide_usage(&self, events: &mut Vec<TurnEvent>) {
        if self.audience == UsageAudience::Gateway
            && let Some(TurnEvent::Finished(finish)) = events.last_mut()
            && let Some(usage) = finish.usage.take()
        {
            events.insert(events.len() - 1, TurnEvent::Usage(usage));
        }
    }

    /// Marks the usage in these events if any of it is an estimate.
    pub(super) fn mark_estimates(&self, events: &mut [TurnEvent]) {
        if self.estimates == Estimates::None {
            return;
        }
        for event in events {
            let usage = match event {
                TurnEvent::Usage(usage) => Some(usage),
                TurnEvent::Finished(finish) => finish.usage.as_mut(),
                TurnEvent::Started(_)
                | TurnEvent::BlockStarted(_)
                | TurnEvent::BlockDelta(_)
                | TurnEvent::BlockFinished(_) => None,
            };
            if let Some(usage) = usage {
                usage.extras.insert(self.dialect, "estimated", Value::Bool(true));
            }
        }
    }
}

fn estimated(request: &TurnRequest, reply_bytes: usize) -> Usage {
    Usage {
        input: estimate::input_tokens(request),
        output: estimate::byte_tokens(reply_bytes),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
