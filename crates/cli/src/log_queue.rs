//! The queue between the program and its log: adding a line never waits.
//!
//! Lines are appended to a bounded buffer, and one thread writes that buffer out. When the buffer is full because the
//! output is slow or stuck, further lines are dropped and counted.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

use crate::log_escape::{escape_controls, is_plain};

/// The most bytes that wait to be written: about 1,000 lines.
const MAX_QUEUED_BYTES: usize = 256 * 1024;

/// How long the thread collects lines before it writes them, so that a busy gateway pays one system call for many.
const BATCH_DELAY: Duration = Duration::from_millis(10);

/// The longest the end of the program waits for the last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Owns the queue; flushes it when dropped, also when a panic unwinds the main thread.
pub(crate) struct LogQueue(Arc<Shared>);

/// Adds lines to the queue.
pub(crate) struct LogWriter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    lines: Mutex<Lines>,
    /// Signalled when the first line is added to an empty buffer.
    added: Condvar,
    /// Signalled when a batch has been written.
    written: Condvar,
    dropped: Arc<AtomicU64>,
}

#[derive(Default)]
struct Lines {
    waiting: Vec<u8>,
    is_writing: bool,
}

impl LogQueue {
    /// Starts the thread that writes to `output`.
    pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let queue = Self(Arc::clone(&shared));
        thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_to(output))?;
        Ok(queue)
    }

    /// A writer for a subscriber.
    pub(crate) fn writer(&self) -> LogWriter {
        LogWriter(Arc::clone(&self.0))
    }

    /// Counts the lines dropped since the start.
    pub(crate) fn dropped_lines(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.dropped)
    }
}

impl Drop for LogQueue {
    fn drop(&mut self) {
        let is_busy = |lines: &mut Lines| lines.is_writing || !lines.waiting.is_empty();
        self.0.written.wait_while_for(&mut self.0.lines.lock(), is_busy, FLUSH_TIMEOUT);
    }
}

impl Shared {
    fn add(&self, line: &[u8]) {
        let mut lines = self.lines.lock();
        if lines.waiting.len() + line.len() > MAX_QUEUED_BYTES {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if lines.waiting.is_empty() {
            self.added.notify_one();
        }
        lines.waiting.extend_from_slice(line);
    }

    fn write_to(&self, mut output: impl Write) {
        let mut reported = 0;
        let mut batch = Vec::new();
        loop {
            self.added.wait_while(&mut self.lines.lock(), |lines| lines.waiting.is_empty());
            thread::sleep(BATCH_DELAY);
            {
                let mut lines = self.lines.lock();
                mem::swap(&mut lines.waiting, &mut batch);
                lines.is_writing = true;
            }
            // Reported now, while the buffer is empty and has room for the report.
            let dropped = self.dropped.load(Ordering::Relaxed);
            if dropped > reported {
                tracing::warn!(
                    lines = dropped - reported,
                    "log lines were dropped: stderr is read too slowly"
                );
                reported = dropped;
            }
            // A failed write has nowhere to be reported: stderr is the log.
            output.write_all(&batch).and_then(|()| output.flush()).ok();
            batch.clear();
            self.lines.lock().is_writing = false;
            self.written.notify_all();
        }
    }
}

impl Write for &LogWriter {
    /// Takes one whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if is_plain(line) {
            self.0.add(line);
        } else {
            self.0.add(escape_controls(&String::from_utf8_lossy(line)).as_bytes());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    use super::*;

    /// An output that blocks until `open` receives a message, once per batch, and forwards the batch.
    struct Gated {
        open: Receiver<()>,
        batches: Sender<Vec<u8>>,
    }

    impl Write for Gated {
        fn write(&mut self, batch: &[u8]) -> io::Result<usize> {
            self.open.recv().map_err(io::Error::other)?;
            self.batches.send(batch.to_vec()).map_err(io::Error::other)?;
            Ok(batch.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (LogQueue, Sender<()>, Receiver<Vec<u8>>) {
        let ((open, opened), (batches, written)) = (channel(), channel());
        (LogQueue::start(Gated { open: opened, batches }).unwrap(), open, written)
    }

    fn add(queue: &LogQueue, line: &[u8]) {
        queue.writer().make_writer().write_all(line).unwrap();
    }

    #[test]
    fn lines_are_written_in_order() {
        let (queue, open, written) = gated();
        add(&queue, b"one\n");
        add(&queue, b"two\n");
        open.send(()).unwrap();
        assert_eq!(written.recv().unwrap(), b"one\ntwo\n");
        assert_eq!(queue.dropped_lines().load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_queue_drops_and_counts_lines_without_waiting() {
        let (queue, open, written) = gated();
        let line = [b'x'; 1024];
        // The first batch is stuck in the output, the second one fills the buffer.
        add(&queue, b"stuck\n");
        while !queue.0.lines.lock().is_writing {
            thread::yield_now();
        }
        for _ in 0..MAX_QUEUED_BYTES / line.len() + 3 {
            add(&queue, &line);
        }
        assert_eq!(queue.dropped_lines().load(Ordering::Relaxed), 3);
        open.send(()).unwrap();
        open.send(()).unwrap();
        assert_eq!(written.recv().unwrap(), b"stuck\n");
        assert_eq!(written.recv().unwrap().len(), MAX_QUEUED_BYTES);
        add(&queue, b"after\n");
        open.send(()).unwrap();
        assert_eq!(written.recv().unwrap(), b"after\n");
    }

    #[test]
    fn dropping_the_queue_flushes_it() {
        let (queue, open, written) = gated();
        open.send(()).unwrap();
        add(&queue, b"last\n");
        drop(queue);
        assert_eq!(written.try_recv().unwrap(), b"last\n");
    }

    #[test]
    fn a_panic_flushes_the_queue() {
        let (queue, open, written) = gated();
        open.send(()).unwrap();
        add(&queue, b"last\n");
        let panicking = thread::spawn(move || {
            let _queue = queue;
            panic!("a test of panics");
        });
        assert!(panicking.join().is_err());
        assert_eq!(written.try_recv().unwrap(), b"last\n");
    }

    #[test]
    fn a_stuck_output_delays_the_end_by_no_more_than_the_timeout() {
        let (queue, _open, _written) = gated();
        add(&queue, b"never written\n");
        let began = Instant::now();
        drop(queue);
        assert!((FLUSH_TIMEOUT..10 * FLUSH_TIMEOUT).contains(&began.elapsed()));
    }
}
