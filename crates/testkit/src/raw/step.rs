//! The steps of a scripted connection.

use std::time::Duration;

use bytes::Bytes;

/// One step of a connection, at either end of it. When no step is left, the connection closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawStep {
    /// Sends these bytes as they are.
    Send(Bytes),
    /// Sends these bytes one at a time, with a pause after each.
    Trickle(Bytes, Duration),
    /// Reads until the empty line that ends a head.
    ReadHead,
    /// Reads one whole message: its head, and the body that the head announces.
    ReadMessage,
    /// Reads this many bytes.
    ReadBytes(usize),
    /// Reads until these bytes have come.
    ReadUntil(Bytes),
    /// Reads until the peer closes.
    ReadToEnd,
    /// Reads one message after another and answers each with these bytes, until the peer closes.
    AnswerAll(Bytes),
    /// Waits until the test opens the gate. Reads nothing.
    Gate(String),
    /// Keeps the connection open and reads nothing, for as long as the test runs.
    Stall,
    /// Closes the sending half and goes on reading.
    CloseWrite,
    /// Closes the connection in order.
    Close,
    /// Closes the connection with a reset.
    Reset,
}

impl RawStep {
    /// [`RawStep::Send`] with a copy of the bytes.
    pub fn send(bytes: impl AsRef<[u8]>) -> Self {
        Self::Send(Bytes::copy_from_slice(bytes.as_ref()))
    }

    /// [`RawStep::ReadUntil`] with a copy of the bytes.
    pub fn read_until(bytes: impl AsRef<[u8]>) -> Self {
        Self::ReadUntil(Bytes::copy_from_slice(bytes.as_ref()))
    }

    /// [`RawStep::Gate`] of this name.
    pub fn gate(name: &str) -> Self {
        Self::Gate(name.to_owned())
    }

    /// [`RawStep::AnswerAll`] with a copy of the bytes.
    pub fn answer_all(bytes: impl AsRef<[u8]>) -> Self {
        Self::AnswerAll(Bytes::copy_from_slice(bytes.as_ref()))
    }
}
