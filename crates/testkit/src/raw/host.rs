//! A host that sends the bytes a test names.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::message::{RawMessage, messages};
use super::play::{Player, RawEnd, Tape};
use super::{PATIENCE, RawStep};
use crate::gates::Gates;
use crate::tls::{Identity, Offer};

/// A host whose connections are scripts. Dropping it closes its port and its connections.
#[derive(Debug)]
pub struct RawHost {
    address: SocketAddr,
    authority: Option<String>,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

/// What one connection received, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawConnection {
    /// Every byte that came, after TLS where there is TLS.
    pub received: Vec<u8>,
    /// How many of its steps were completed.
    pub steps: usize,
    /// `None` while it goes on.
    pub end: Option<RawEnd>,
}

impl RawConnection {
    /// The requests that came, the last one perhaps incomplete.
    pub fn requests(&self) -> Vec<RawMessage> {
        messages(&self.received)
    }
}

impl RawHost {
    /// Starts a host without TLS on a free loopback port.
    pub async fn start() -> Self {
        Self::serve(None).await
    }

    /// Starts a host with TLS, with a certificate for 127.0.0.1 from an authority of its own.
    pub async fn start_tls(offer: Offer) -> Self {
        Self::serve(Some(Identity::make(offer))).await
    }

    #[expect(clippy::expect_used, reason = "a test cannot go on without its host")]
    async fn serve(identity: Option<Identity>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bind a loopback port");
        let address = listener.local_addr().expect("read the bound address");
        let shared = Arc::new(Shared::default());
        let (acceptor, authority) =
            identity.map(|Identity { acceptor, authority }| (acceptor, authority)).unzip();
        let mut server = JoinSet::new();
        server.spawn(accept(listener, acceptor, Arc::clone(&shared)));
        Self { address, authority, shared, _server: server }
    }

    /// The URL that a gateway is configured with: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/v1", self.address)
    }

    /// The certificate of the authority that signed the host's, as PEM; empty without TLS.
    pub fn authority(&self) -> &str {
        self.authority.as_deref().unwrap_or_default()
    }

    /// Queues the steps of the next connection that has none yet.
    pub fn on(&self, steps: impl IntoIterator<Item = RawStep>) {
        self.shared.queue.lock().push_back(steps.into_iter().collect());
    }

    /// The steps of every connection for which none are queued. Without them such a connection is closed at once.
    pub fn always(&self, steps: impl IntoIterator<Item = RawStep>) {
        *self.shared.fallback.lock() = steps.into_iter().collect();
    }

    /// Opens a gate for good, for all steps that wait at it now or later.
    pub fn open(&self, gate: &str) {
        self.shared.gates.open(gate);
    }

    /// The connections so far, oldest first.
    pub fn connections(&self) -> Vec<RawConnection> {
        let tapes = self.shared.tapes.lock();
        let connection = |tape: &Arc<Tape>| RawConnection {
            received: tape.received(),
            steps: tape.steps(),
            end: tape.end(),
        };
        tapes.iter().map(connection).collect()
    }

    /// The requests so far, of all connections.
    pub fn requests(&self) -> Vec<RawMessage> {
        self.connections().iter().flat_map(RawConnection::requests).collect()
    }

    /// Waits until the connections satisfy a condition.
    ///
    /// # Panics
    /// When they do not in time.
    pub async fn until(&self, what: &str, is_met: impl Fn(&[RawConnection]) -> bool) {
        let mut changes = self.shared.changed.subscribe();
        let met = changes.wait_for(|()| is_met(&self.connections()));
        let is_met = tokio::time::timeout(PATIENCE, met).await.is_ok();
        assert!(is_met, "waited {PATIENCE:?} for {what}; the host saw {:?}", self.connections());
    }
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<VecDeque<Vec<RawStep>>>,
    fallback: Mutex<Vec<RawStep>>,
    gates: Arc<Gates>,
    tapes: Mutex<Vec<Arc<Tape>>>,
    changed: watch::Sender<()>,
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // The tape is made here, so that connections are counted in the order in which they came.
        let tape = Arc::new(Tape::new(shared.changed.clone()));
        shared.tapes.lock().push(Arc::clone(&tape));
        shared.changed.send_replace(());
        let queued = shared.queue.lock().pop_front();
        let steps = queued.unwrap_or_else(|| shared.fallback.lock().clone());
        connections.spawn(serve(stream, tls.clone(), steps, tape, Arc::clone(&shared.gates)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    steps: Vec<RawStep>,
    tape: Arc<Tape>,
    gates: Arc<Gates>,
) {
    // A peer that has left already shows in the first step.
    drop(stream.set_nodelay(true));
    let Some(tls) = tls else { return Player::new(stream, tape, gates).play(steps).await };
    match tls.accept(stream).await {
        Ok(stream) => Player::new(stream, tape, gates).play(steps).await,
        Err(_) => tape.finish(RawEnd::PeerReset),
    }
}
