//! What waits for the worker: one batch that everybody adds to and the worker takes whole, and whether it may go on.

use std::mem;

use super::{QUEUE_RECORDS, WorkerEnd};
use crate::{UsageBatch, UsageRecord};

/// So many records are written without waiting for more, while there is as much room left for those that come meanwhile.
pub(super) const HALF_FULL: usize = QUEUE_RECORDS / 2;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    batch: UsageBatch,
    stage: Stage,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is the first, or makes the batch half full: the worker should know.
    Noteworthy,
    /// It waits with the others.
    Silently,
    /// There is no room: it is lost.
    Full,
    /// Nobody would write it: it is lost.
    WorkerEnded,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Running,
    /// The worker is to write what waits and end.
    Ending(WorkerEnd),
    /// The worker has taken all it will ever take.
    Ended,
}

impl Waiting {
    /// Takes a record from a request.
    pub(super) fn take(&mut self, record: UsageRecord) -> Taken {
        if self.has_ended() {
            return Taken::WorkerEnded;
        }
        if self.batch.len() >= QUEUE_RECORDS {
            return Taken::Full;
        }
        self.batch.push(record);
        match self.batch.len() {
            1 | HALF_FULL => Taken::Noteworthy,
            _ => Taken::Silently,
        }
    }

    /// Gives the worker what waits and takes its empty batch for what comes next, so that no record is moved and no
    /// room is asked for. Says whether that was the last.
    pub(super) fn swap(&mut self, empty: &mut UsageBatch) -> Option<WorkerEnd> {
        mem::swap(&mut self.batch, empty);
        let Stage::Ending(end) = self.stage else { return None };
        self.stage = Stage::Ended;
        Some(end)
    }

    /// Whether the worker should stop waiting: there are so many records, or none will come any more.
    pub(super) fn holds(&self, records: usize) -> bool {
        self.stage != Stage::Running || self.batch.len() >= records
    }

    /// Asks the worker to end; the first reason stays.
    pub(super) fn ask_for_the_end(&mut self, why: WorkerEnd) {
        if self.stage == Stage::Running {
            self.stage = Stage::Ending(why);
        }
    }

    /// For when the worker is no more, however it came to that.
    pub(super) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stage == Stage::Ended
    }
}
