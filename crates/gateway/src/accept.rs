//! Accepting connections, and giving each to the worker with the fewest.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::http::{self, Entrance, Peer};
use crate::service::{Shared, Worker};
use crate::wire;

/// Accepted connections that wait for one worker.
pub(crate) const ACCEPT_QUEUE: usize = 1024;

/// The wait after a failed accept. Usually no file handles are left, and trying again at once would only burn the
/// processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The answer to a connection beyond the cap.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 58\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\nthe gateway has too many connections; try again shortly.\r\n";

/// Open connections of all workers.
#[derive(Debug)]
pub(crate) struct ConnectionCounts {
    open: Vec<AtomicUsize>,
    refused: AtomicU64,
    max: usize,
}

impl ConnectionCounts {
    pub(crate) fn new(workers: usize, max: usize) -> Self {
        let open = (0..workers).map(|_| AtomicUsize::new(0)).collect();
        Self { open, refused: AtomicU64::new(0), max }
    }

    /// Open connections, one number for each worker.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.open.iter().map(|count| count.load(Ordering::Relaxed))
    }

    /// Connections refused since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The worker with the fewest connections. Among equals it is the first after `last`, so that workers take turns.
    fn least_busy(&self, last: usize) -> usize {
        let workers = self.open.len();
        let following = (1..=workers).map(|step| (last + step) % workers);
        following.min_by_key(|worker| self.open[*worker].load(Ordering::Relaxed)).unwrap_or_default()
    }
}

/// Counts a connection of one worker until it is dropped.
struct CountedConnection {
    shared: Arc<Shared>,
    worker: usize,
}

impl CountedConnection {
    fn new(shared: &Arc<Shared>, worker: usize) -> Self {
        shared.connections.open[worker].fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::clone(shared), worker }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.shared.connections.open[self.worker].fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection on its way to a worker.
pub(crate) struct Accepted {
    stream: std::net::TcpStream,
    peer: Peer,
    counted: CountedConnection,
}

/// Accepts connections until the gateway stops.
pub(crate) async fn accept(
    listener: TcpListener,
    entrance: Entrance,
    workers: &[mpsc::Sender<Accepted>],
    shared: &Arc<Shared>,
    stopping: &CancellationToken,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut worker = workers.len() - 1;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed; if this repeats, raise the limit of open files");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let counts = &shared.connections;
        worker = counts.least_busy(worker);
        if counts.open().sum::<usize>() >= counts.max {
            refuse(&stream, shared);
            continue;
        }
        let counted = CountedConnection::new(shared, worker);
        let peer = Peer { address: peer, entrance };
        let accepted = stream.into_std().map(|stream| Accepted { stream, peer, counted });
        // A full queue means that the worker is stuck: the connection is dropped rather than kept waiting.
        if accepted.map_or(true, |accepted| workers[worker].try_send(accepted).is_err()) {
            counts.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Refuses a connection beyond the cap. It must not cost more than the refusal itself, so a client that cannot take it
/// at once only sees the connection close.
fn refuse(stream: &TcpStream, shared: &Shared) {
    shared.connections.refused.fetch_add(1, Ordering::Relaxed);
    stream.try_write(REFUSAL).ok();
}

/// Serves the connections of one worker until the gateway stops and all of them have ended.
pub(crate) async fn work(mut accepted: mpsc::Receiver<Accepted>, worker: Worker) {
    let worker = Arc::new(worker);
    let tasks = worker.tasks.clone();
    let routes = http::routes(Arc::clone(&worker));
    loop {
        let next = tokio::select! {
            biased;
            () = tasks.stopping().cancelled() => break,
            next = accepted.recv() => next,
        };
        let Some(Accepted { stream, peer, counted }) = next else { break };
        let (worker, routes) = (Arc::clone(&worker), routes.clone());
        match TcpStream::from_std(stream) {
            Ok(stream) => tasks.spawn(async move {
                wire::serve(stream, worker, routes, peer).await;
                drop(counted);
            }),
            Err(error) => tracing::warn!(%error, "a connection could not be given to its worker"),
        }
    }
    tasks.finish(worker.shared.limits.shutdown_grace).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_spread_over_all_workers() {
        let counts = ConnectionCounts::new(4, 100);
        let mut worker = 3;
        for _ in 0..24 {
            worker = counts.least_busy(worker);
            counts.open[worker].fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(counts.open().collect::<Vec<_>>(), [6, 6, 6, 6]);
        counts.open[2].fetch_sub(2, Ordering::Relaxed);
        assert_eq!(counts.least_busy(1), 2);
    }

    #[test]
    fn the_refusal_says_its_length() {
        let text = str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
