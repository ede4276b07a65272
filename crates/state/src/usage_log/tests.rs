//! The usage log under paused time: when it writes, what it drops and how it ends.

use futures_util::future::{BoxFuture, join};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};

use super::*;
use crate::conformance::record;
use crate::{StoreError, UnixMillis, UsageGroup, UsageTotals};

/// Records the size of each batch; the first `failures` writes fail.
struct BatchStore {
    batches: Mutex<Vec<usize>>,
    failures: Mutex<usize>,
    written: mpsc::Sender<()>,
}

impl BatchStore {
    fn failing(failures: usize) -> (Arc<Self>, mpsc::Receiver<()>) {
        let (written, writes) = mpsc::channel(QUEUE_RECORDS);
        let store = Self { batches: Mutex::default(), failures: Mutex::new(failures), written };
        (Arc::new(store), writes)
    }

    fn batches(&self) -> Vec<usize> {
        self.batches.lock().clone()
    }

    fn failures_left(&self) -> usize {
        *self.failures.lock()
    }
}

impl UsageStore for BatchStore {
    fn record_usage<'a>(&'a self, batch: &'a [UsageRecord]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut failures = self.failures.lock();
            if *failures > 0 {
                *failures -= 1;
                let source = Box::new(std::io::Error::other("scripted"));
                return Err(StoreError::Full {
                    operation: "recording usage",
                    location: "a test".into(),
                    source,
                });
            }
            self.batches.lock().push(batch.len());
            self.written.try_send(()).unwrap();
            Ok(())
        })
    }

    fn usage_summary(
        &self,
        _since: UnixMillis,
        _by: UsageGroup,
    ) -> BoxFuture<'_, Result<Vec<UsageTotals>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn prune_usage(&self, _older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async { Ok(0) })
    }
}

fn log_records(log: &UsageLog, count: usize) {
    for number in 0..count {
        log.try_record(record(number as u128, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn records_of_one_interval_are_written_together() {
    let (store, mut writes) = BatchStore::failing(0);
    let (log, worker) = UsageLog::new(store.clone());
    let client = async {
        log_records(&log, 3);
        tokio::task::yield_now().await;
        advance(FLUSH_EVERY / 2).await;
        assert_eq!(store.batches(), [0; 0]);
        advance(FLUSH_EVERY / 2).await;
        writes.recv().await.unwrap();
        assert_eq!(store.batches(), [3]);
        log.shutdown().await
    };
    assert_eq!(join(worker.run(), client).await, (WorkerEnd::Shutdown, Ok(())));
    assert_eq!(store.batches(), [3]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_writes_the_rest_without_waiting_for_the_interval() {
    let (store, _writes) = BatchStore::failing(0);
    let (log, worker) = UsageLog::new(store.clone());
    let start = Instant::now();
    let client = async {
        log_records(&log, 2);
        tokio::task::yield_now().await;
        log_records(&log, 1);
        log.shutdown().await
    };
    assert_eq!(join(worker.run(), client).await, (WorkerEnd::Shutdown, Ok(())));
    assert_eq!(store.batches(), [3]);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_further_records() {
    let (store, _writes) = BatchStore::failing(0);
    let (log, worker) = UsageLog::new(store.clone());
    log_records(&log, QUEUE_RECORDS + 10);
    assert_eq!(log.dropped(), 10);
    assert_eq!(join(worker.run(), log.shutdown()).await, (WorkerEnd::Shutdown, Ok(())));
    assert_eq!(store.batches(), [QUEUE_RECORDS]);
    assert_eq!(log.dropped(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_retried() {
    let (store, mut writes) = BatchStore::failing(2);
    let (log, worker) = UsageLog::new(store.clone());
    let client = async {
        log_records(&log, 5);
        writes.recv().await.unwrap();
        log.shutdown().await
    };
    assert_eq!(join(worker.run(), client).await, (WorkerEnd::Shutdown, Ok(())));
    assert_eq!(store.batches(), [5]);
    assert_eq!(log.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_dropped_after_the_last_attempt_and_later_records_are_written() {
    let (store, mut writes) = BatchStore::failing(WRITE_ATTEMPTS as usize);
    let (log, worker) = UsageLog::new(store.clone());
    let client = async {
        log_records(&log, 5);
        tokio::task::yield_now().await;
        advance(FLUSH_EVERY).await;
        tokio::task::yield_now().await;
        assert_eq!(store.failures_left(), WRITE_ATTEMPTS as usize - 1);
        // The queue is empty while the worker holds the batch that it cannot write.
        log_records(&log, QUEUE_RECORDS + 1);
        assert_eq!(log.dropped(), 1);
        writes.recv().await.unwrap();
        log.shutdown().await
    };
    assert_eq!(join(worker.run(), client).await, (WorkerEnd::Shutdown, Ok(())));
    assert_eq!(store.batches(), [QUEUE_RECORDS]);
    assert_eq!(log.dropped(), 5 + 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_reports_unwritten_records() {
    let (store, _writes) = BatchStore::failing(usize::MAX);
    let (log, worker) = UsageLog::new(store);
    log_records(&log, 5);
    let ends = join(worker.run(), log.shutdown()).await;
    assert_eq!(ends, (WorkerEnd::Shutdown, Err(ShutdownError::Unwritten { records: 5 })));
    assert_eq!(log.dropped(), 5);
}

#[tokio::test(start_paused = true)]
async fn concurrent_shutdowns_both_succeed_and_a_later_one_fails() {
    let (store, _writes) = BatchStore::failing(0);
    let (log, worker) = UsageLog::new(store.clone());
    log_records(&log, 1);
    let both = join(log.shutdown(), log.shutdown());
    assert_eq!(join(worker.run(), both).await, (WorkerEnd::Shutdown, (Ok(()), Ok(()))));
    assert_eq!(store.batches(), [1]);

    assert_eq!(log.shutdown().await, Err(ShutdownError::WorkerGone));
    log_records(&log, 2);
    assert_eq!(log.dropped(), 2);
}

#[tokio::test(start_paused = true)]
async fn shutdown_fails_when_the_worker_was_dropped() {
    let (store, _writes) = BatchStore::failing(0);
    let (log, worker) = UsageLog::new(store.clone());
    let (shutdown, ()) = join(log.shutdown(), async { drop(worker) }).await;
    assert_eq!(shutdown, Err(ShutdownError::WorkerGone));
    assert_eq!(log.shutdown().await, Err(ShutdownError::WorkerGone));
    log_records(&log, 1);
    assert_eq!(log.dropped(), 1);
    assert_eq!(store.batches(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_worker_writes_the_rest_when_the_last_handle_is_dropped() {
    let (store, _writes) = BatchStore::failing(0);
    let (log, worker) = UsageLog::new(store.clone());
    log_records(&log.clone(), 2);
    drop(log);
    assert_eq!(worker.run().await, WorkerEnd::HandlesGone);
    assert_eq!(store.batches(), [2]);
}
