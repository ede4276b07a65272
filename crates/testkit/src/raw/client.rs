//! A client that sends the bytes a test names.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::watch;

use super::message::{RawMessage, complete_length, end_of, messages};
use super::play::{Player, RawEnd, Tape};
use super::{PATIENCE, RawStep};
use crate::gates::Gates;

/// A client on one TCP connection. Dropping it closes the connection.
pub struct RawClient {
    player: Player<TcpStream>,
}

impl RawClient {
    /// Connects to a gateway.
    ///
    /// # Panics
    /// When nobody listens there.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its connection")]
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("connect to the gateway");
        stream.set_nodelay(true).expect("set TCP_NODELAY");
        let tape = Arc::new(Tape::new(watch::Sender::new(())));
        Self { player: Player::new(stream, tape, Arc::new(Gates::default())) }
    }

    /// Plays some steps and tells how far they came. Later calls go on with the same connection.
    pub async fn play(&mut self, steps: impl IntoIterator<Item = RawStep>) -> RawEnd {
        let played = self.player.play_all(steps.into_iter().collect());
        RawEnd::of(within("a client's steps", played).await)
    }

    /// Opens the gates of this client's steps.
    pub fn gate_opener(&self) -> impl Fn(&str) + Send + use<> {
        let gates = Arc::clone(&self.player.gates);
        move |gate| gates.open(gate)
    }

    /// Sends bytes. A peer that has closed is not an error here: the next read tells.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        drop(within("the peer to read", self.player.send_bytes(bytes.as_ref())).await);
    }

    /// The next whole response. `100 Continue` counts as one.
    ///
    /// # Panics
    /// When the connection ends first.
    #[expect(clippy::panic, reason = "the response does not come, so the test has failed")]
    pub async fn response(&mut self) -> RawMessage {
        match within("a response", self.player.read_until(complete_length)).await {
            Ok(bytes) => messages(&bytes).swap_remove(0),
            Err(error) => panic!("no whole response ({error}), only:\n{}", self.received_text()),
        }
    }

    /// Reads until this text has come, and gives everything up to its end.
    ///
    /// # Panics
    /// When the connection ends first.
    #[expect(clippy::panic, reason = "the text does not come, so the test has failed")]
    pub async fn read_until(&mut self, text: &str) -> String {
        let end = |bytes: &[u8]| end_of(bytes, text.as_bytes());
        match within(text, self.player.read_until(end)).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => panic!("`{text}` did not come ({error}), only:\n{}", self.received_text()),
        }
    }

    /// Reads until the connection ends, and gives the messages that were not read before.
    pub async fn rest(mut self) -> (Vec<RawMessage>, RawEnd) {
        let end = RawEnd::of(within("the end of the connection", self.player.read_to_end()).await);
        (messages(self.player.unused()), end)
    }

    fn received_text(&self) -> String {
        String::from_utf8_lossy(&self.player.tape.received()).into_owned()
    }
}

#[expect(clippy::panic, reason = "the test waits for something that does not happen, so it has failed")]
async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}
