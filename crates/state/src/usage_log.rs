//! Usage on its way to the store: a bounded queue and one worker that writes many records at once, so that
//! a request never waits for a disk.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use crate::{UsageBatch, UsageRecord, UsageStore};

/// Records that may wait for the worker: some seconds of a busy gateway, and less than 1 MiB.
pub const QUEUE_RECORDS: usize = 4_096;

/// Records written in one transaction at most.
pub const BATCH_RECORDS: usize = 256;

/// The longest a record waits for others before it is written.
pub const FLUSH_EVERY: Duration = Duration::from_millis(250);

/// How often the worker looks for records while a batch fills: seldom, since each look wakes a thread. The queue holds
/// more than comes in the meantime, and a shutdown waits no longer than this.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Tries to write one batch, [`FLUSH_EVERY`] apart, before it is given up.
const WRITE_ATTEMPTS: u32 = 4;

/// Takes usage records from requests. Clones share one queue.
#[derive(Debug, Clone)]
pub struct UsageLog {
    mailbox: mpsc::Sender<Mail>,
    losses: Arc<Losses>,
}

/// Writes what a [`UsageLog`] takes. Nothing is written until [`UsageLogWorker::run`] is.
pub struct UsageLogWorker {
    mailbox: mpsc::Receiver<Mail>,
    losses: Arc<Losses>,
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
        let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
        let losses = Arc::new(Losses::default());
        let worker = UsageLogWorker { mailbox: receiver, losses: Arc::clone(&losses), store };
        (Self { mailbox: sender, losses }, worker)
    }

    /// Hands over a record without waiting. If the queue is full, or the worker has ended, the record is
    /// dropped, counted and reported in the log.
    pub fn try_record(&self, record: UsageRecord) {
        match self.mailbox.try_send(Mail::Record(record)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.losses.add_one("the queue is full: the store is too slow"),
            Err(TrySendError::Closed(_)) => self.losses.add_one("the worker that writes usage has ended"),
        }
    }

    /// How many records were lost since the start, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.losses.total.load(Ordering::Relaxed)
    }

    /// Ends the worker after it has written everything recorded before this call.
    ///
    /// The worker must be running; a store that fails is tried once more for each batch and not waited for.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        let (reply, lost) = oneshot::channel();
        self.mailbox.send(Mail::Shutdown(reply)).await.map_err(|_closed| ShutdownError::WorkerGone)?;
        match lost.await {
            Ok(0) => Ok(()),
            Ok(records) => Err(ShutdownError::Unwritten { records }),
            Err(_gone) => Err(ShutdownError::WorkerGone),
        }
    }
}

impl UsageLogWorker {
    /// Writes records as they come, until shutdown or until no [`UsageLog`] is left.
    pub async fn run(mut self) -> WorkerEnd {
        let mut batch = UsageBatch::default();
        loop {
            match self.fill(&mut batch).await {
                ControlFlow::Continue(()) => {
                    self.write(&mut batch, WRITE_ATTEMPTS).await;
                }
                ControlFlow::Break(End::Shutdown(reply)) => return self.finish(batch, reply).await,
                ControlFlow::Break(End::HandlesGone) => {
                    self.write(&mut batch, 1).await;
                    return WorkerEnd::HandlesGone;
                }
            }
        }
    }

    /// Waits for a first record, then looks for more now and then until the batch is full or old enough. Looking,
    /// rather than waiting for each, spares every request the cost of waking this task on another thread.
    async fn fill(&mut self, batch: &mut UsageBatch) -> ControlFlow<End> {
        take(self.mailbox.recv().await, batch)?;
        let old_enough = Instant::now() + FLUSH_EVERY;
        loop {
            while batch.len() < BATCH_RECORDS {
                match self.mailbox.try_recv() {
                    Ok(mail) => take(Some(mail), batch)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => take(None, batch)?,
                }
            }
            if batch.len() == BATCH_RECORDS || Instant::now() >= old_enough {
                return ControlFlow::Continue(());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Takes no more, writes what is there, and answers whoever asked for the end.
    async fn finish(mut self, mut batch: UsageBatch, reply: oneshot::Sender<u64>) -> WorkerEnd {
        self.mailbox.close();
        let mut replies = vec![reply];
        let mut lost = 0;
        while let Some(mail) = self.mailbox.recv().await {
            match mail {
                Mail::Record(record) => batch.push(record),
                Mail::Shutdown(reply) => replies.push(reply),
            }
            if batch.len() == BATCH_RECORDS {
                lost += self.write(&mut batch, 1).await;
            }
        }
        lost += self.write(&mut batch, 1).await;
        for reply in replies {
            if reply.send(lost).is_err() {
                tracing::debug!("nobody waits any more for the last usage records to be written");
            }
        }
        WorkerEnd::Shutdown
    }

    /// Writes and empties the batch; says how many records were lost because the store kept failing.
    async fn write(&self, batch: &mut UsageBatch, attempts: u32) -> u64 {
        let lost = self.try_to_write(batch, attempts).await;
        batch.clear();
        self.losses.report();
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
        self.losses.add(lost, "the store could not write them");
        lost
    }
}

#[derive(Debug)]
enum Mail {
    Record(UsageRecord),
    /// End, and send back how many records could not be written.
    Shutdown(oneshot::Sender<u64>),
}

/// Why the worker takes no more mail.
enum End {
    Shutdown(oneshot::Sender<u64>),
    HandlesGone,
}

fn take(mail: Option<Mail>, batch: &mut UsageBatch) -> ControlFlow<End> {
    match mail {
        Some(Mail::Record(record)) => {
            batch.push(record);
            ControlFlow::Continue(())
        }
        Some(Mail::Shutdown(reply)) => ControlFlow::Break(End::Shutdown(reply)),
        None => ControlFlow::Break(End::HandlesGone),
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
    fn add_one(&self, reason: &str) {
        self.add(1, reason);
    }

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
