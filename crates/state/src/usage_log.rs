//! The queue of usage records: requests add to it without waiting, and one worker writes them to the store in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

use crate::{UsageRecord, UsageStore};

/// Records that may wait for the worker: a second or two of a busy gateway, and about 3 MiB.
pub const QUEUE_RECORDS: usize = 16_384;

/// How long the worker collects records before it writes them.
pub const FLUSH_EVERY: Duration = Duration::from_millis(250);

/// Attempts to write one batch, [`FLUSH_EVERY`] apart, before it is dropped.
const WRITE_ATTEMPTS: u32 = 4;

/// Takes usage records from requests. Clones share one queue.
#[derive(Debug, Clone)]
pub struct UsageLog {
    records: mpsc::Sender<UsageRecord>,
    stop: Arc<Notify>,
    unwritten: watch::Receiver<Option<u64>>,
    drops: Arc<DropCounter>,
}

/// Writes the records of a [`UsageLog`] to the store, once [`UsageLogWorker::run`] is polled.
pub struct UsageLogWorker {
    records: mpsc::Receiver<UsageRecord>,
    stop: Arc<Notify>,
    /// Set when the worker ends: how many of the last records could not be written.
    unwritten: watch::Sender<Option<u64>>,
    drops: Arc<DropCounter>,
    store: Arc<dyn UsageStore>,
}

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// [`UsageLog::shutdown`] was called.
    Shutdown,
    /// Every [`UsageLog`] was dropped.
    HandlesGone,
}

/// Why a shutdown could not write everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ShutdownError {
    /// The worker ended before: an earlier shutdown, or its task was cancelled.
    #[error("flushing usage: its worker has already ended")]
    WorkerGone,
    /// The store refused the last records; the log says why.
    #[error("flushing usage: {records} records could not be written; the log says why")]
    Unwritten {
        /// How many were lost.
        records: u64,
    },
}

impl UsageLog {
    /// Creates a log and the worker that writes it to the store; the caller runs the worker as a task.
    pub fn new(store: Arc<dyn UsageStore>) -> (Self, UsageLogWorker) {
        let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
        let (unwritten_sender, unwritten) = watch::channel(None);
        let stop = Arc::new(Notify::new());
        let drops = Arc::new(DropCounter::default());
        let worker = UsageLogWorker {
            records: receiver,
            stop: Arc::clone(&stop),
            unwritten: unwritten_sender,
            drops: Arc::clone(&drops),
            store,
        };
        (Self { records: sender, stop, unwritten, drops }, worker)
    }

    /// Queues a record without waiting. If the queue is full or the worker has ended, the record is dropped, counted
    /// and reported in the log.
    pub fn try_record(&self, record: UsageRecord) {
        match self.records.try_send(record) {
            Ok(()) => {}
            Err(TrySendError::Full(_record)) => self.drops.add(1, "the queue is full: the store is too slow"),
            Err(TrySendError::Closed(_record)) => self.drops.add(1, "the worker that writes usage has ended"),
        }
    }

    /// How many records were dropped since the start, for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.total.load(Ordering::Relaxed)
    }

    /// Ends the worker after it has written everything recorded before this call.
    ///
    /// The worker must be running. The last batch is tried once, however the store answers.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        if self.records.is_closed() {
            return Err(ShutdownError::WorkerGone);
        }
        self.stop.notify_one();
        let mut unwritten = self.unwritten.clone();
        match unwritten.wait_for(Option::is_some).await.as_deref() {
            Ok(None | Some(0)) => Ok(()),
            Ok(Some(records)) => Err(ShutdownError::Unwritten { records: *records }),
            Err(_worker_dropped) => Err(ShutdownError::WorkerGone),
        }
    }
}

impl UsageLogWorker {
    /// Writes records until shutdown or until no [`UsageLog`] is left.
    pub async fn run(mut self) -> WorkerEnd {
        let mut batch = Vec::new();
        let end = loop {
            match self.collect(&mut batch).await {
                None => self.write(&mut batch, WRITE_ATTEMPTS).await,
                Some(end) => break end,
            };
        };
        self.records.close();
        self.take_queued(&mut batch);
        let unwritten = self.write(&mut batch, 1).await;
        self.unwritten.send_replace(Some(unwritten));
        end
    }

    /// Waits for a record and then for [`FLUSH_EVERY`], so that later records do not wake it. Returns why the worker is to
    /// end, if it is.
    async fn collect(&mut self, batch: &mut Vec<UsageRecord>) -> Option<WorkerEnd> {
        tokio::select! {
            biased;
            () = self.stop.notified() => return Some(WorkerEnd::Shutdown),
            received = self.records.recv() => match received {
                Some(record) => batch.push(record),
                None => return Some(WorkerEnd::HandlesGone),
            },
        }
        tokio::select! {
            biased;
            () = self.stop.notified() => return Some(WorkerEnd::Shutdown),
            () = sleep(FLUSH_EVERY) => {}
        }
        self.take_queued(batch);
        None
    }

    fn take_queued(&mut self, batch: &mut Vec<UsageRecord>) {
        let queued = self.records.len();
        batch.extend((0..queued).map_while(|_| self.records.try_recv().ok()));
    }

    /// Writes and clears the batch; returns how many records were dropped because the store kept failing.
    async fn write(&self, batch: &mut Vec<UsageRecord>, attempts: u32) -> u64 {
        let dropped = self.try_to_write(batch, attempts).await;
        batch.clear();
        self.drops.report();
        dropped
    }

    async fn try_to_write(&self, batch: &[UsageRecord], attempts: u32) -> u64 {
        if batch.is_empty() {
            return 0;
        }
        for attempt in 1..=attempts {
            if attempt > 1 {
                sleep(FLUSH_EVERY).await;
            }
            // Recording is idempotent, so a failed batch can be sent again.
            match self.store.record_usage(batch).await {
                Ok(()) => return 0,
                Err(error) => {
                    tracing::warn!(
                        %error,
                        source = ?std::error::Error::source(&error),
                        attempt,
                        attempts,
                        records = batch.len(),
                        "usage records could not be written"
                    );
                }
            }
        }
        let dropped = batch.len() as u64;
        self.drops.add(dropped, "the store could not write them");
        dropped
    }
}

/// Counts dropped records. The log gets the first drop at once and the others as one number per write, so that an
/// overload does not flood the log as well.
#[derive(Debug, Default)]
struct DropCounter {
    total: AtomicU64,
    unreported: AtomicU64,
}

impl DropCounter {
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
