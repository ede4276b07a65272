//! A real HTTP server on a loopback port with scripted responses, plain or over TLS.

mod ledger;
mod script;
mod serve;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use ledger::Ledger;
pub use ledger::Received;
pub use script::{Script, Step};

use crate::gates::Gates;
use crate::tls::{Identity, Offer};

/// How long a test waits for something that a working gateway does at once, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(20);

/// A scripted HTTP server. Dropping it closes its port and its connections.
#[derive(Debug)]
pub struct ScriptedUpstream {
    address: SocketAddr,
    /// The certificate of the authority that signed the server's, if it speaks TLS.
    authority: Option<String>,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

impl ScriptedUpstream {
    /// Starts a server on a free loopback port.
    ///
    /// # Panics
    /// When the machine has no loopback port to give.
    pub async fn start() -> Self {
        Self::serve(None).await
    }

    /// Starts a server that speaks TLS, with a certificate for 127.0.0.1 from an authority of its own.
    ///
    /// # Panics
    /// When the machine has no loopback port to give.
    pub async fn start_tls(offer: Offer) -> Self {
        Self::serve(Some(Identity::make(offer))).await
    }

    #[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
    async fn serve(identity: Option<Identity>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bind a loopback port");
        let address = listener.local_addr().expect("read the bound address");
        let shared = Arc::new(Shared::default());
        let mut server = JoinSet::new();
        let (acceptor, authority) =
            identity.map(|Identity { acceptor, authority }| (acceptor, authority)).unzip();
        server.spawn(serve::accept(listener, acceptor, Arc::clone(&shared)));
        Self { address, authority, shared, _server: server }
    }

    /// The URL that a gateway is configured with: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/v1", self.address)
    }

    /// The certificate of the authority that signed the server's, as PEM; empty without TLS.
    pub fn authority(&self) -> &str {
        self.authority.as_deref().unwrap_or_default()
    }

    /// Queues the response to the next request that has none yet.
    pub fn on(&self, script: Script) {
        self.shared.queue.lock().push_back(script);
    }

    /// Responds to every request for which nothing is queued.
    pub fn always(&self, respond: impl Fn(&Received) -> Script + Send + Sync + 'static) {
        *self.shared.fallback.lock() = Some(Arc::new(respond));
    }

    /// Stops checking requests against the vendors' types, for tests that send others on purpose.
    pub fn accept_anything(&self) {
        self.shared.accepts_anything.store(true, Ordering::Relaxed);
    }

    /// Opens a gate for good, for all scripts that wait at it now or later.
    pub fn open(&self, gate: &str) {
        self.shared.gates.open(gate);
    }

    /// The requests so far, oldest first. Only the last thousand or so are kept.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.ledger.lock().all()
    }

    /// The next request that no earlier call returned.
    ///
    /// # Panics
    /// When none comes in time.
    pub async fn next_request(&self) -> Received {
        wait_for("a request", &self.shared.arrivals).await;
        self.shared.ledger.lock().next()
    }

    /// Resolves when a client disconnected before the end of its scripted response, once for each such client.
    ///
    /// # Panics
    /// When none disconnects in time.
    pub async fn disconnected(&self) {
        wait_for("a client to disconnect", &self.shared.disconnects).await;
    }
}

/// State shared by the test and the connections.
struct Shared {
    queue: Mutex<VecDeque<Script>>,
    fallback: Mutex<Option<Fallback>>,
    ledger: Mutex<Ledger>,
    gates: Gates,
    accepts_anything: AtomicBool,
    /// One permit for each request that `next_request` has not returned yet.
    arrivals: Semaphore,
    /// One permit for each lost client that `disconnected` has not reported yet.
    disconnects: Semaphore,
}

type Fallback = Arc<dyn Fn(&Received) -> Script + Send + Sync>;

impl Default for Shared {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            fallback: Mutex::default(),
            ledger: Mutex::default(),
            gates: Gates::default(),
            accepts_anything: AtomicBool::new(false),
            arrivals: Semaphore::new(0),
            disconnects: Semaphore::new(0),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

#[expect(clippy::panic, reason = "the test waits for something that does not happen, so it has failed")]
async fn wait_for(what: &str, permits: &Semaphore) {
    match tokio::time::timeout(PATIENCE, permits.acquire()).await {
        Ok(Ok(permit)) => permit.forget(),
        Ok(Err(_)) | Err(_) => panic!("waited {PATIENCE:?} for {what} at the scripted upstream"),
    }
}
