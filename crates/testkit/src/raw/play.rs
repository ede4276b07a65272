//! Playing the steps of a connection, at either end of it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::message;
use super::step::RawStep;
use crate::gates::Gates;

/// Room for one read.
const READ_BYTES: usize = 64 * 1024;

/// A connection that the steps are played on.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send {
    /// The TCP connection below.
    fn tcp(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Transport for tokio_rustls::server::TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// How a scripted connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawEnd {
    /// All steps were played.
    Played,
    /// The peer closed in order while the script still wanted to read.
    PeerClosed,
    /// The peer reset the connection, or closed it while the script still wanted to send.
    PeerReset,
}

impl RawEnd {
    pub(super) fn of(outcome: io::Result<()>) -> Self {
        match outcome {
            Ok(()) => Self::Played,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Self::PeerClosed,
            Err(_) => Self::PeerReset,
        }
    }
}

/// What a connection received so far, and how it ended.
#[derive(Debug)]
pub(super) struct Tape {
    received: Mutex<Vec<u8>>,
    steps: Mutex<usize>,
    end: Mutex<Option<RawEnd>>,
    changed: watch::Sender<()>,
}

impl Tape {
    /// Announces every change on `changed`.
    pub(super) fn new(changed: watch::Sender<()>) -> Self {
        Self { received: Mutex::default(), steps: Mutex::default(), end: Mutex::default(), changed }
    }

    pub(super) fn received(&self) -> Vec<u8> {
        self.received.lock().clone()
    }

    /// How many steps were completed.
    pub(super) fn steps(&self) -> usize {
        *self.steps.lock()
    }

    pub(super) fn end(&self) -> Option<RawEnd> {
        *self.end.lock()
    }

    fn add(&self, bytes: &[u8]) {
        self.received.lock().extend_from_slice(bytes);
        self.changed.send_replace(());
    }

    fn complete_step(&self) {
        *self.steps.lock() += 1;
        self.changed.send_replace(());
    }

    pub(super) fn finish(&self, end: RawEnd) {
        *self.end.lock() = Some(end);
        self.changed.send_replace(());
    }
}

/// A connection while its steps are played.
pub(super) struct Player<T> {
    stream: T,
    pub(super) tape: Arc<Tape>,
    pub(super) gates: Arc<Gates>,
    /// Received bytes that no step has used yet.
    unused: Vec<u8>,
}

impl<T: Transport> Player<T> {
    pub(super) fn new(stream: T, tape: Arc<Tape>, gates: Arc<Gates>) -> Self {
        Self { stream, tape, gates, unused: Vec::new() }
    }

    /// Plays all steps and closes the connection.
    pub(super) async fn play(mut self, steps: Vec<RawStep>) {
        let outcome = self.play_all(steps).await;
        let Self { stream, tape, gates: _, unused: _ } = self;
        drop(stream);
        tape.finish(RawEnd::of(outcome));
    }

    pub(super) async fn play_all(&mut self, steps: Vec<RawStep>) -> io::Result<()> {
        for step in steps {
            match step {
                RawStep::Send(bytes) => self.send_bytes(&bytes).await?,
                RawStep::Trickle(bytes, pause) => self.trickle(&bytes, pause).await?,
                RawStep::ReadHead => {
                    self.read_until(message::head_length).await?;
                }
                RawStep::ReadMessage => {
                    self.read_until(message::complete_length).await?;
                }
                RawStep::ReadBytes(count) => {
                    self.read_until(|bytes| (bytes.len() >= count).then_some(count)).await?;
                }
                RawStep::ReadUntil(wanted) => {
                    self.read_until(|bytes| message::end_of(bytes, &wanted)).await?;
                }
                RawStep::ReadToEnd => self.read_to_end().await?,
                RawStep::AnswerAll(bytes) => loop {
                    self.read_until(message::complete_length).await?;
                    self.send_bytes(&bytes).await?;
                },
                RawStep::Gate(gate) => self.gates.passed(&gate).await,
                RawStep::Stall => std::future::pending().await,
                RawStep::CloseWrite => self.stream.shutdown().await?,
                RawStep::Close => return self.stream.shutdown().await,
                RawStep::Reset => return self.stream.tcp().set_zero_linger(),
            }
            self.tape.complete_step();
        }
        // A peer that has left already is no failure of a script that has nothing more to say.
        self.stream.shutdown().await.or(Ok(()))
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn trickle(&mut self, bytes: &[u8], pause: Duration) -> io::Result<()> {
        for at in 0..bytes.len() {
            self.send_bytes(&bytes[at..=at]).await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Reads until `end` finds the length of what was waited for, and takes that much.
    pub(super) async fn read_until(&mut self, end: impl Fn(&[u8]) -> Option<usize>) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = end(&self.unused) {
                let rest = self.unused.split_off(length);
                return Ok(std::mem::replace(&mut self.unused, rest));
            }
            if self.read_some().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    pub(super) async fn read_to_end(&mut self) -> io::Result<()> {
        while self.read_some().await? > 0 {}
        Ok(())
    }

    /// Received bytes that no step has used yet.
    pub(super) fn unused(&self) -> &[u8] {
        &self.unused
    }

    async fn read_some(&mut self) -> io::Result<usize> {
        let before = self.unused.len();
        self.unused.reserve(READ_BYTES);
        let count = self.stream.read_buf(&mut self.unused).await?;
        self.tape.add(&self.unused[before..]);
        Ok(count)
    }
}
