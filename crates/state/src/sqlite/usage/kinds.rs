//! The kinds of usage: what repeats from turn to turn, kept once, and the number that a row has for it.
//!
//! A kind belongs to a stretch of time and is forgotten with it. So no row that is kept can lose its kind, whichever
//! gateway prunes the file and whatever the others remember.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use sqlx::sqlite::SqliteConnection;

use crate::usage_batch::{UsageKind, UsageTurn};
use crate::{UnixMillis, UsageBatch};

/// Kinds remembered at most, of some hundred bytes each. Clients choose the names of models, so there may be any number.
pub(super) const MAX_REMEMBERED: usize = 1_024;

/// How long a stretch is; the migration says the same.
const STRETCH: Duration = Duration::from_hours(30 * 24);

/// The update changes nothing: without one, a kind that was there already would not say its id.
const KEEP: &str = "
    INSERT INTO usage_kinds (until_ms, caller, model, upstream, dialect, status)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (until_ms, caller, model, upstream, dialect, status) DO UPDATE SET status = excluded.status
    RETURNING id";

/// For after the rows of that time.
pub(super) const PRUNE: &str = "
    DELETE FROM usage_kinds WHERE id IN (SELECT id FROM usage_kinds WHERE until_ms < $1 LIMIT $2)";

/// What many turns of one stretch of time have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    until: Until,
    of: UsageKind,
}

/// The last moment of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Until(i64);

/// What a row has for its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KindId(pub(super) i64);

/// Ids of kinds that are in the database for certain: each comes from a committed transaction of this store.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct KnownKinds(Mutex<HashMap<Kind, KindId, RandomState>>);

/// Ids that are certain once the transaction they come from is committed.
#[derive(Debug, Default)]
pub(super) struct LearnedKinds(HashMap<Kind, KindId>);

/// The ids for the turns of one batch, inside one transaction. Each kind is looked up once, or once more whenever the
/// stretch changes from turn to turn, which it hardly ever does.
pub(super) struct BatchKinds<'a> {
    kinds: &'a [UsageKind],
    known: &'a KnownKinds,
    learned: LearnedKinds,
    /// What was looked up last for each of the kinds.
    found: Vec<Option<(Until, KindId)>>,
}

impl Until {
    /// The end of the stretch that holds this moment.
    fn of(at: UnixMillis) -> Self {
        let stretch = i64::try_from(STRETCH.as_millis()).unwrap_or(i64::MAX);
        Self(at.0.div_euclid(stretch).saturating_mul(stretch).saturating_add(stretch - 1))
    }
}

impl KnownKinds {
    fn id_of(&self, kind: &Kind) -> Option<KindId> {
        self.0.lock().get(kind).copied()
    }

    /// Takes what a transaction taught, after its commit.
    pub(super) fn remember(&self, learned: LearnedKinds) {
        let mut known = self.0.lock();
        for (kind, id) in learned.0 {
            if known.len() >= MAX_REMEMBERED {
                // Those in use are soon back.
                known.clear();
            }
            known.insert(kind, id);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Forgets all, for some may be gone.
    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }
}

impl<'a> BatchKinds<'a> {
    pub(super) fn new(batch: &'a UsageBatch, known: &'a KnownKinds) -> Self {
        let found = vec![None; batch.kinds().len()];
        Self { kinds: batch.kinds(), known, learned: LearnedKinds::default(), found }
    }

    /// The id of a turn's kind, which is added where it is missing.
    pub(super) async fn id_of(
        &mut self,
        turn: &UsageTurn,
        transaction: &mut SqliteConnection,
    ) -> Result<KindId, sqlx::Error> {
        let until = Until::of(turn.at);
        if let Some((same, id)) = self.found[turn.kind]
            && same == until
        {
            return Ok(id);
        }
        let kind = Kind { until, of: self.kinds[turn.kind].clone() };
        let id = match self.known.id_of(&kind) {
            Some(id) => id,
            None => self.learned.id_of(kind, transaction).await?,
        };
        self.found[turn.kind] = Some((until, id));
        Ok(id)
    }

    /// What the transaction taught.
    pub(super) fn learned(self) -> LearnedKinds {
        self.learned
    }
}

impl LearnedKinds {
    async fn id_of(&mut self, kind: Kind, transaction: &mut SqliteConnection) -> Result<KindId, sqlx::Error> {
        if let Some(id) = self.0.get(&kind) {
            return Ok(*id);
        }
        let UsageKind { caller, model, upstream, dialect, status } = &kind.of;
        let id = sqlx::query_scalar(KEEP)
            .bind(kind.until.0)
            .bind(caller.as_str())
            .bind(model.as_str())
            .bind(upstream.as_str())
            .bind(dialect.as_str())
            .bind(status)
            .fetch_one(transaction)
            .await
            .map(KindId)?;
        self.0.insert(kind, id);
        Ok(id)
    }
}
