//! The bus of observed events: one bounded ring in memory that everybody who watches reads at their own pace.
//!
//! ```text
//!  publish ─► ring of the last events ◄── Subscription::next   (a position in the ring, no queue of its own)
//!               └ sessions ────────────── snapshot             (where to start, and what is open there)
//! ```
//!
//! The publisher never waits. The ring is the queue of every subscriber: one that falls out of it is closed, and the
//! client resumes or starts over. An event does not change once somebody has read it.

mod ring;
mod sessions;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_model::observed::{Epoch, EventPosition, Observation, ObservedEvent, Subject};

use self::ring::{Reading, Ring, Tail};
use crate::UnixMillis;

pub use self::ring::{MAX_BUS_BYTES, MAX_BUS_EVENTS, MAX_DELTA_BYTES};
pub use self::sessions::{MAX_SESSIONS, SessionRow};

/// How long a delta may grow before it is passed on: short for an eye, and it keeps a ring of minutes.
pub const COALESCE_WINDOW: Duration = Duration::from_millis(30);

/// How many may watch at once. Each costs one connection and no memory here.
pub const MAX_SUBSCRIBERS: usize = 64;

/// The bus of one gateway.
#[derive(Debug)]
pub struct Bus {
    epoch: Epoch,
    ring: Mutex<Ring>,
    changed: Notify,
    subscribers: AtomicUsize,
    dropped: AtomicU64,
}

impl Bus {
    /// An empty bus with a random epoch.
    pub fn new() -> Arc<Self> {
        // Random keys need no further input. An epoch is no secret.
        Self::with_epoch(Epoch::new(RandomState::new().build_hasher().finish()))
    }

    fn with_epoch(epoch: Epoch) -> Arc<Self> {
        Arc::new(Self {
            epoch,
            ring: Mutex::new(Ring::new(epoch)),
            changed: Notify::new(),
            subscribers: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
        })
    }

    /// Adds an event. A `session` event that says nothing new is left out, and the bus sets its state.
    pub fn publish(&self, at: UnixMillis, subject: Subject, observation: Observation) {
        self.ring.lock().publish(at, subject, observation);
        self.changed.notify_waiters();
    }

    /// Watches the events after `from`, or from now on.
    pub fn subscribe(self: &Arc<Self>, from: Option<EventPosition>) -> Result<Joined, TooManySubscribers> {
        let slot = SubscriberSlot::take(self)?;
        let mut ring = self.ring.lock();
        let resumed = from.filter(|from| from.epoch == self.epoch && ring.has_all_after(from.seq));
        let after = resumed.map_or_else(|| ring.seal(), |from| from.seq);
        drop(ring);
        let subscription = Subscription { slot, after };
        Ok(if from.is_some() && resumed.is_none() {
            Joined::Reset(subscription)
        } else {
            Joined::Continued(subscription)
        })
    }

    /// The sessions now, and the position up to which they are known.
    pub fn snapshot(&self) -> BusSnapshot {
        let mut ring = self.ring.lock();
        let seq = ring.seal();
        let sessions = ring.sessions().rows();
        let open = ring.events_of_open_turns();
        BusSnapshot { position: EventPosition { epoch: self.epoch, seq }, sessions, open }
    }

    /// True while somebody watches.
    pub fn is_watched(&self) -> bool {
        self.subscribers() > 0
    }

    /// How many watch now.
    pub fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }

    /// How many subscribers were closed because they fell behind.
    pub fn dropped_subscribers(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// How many events were published.
    pub fn published(&self) -> u64 {
        self.ring.lock().published()
    }
}

/// The result of subscribing.
#[derive(Debug)]
pub enum Joined {
    /// No event since the given position is missing.
    Continued(Subscription),
    /// The position is of an earlier run or no longer in the ring: take a snapshot. Events follow from now on.
    Reset(Subscription),
}

/// Too many watch already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_SUBSCRIBERS} clients watch the events already: close one of them")]
pub struct TooManySubscribers;

/// What is known at a position.
#[derive(Clone, Debug)]
pub struct BusSnapshot {
    /// The last event that it includes. Events up to here are part of the snapshot.
    pub position: EventPosition,
    /// The sessions, the most recent first.
    pub sessions: Vec<SessionRow>,
    /// The events of turns that have not ended, as far as they are in the ring.
    pub open: Vec<Arc<ObservedEvent>>,
}

/// One subscriber. It is a position in the ring, so it costs the publisher nothing.
#[derive(Debug)]
pub struct Subscription {
    slot: SubscriberSlot,
    after: u64,
}

impl Subscription {
    /// The last event before those that follow.
    pub fn position(&self) -> EventPosition {
        EventPosition { epoch: self.slot.0.epoch, seq: self.after }
    }

    /// The next events, in order; `None` once this subscriber has fallen out of the ring. Cancel safe.
    pub async fn next(&mut self) -> Option<Vec<Arc<ObservedEvent>>> {
        let bus = Arc::clone(&self.slot.0);
        let mut tail = Tail::MayGrow;
        loop {
            // Created before reading, so that an event in between wakes it.
            let changed = bus.changed.notified();
            let reading = bus.ring.lock().read_after(self.after, tail);
            match reading {
                Reading::Events(events) => {
                    self.after = events.last().map_or(self.after, |event| event.position.seq);
                    return Some(events);
                }
                Reading::FellBehind => {
                    bus.dropped.fetch_add(1, Ordering::Relaxed);
                    return None;
                }
                Reading::Growing => {
                    tokio::time::sleep(COALESCE_WINDOW).await;
                    tail = Tail::Complete;
                }
                Reading::Nothing => changed.await,
            }
        }
    }
}

/// Counts a subscriber until it is dropped.
#[derive(Debug)]
struct SubscriberSlot(Arc<Bus>);

impl SubscriberSlot {
    fn take(bus: &Arc<Bus>) -> Result<Self, TooManySubscribers> {
        let before = bus.subscribers.fetch_add(1, Ordering::Relaxed);
        let slot = Self(Arc::clone(bus));
        if before < MAX_SUBSCRIBERS { Ok(slot) } else { Err(TooManySubscribers) }
    }
}

impl Drop for SubscriberSlot {
    fn drop(&mut self) {
        self.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}
