//! The last events, bounded by number and bytes. Deltas of one block that arrive together become one event.

use std::collections::VecDeque;
use std::sync::Arc;

use toolgate_model::CallId;
use toolgate_model::observed::{Epoch, EventPosition, Observation, ObservedEvent, ObservedLoss, Subject};

use super::COALESCE_WINDOW;
use super::sessions::SessionTable;
use crate::UnixMillis;

/// The most events in the ring: several minutes of a busy gateway.
pub const MAX_BUS_EVENTS: usize = 5_000;

/// The most bytes in the ring.
pub const MAX_BUS_BYTES: usize = 8 * 1024 * 1024;

/// The longest text of one delta. Longer ones become several events, and a growing one ends here.
pub const MAX_DELTA_BYTES: usize = 64 * 1024;

/// The events that one reading returns at most.
const MAX_READ_EVENTS: usize = 256;

/// The size of an event beside its texts.
const EVENT_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct Ring {
    epoch: Epoch,
    /// With consecutive numbers.
    events: VecDeque<Arc<ObservedEvent>>,
    bytes: usize,
    last_seq: u64,
    /// Events up to this number were read and may not change any more.
    sealed: u64,
    sessions: SessionTable,
}

/// Whether the last event may be left out because it may still grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    MayGrow,
    Complete,
}

/// What a subscriber gets.
#[derive(Debug)]
pub(super) enum Reading {
    Events(Vec<Arc<ObservedEvent>>),
    /// The only new event is a delta that may still grow.
    Growing,
    Nothing,
    /// Events that it has not read have left the ring.
    FellBehind,
}

impl Ring {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            events: VecDeque::new(),
            bytes: 0,
            last_seq: 0,
            sealed: 0,
            sessions: SessionTable::default(),
        }
    }

    pub(super) fn sessions(&self) -> &SessionTable {
        &self.sessions
    }

    pub(super) fn published(&self) -> u64 {
        self.last_seq
    }

    pub(super) fn publish(&mut self, at: UnixMillis, subject: Subject, observation: Observation) {
        if delta_text(&observation).is_some_and(str::is_empty) {
            return;
        }
        let Some(mut observation) = self.sessions.apply(at, &subject, observation) else { return };
        while let Some(rest) = split_long(&mut observation) {
            self.add(at, subject.clone(), observation);
            observation = rest;
        }
        self.add(at, subject, observation);
    }

    /// True if every event after this one is still here.
    pub(super) fn has_all_after(&self, seq: u64) -> bool {
        seq <= self.last_seq && seq >= self.last_seq - self.events.len() as u64
    }

    /// From now on, all present events are unchangeable. Returns the number of the last one.
    pub(super) fn seal(&mut self) -> u64 {
        self.sealed = self.last_seq;
        self.last_seq
    }

    pub(super) fn read_after(&mut self, seq: u64, tail: Tail) -> Reading {
        if !self.has_all_after(seq) {
            return Reading::FellBehind;
        }
        let unread = usize::try_from(self.last_seq - seq).unwrap_or(usize::MAX);
        let first = self.events.len().saturating_sub(unread);
        let mut events: Vec<_> = self.events.range(first..).take(MAX_READ_EVENTS).cloned().collect();
        let may_grow = events.last().is_some_and(|last| self.may_grow(last));
        if tail == Tail::MayGrow && may_grow {
            events.pop();
            if events.is_empty() {
                return Reading::Growing;
            }
        }
        let Some(last) = events.last() else { return Reading::Nothing };
        self.sealed = self.sealed.max(last.position.seq);
        Reading::Events(events)
    }

    pub(super) fn events_of_open_turns(&self) -> Vec<Arc<ObservedEvent>> {
        let is_open = |event: &&Arc<ObservedEvent>| {
            event.subject.turn.is_some_and(|turn| self.sessions.is_open(&event.subject.session, turn))
        };
        self.events.iter().filter(is_open).cloned().collect()
    }

    fn may_grow(&self, event: &ObservedEvent) -> bool {
        let seq = event.position.seq;
        seq == self.last_seq && seq > self.sealed && delta_text(&event.observation).is_some()
    }

    fn add(&mut self, at: UnixMillis, subject: Subject, observation: Observation) {
        let Some(observation) = self.grow_last(at, &subject, observation) else { return };
        self.last_seq += 1;
        let position = EventPosition { epoch: self.epoch, seq: self.last_seq };
        let event = ObservedEvent { position, at: at.0, subject, observation };
        self.bytes += size(&event);
        self.events.push_back(Arc::new(event));
        while self.events.len() > MAX_BUS_EVENTS || self.bytes > MAX_BUS_BYTES {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(size(&oldest));
        }
    }

    /// Appends a delta to the last event if that is a young delta of the same block; otherwise returns it.
    fn grow_last(
        &mut self,
        at: UnixMillis,
        subject: &Subject,
        observation: Observation,
    ) -> Option<Observation> {
        let last_seq = self.last_seq;
        let Some(more) = delta_text(&observation).filter(|_| last_seq > self.sealed) else {
            return Some(observation);
        };
        let Some(last) = self.events.back_mut().and_then(Arc::get_mut) else { return Some(observation) };
        let age = at.0.saturating_sub(last.at);
        let is_young = u128::try_from(age).is_ok_and(|age| age < COALESCE_WINDOW.as_millis());
        if !is_young || last.subject != *subject || !is_same_block(&last.observation, &observation) {
            return Some(observation);
        }
        match delta_text_mut(&mut last.observation) {
            Some(text) if text.len() + more.len() <= MAX_DELTA_BYTES => {
                text.push_str(more);
                self.bytes += more.len();
                None
            }
            Some(_) | None => Some(observation),
        }
    }
}

/// Cuts a delta that is too long and returns the rest.
fn split_long(observation: &mut Observation) -> Option<Observation> {
    let text = delta_text_mut(observation).filter(|text| text.len() > MAX_DELTA_BYTES)?;
    let tail = text.split_off(text.floor_char_boundary(MAX_DELTA_BYTES));
    let mut rest = observation.clone();
    if let Some(text) = delta_text_mut(&mut rest) {
        *text = tail;
    }
    Some(rest)
}

fn is_same_block(one: &Observation, other: &Observation) -> bool {
    match (one, other) {
        (Observation::TextDelta { block, .. }, Observation::TextDelta { block: other, .. })
        | (Observation::ReasoningDelta { block, .. }, Observation::ReasoningDelta { block: other, .. }) => {
            block == other
        }
        (Observation::InputDelta { call, .. }, Observation::InputDelta { call: other, .. }) => call == other,
        _ => false,
    }
}

fn delta_text(observation: &Observation) -> Option<&str> {
    let (Observation::TextDelta { text, .. }
    | Observation::ReasoningDelta { text, .. }
    | Observation::InputDelta { text, .. }) = observation
    else {
        return None;
    };
    Some(text)
}

fn delta_text_mut(observation: &mut Observation) -> Option<&mut String> {
    let (Observation::TextDelta { text, .. }
    | Observation::ReasoningDelta { text, .. }
    | Observation::InputDelta { text, .. }) = observation
    else {
        return None;
    };
    Some(text)
}

/// The bytes of an event. Growing adds exactly the bytes of the new text.
fn size(event: &ObservedEvent) -> usize {
    let optional = |text: Option<&str>| text.map_or(0, str::len);
    let lost = |losses: &[ObservedLoss]| -> usize {
        losses.iter().map(|loss| loss.place.len() + loss.reason.len()).sum()
    };
    let texts = match &event.observation {
        Observation::TextDelta { text, .. } | Observation::ReasoningDelta { text, .. } => text.len(),
        Observation::InputDelta { call, text } | Observation::Result { call, text, .. } => {
            call.as_str().len() + text.len()
        }
        Observation::TurnEnded(end) => lost(&end.losses) + optional(end.error.as_deref()),
        Observation::Losses { losses } => lost(losses),
        Observation::Running { call, note, .. } => call.as_str().len() + optional(note.as_deref()),
        Observation::Session(session) => session.model.len() + optional(session.title.as_deref()),
        Observation::TurnStarted(start) => start.model.len(),
        Observation::CallStarted { call, tool, .. } => call.as_str().len() + tool.as_str().len(),
        Observation::InputComplete { call } => call.as_str().len(),
        Observation::Asked { call, tool, .. } => {
            tool.as_str().len() + optional(call.as_ref().map(CallId::as_str))
        }
        Observation::Decided { call, by, .. } => by.len() + optional(call.as_ref().map(CallId::as_str)),
        Observation::Usage(_) => 0,
    };
    EVENT_BYTES + event.subject.session.as_str().len() + texts
}
