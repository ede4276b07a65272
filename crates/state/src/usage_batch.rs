//! Usage records on their way to a store: what repeats from turn to turn stands once, and a turn is numbers only. So a
//! batch is small, is cheap to add to, and has hardly anything to free when another thread is done with it.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::time::Duration;

use foldhash::fast::RandomState;
use uuid::Uuid;

use crate::{CallerScope, Label, TokenCount, UnixMillis, UsageRecord};

/// Usage records in the order they came, held in less room than a list of them.
#[derive(Debug, Clone, Default)]
pub struct UsageBatch {
    turns: Vec<UsageTurn>,
    /// Each once, in the order they first came.
    kinds: Vec<UsageKind>,
    places: HashMap<UsageKind, usize, RandomState>,
}

/// What many turns have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct UsageKind {
    pub(crate) caller: CallerScope,
    pub(crate) model: Label,
    pub(crate) upstream: Label,
    pub(crate) dialect: Label,
    pub(crate) status: u16,
}

/// The rest of a record: 64 bytes, so that what waits for a slow store takes little.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageTurn {
    pub(crate) turn_id: Uuid,
    pub(crate) at: UnixMillis,
    /// Its place among the kinds of its batch.
    pub(crate) kind: usize,
    pub(crate) input: TokenCount,
    pub(crate) cache_read: TokenCount,
    pub(crate) cache_write: TokenCount,
    pub(crate) output: TokenCount,
    pub(crate) duration: Millis,
    pub(crate) first_event: Option<Millis>,
}

/// A duration in whole milliseconds, up to three hundred million years. One more than that is kept, so that having none
/// takes no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Millis(NonZeroU64);

impl UsageBatch {
    /// Adds a record.
    pub fn push(&mut self, record: UsageRecord) {
        let UsageRecord {
            turn_id,
            at,
            caller,
            model,
            upstream,
            dialect,
            status,
            input,
            cache_read,
            cache_write,
            output,
            duration,
            first_event,
        } = record;
        let kind = self.place_of(UsageKind { caller, model, upstream, dialect, status });
        self.turns.push(UsageTurn {
            turn_id,
            at,
            kind,
            input,
            cache_read,
            cache_write,
            output,
            duration: Millis::of(duration),
            first_event: first_event.map(Millis::of),
        });
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Forgets all records and keeps the room they took for others.
    pub fn clear(&mut self) {
        self.turns.clear();
        self.kinds.clear();
        self.places.clear();
    }

    /// The records as they were pushed, but for durations, which are kept in milliseconds.
    pub fn records(&self) -> impl Iterator<Item = UsageRecord> {
        self.turns.iter().map(|turn| {
            let UsageTurn {
                turn_id,
                at,
                kind,
                input,
                cache_read,
                cache_write,
                output,
                duration,
                first_event,
            } = *turn;
            let UsageKind { caller, model, upstream, dialect, status } = self.kinds[kind].clone();
            UsageRecord {
                turn_id,
                at,
                caller,
                model,
                upstream,
                dialect,
                status,
                input,
                cache_read,
                cache_write,
                output,
                duration: duration.duration(),
                first_event: first_event.map(Millis::duration),
            }
        })
    }

    pub(crate) fn turns(&self) -> &[UsageTurn] {
        &self.turns
    }

    pub(crate) fn kinds(&self) -> &[UsageKind] {
        &self.kinds
    }

    fn place_of(&mut self, kind: UsageKind) -> usize {
        // Nearly always the same as before it, and then nothing need be hashed.
        if let Some(before) = self.turns.last()
            && self.kinds.get(before.kind) == Some(&kind)
        {
            return before.kind;
        }
        if let Some(place) = self.places.get(&kind) {
            return *place;
        }
        let place = self.kinds.len();
        self.kinds.push(kind.clone());
        self.places.insert(kind, place);
        place
    }
}

impl FromIterator<UsageRecord> for UsageBatch {
    fn from_iter<Records: IntoIterator<Item = UsageRecord>>(records: Records) -> Self {
        let mut batch = Self::default();
        records.into_iter().for_each(|record| batch.push(record));
        batch
    }
}

impl Millis {
    fn of(duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(NonZeroU64::MIN.saturating_add(millis.unsigned_abs()))
    }

    /// The number, as a database has it.
    pub(crate) fn get(self) -> i64 {
        (self.0.get() - 1).cast_signed()
    }

    fn duration(self) -> Duration {
        Duration::from_millis(self.0.get() - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::conformance::record;

    /// Few different names, so that some records are of one kind and some are not.
    fn records() -> impl Strategy<Value = UsageRecord> {
        let names = (0..3_u8, 0..3_u8, 0..2_u8, 0..2_u8, 200..202_u16);
        let counts = any::<[u32; 4]>();
        let times = (any::<i64>(), 0..=i64::MAX.unsigned_abs(), option::of(0..=i64::MAX.unsigned_abs()));
        (any::<u128>(), names, counts, times).prop_map(|(turn, names, counts, times)| {
            let (caller, model, upstream, dialect, status) = names;
            let [input, cache_read, cache_write, output] =
                counts.map(|count| TokenCount::saturating(count.into()));
            let (at, duration, first_event) = times;
            UsageRecord {
                turn_id: Uuid::from_u128(turn),
                at: UnixMillis(at),
                caller: CallerScope::new(caller.to_string()),
                model: Label::new(model.to_string()),
                upstream: Label::new(upstream.to_string()),
                dialect: Label::new(dialect.to_string()),
                status,
                input,
                cache_read,
                cache_write,
                output,
                duration: Duration::from_millis(duration),
                first_event: first_event.map(Duration::from_millis),
            }
        })
    }

    proptest! {
        #[test]
        fn what_was_pushed_comes_back(pushed in prop::collection::vec(records(), 0..60)) {
            let mut batch: UsageBatch = pushed.iter().cloned().collect();
            for _ in 0..2 {
                prop_assert_eq!(batch.len(), pushed.len());
                prop_assert_eq!(batch.is_empty(), pushed.is_empty());
                prop_assert_eq!(batch.records().collect::<Vec<_>>(), pushed.clone());
                for (place, kind) in batch.kinds().iter().enumerate() {
                    prop_assert!(!batch.kinds()[..place].contains(kind), "{:?} stands there twice", kind);
                }
                // The room of a batch is used again: nothing of what it held before may show.
                batch.clear();
                prop_assert!(batch.is_empty() && batch.kinds().is_empty());
                pushed.iter().cloned().for_each(|record| batch.push(record));
            }
        }
    }

    #[test]
    fn kinds_that_differ_in_anything_are_told_apart_and_each_stands_once() {
        let other = || Label::new("other");
        let different = [
            record(1, 1),
            UsageRecord { caller: CallerScope::new("bob"), ..record(2, 1) },
            UsageRecord { model: other(), ..record(3, 1) },
            UsageRecord { upstream: other(), ..record(4, 1) },
            UsageRecord { dialect: other(), ..record(5, 1) },
            UsageRecord { status: 201, ..record(6, 1) },
        ];
        let batch: UsageBatch = different.iter().chain(&different).cloned().collect();
        let places: Vec<usize> = batch.turns().iter().map(|turn| turn.kind).collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
        assert_eq!(batch.kinds().len(), different.len());
    }

    #[test]
    fn a_turn_is_small() {
        assert_eq!(size_of::<UsageTurn>(), 64);
    }

    #[test]
    fn durations_are_kept_in_milliseconds_and_have_an_end() {
        for (duration, millis) in [
            (Duration::ZERO, 0),
            (Duration::from_micros(1_999), 1),
            (Duration::from_millis(i64::MAX.unsigned_abs()), i64::MAX),
            (Duration::MAX, i64::MAX),
        ] {
            assert_eq!(Millis::of(duration).get(), millis, "{duration:?}");
        }
    }
}
