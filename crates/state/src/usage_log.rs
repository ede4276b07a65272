//! Usage on its way to the store: a bounded batch that requests add to, and one worker that writes it whole, so that
//! a request never waits for a disk.

mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use self::waiting::{HALF_FULL, Taken, Waiting};
use crate::{UsageBatch, UsageRecord, UsageStore};

/// Records that may wait for the worker: some tenths of a second of a busy gateway, and 256 KiB beside their names.
/// While they are being written, as many others may wait.
pub const QUEUE_RECORDS: usize = 4_096;

/// The longest a record waits for others before it is written.
pub const FLUSH_EVERY: Duration = Duration::from_millis(250);

/// Tries to write one batch, [`FLUSH_EVERY`] apart, before it is given up.
const WRITE_ATTEMPTS: u32 = 4;

/// Takes usage records from requests. Clones share one queue.
#[derive(Debug, Clone)]
pub struct UsageLog(Arc<Handle>);

/// Writes what a [`UsageLog`] takes. Nothing is written until [`UsageLogWorker::run`] is.
pub struct UsageLogWorker {
    queue: Arc<Queue>,
    /// Set at the end: how many of the last records could not be written.
    lost: watch::Sender<Option<u64>>,
    store: Arc<dyn UsageStore>,
}

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// [`UsageLog::shutdown`] was called.
    Shutdown,
    /// Every [`UsageLog`] was dropped, so no record can come any more.
    HandlesGone,
}

/// Why a shutdown could not write everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ShutdownError {
    /// The worker ended before: an earlier shutdown, or its task was cancelled.
    #[error("flushing usage: the worker that writes it had ended already")]
    WorkerGone,
    /// The store refused the last records; the log says why.
    #[error("flushing usage: {records} records could not be written; the log says why")]
    Unwritten {
        /// How many were lost.
        records: u64,
    },
}

impl UsageLog {
    /// A log and the worker that writes it to the store; the caller runs the worker as a task.
    pub fn new(store: Arc<dyn UsageStore>) -> (Self, UsageLogWorker) {
        let queue = Arc::new(Queue::default());
        let (lost, lost_at_the_end) = watch::channel(None);
        let worker = UsageLogWorker { queue: Arc::clone(&queue), lost, store };
        (Self(Arc::new(Handle { queue, lost_at_the_end })), worker)
    }

    /// Hands over a record without waiting. If the queue is full, or the worker has ended, the record is
    /// dropped, counted and reported in the log.
    pub fn try_record(&self, record: UsageRecord) {
        let Queue { waiting, wake, losses } = &*self.0.queue;
        let taken = waiting.lock().take(record);
        match taken {
            Taken::Silently => {}
            Taken::Noteworthy => wake.notify_one(),
            Taken::Full => losses.add(1, "the queue is full: the store is too slow"),
            Taken::WorkerEnded => losses.add(1, "the worker that writes usage has ended"),
        }
    }

    /// How many records were lost since the start, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.0.queue.losses.total.load(Ordering::Relaxed)
    }

    /// Ends the worker after it has written everything recorded before this call.
    ///
    /// The worker must be running; a store that fails is tried once and not waited for.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        if self.0.queue.waiting.lock().has_ended() {
            return Err(ShutdownError::WorkerGone);
        }
        self.0.queue.ask_for_the_end(WorkerEnd::Shutdown);
        let mut lost = self.0.lost_at_the_end.clone();
        match lost.wait_for(Option::is_some).await.as_deref() {
            Ok(None | Some(0)) => Ok(()),
            Ok(Some(records)) => Err(ShutdownError::Unwritten { records: *records }),
            Err(_gone) => Err(ShutdownError::WorkerGone),
        }
    }
}

impl UsageLogWorker {
    /// Writes records as they come, until shutdown or until no [`UsageLog`] is left.
    pub async fn run(self) -> WorkerEnd {
        let mut batch = UsageBatch::default();
        loop {
            self.wait_for_a_batch().await;
            let end = self.queue.waiting.lock().swap(&mut batch);
            let Some(end) = end else {
                self.write(&mut batch, WRITE_ATTEMPTS).await;
                continue;
            };
            let lost = self.write(&mut batch, 1).await;
            self.lost.send_replace(Some(lost));
            return end;
        }
    }

    /// Waits for a first record, then until the batch is large or old enough. No record in between wakes this task,
    /// which would cost the request that brings it more than everything else about its usage.
    async fn wait_for_a_batch(&self) {
        self.wait_for(1).await;
        tokio::select! {
            () = self.wait_for(HALF_FULL) => {}
            () = sleep(FLUSH_EVERY) => {}
        }
    }

    /// Waits for so many records, or for the end.
    async fn wait_for(&self, records: usize) {
        while !self.queue.waiting.lock().holds(records) {
            self.queue.wake.notified().await;
        }
    }

    /// Writes and empties the batch; says how many records were lost because the store kept failing.
    async fn write(&self, batch: &mut UsageBatch, attempts: u32) -> u64 {
        let lost = self.try_to_write(batch, attempts).await;
        batch.clear();
        self.queue.losses.report();
        lost
    }

    async fn try_to_write(&self, batch: &UsageBatch, attempts: u32) -> u64 {
        if batch.is_empty() {
            return 0;
        }
        for attempt in 1..=attempts {
            if attempt > 1 {
                sleep(FLUSH_EVERY).await;
            }
            // A record counts once however often it is sent, so a failed batch may simply be sent again.
            match self.store.record_usage(batch).await {
                Ok(()) => return 0,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        attempt,
                        attempts,
                        records = batch.len(),
                        "usage records could not be written"
                    );
                }
            }
        }
        let lost = batch.len() as u64;
        self.queue.losses.add(lost, "the store could not write them");
        lost
    }
}

impl Drop for UsageLogWorker {
    fn drop(&mut self) {
        self.queue.waiting.lock().end();
    }
}

/// What all clones of a [`UsageLog`] share: the worker ends when it goes.
#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    lost_at_the_end: watch::Receiver<Option<u64>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.ask_for_the_end(WorkerEnd::HandlesGone);
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    wake: Notify,
    losses: Losses,
}

impl Queue {
    fn ask_for_the_end(&self, why: WorkerEnd) {
        self.waiting.lock().ask_for_the_end(why);
        self.wake.notify_one();
    }
}

/// Counts what is lost. The log gets the first loss at once and the rest as a number per write, so that an
/// overload does not become a flood of lines as well.
#[derive(Debug, Default)]
struct Losses {
    total: AtomicU64,
    unreported: AtomicU64,
}

impl Losses {
    fn add(&self, records: u64, reason: &str) {
        self.total.fetch_add(records, Ordering::Relaxed);
        if self.unreported.fetch_add(records, Ordering::Relaxed) == 0 {
            tracing::warn!(records, reason, "usage records are being dropped");
        }
    }

    fn report(&self) {
        let records = self.unreported.swap(0, Ordering::Relaxed);
        if records > 0 {
            let total = self.total.load(Ordering::Relaxed);
            tracing::warn!(records, total, "usage records were dropped since the last write");
        }
    }
}

#[cfg(test)]
mod tests;
