//! The kinds of connections in a storm, and how each is checked.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::Random;
use super::requests::Requests;
use crate::AnyError;
use crate::dialect::Delivery;
use crate::load::{Shot, Volume, fire};
use crate::serve::LocalExecutor;

/// How much of a bad response is shown.
const SHOWN_BYTES: usize = 300;

/// The length of a body that every gateway refuses, without sending it.
const REFUSED_BODY_BYTES: u64 = 1 << 40;

/// The pause between two pieces of a slow writer.
const PAUSE: Duration = Duration::from_millis(2);

/// Requests that are sent ahead on one connection.
const PIPELINED: usize = 3;

/// Bytes that are not a request.
const MALFORMED: [&str; 8] = [
    "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx: a\r\n folded\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nhost : localhost\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nhost: a\0b\r\n\r\n",
    "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n",
    "EHLO mail.example\r\n\r\n",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    Streamed,
    Pipelined,
    SlowWriter,
    Http2,
    HalfHttp2Preface,
    Malformed,
    HalfHead,
    LeavesMidStream,
    BodyTooLarge,
}

impl Kind {
    /// How often each kind comes. Ordinary requests are half of all.
    pub(super) const SHARES: [(Self, u64); 10] = [
        (Self::Whole, 30),
        (Self::Streamed, 20),
        (Self::Pipelined, 7),
        (Self::SlowWriter, 6),
        (Self::Http2, 6),
        (Self::HalfHttp2Preface, 5),
        (Self::Malformed, 8),
        (Self::HalfHead, 7),
        (Self::LeavesMidStream, 7),
        (Self::BodyTooLarge, 4),
    ];

    /// A kind, and a number for its details.
    pub(super) fn draw(random: &mut Random) -> (Self, u64) {
        let shares = Self::SHARES.iter().flat_map(|(kind, share)| (0..*share).map(|_| *kind));
        let drawn = index(random.next(), shares.clone().count());
        let kind = shares.into_iter().nth(drawn).unwrap_or(Self::Whole);
        (kind, random.next())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole replies",
            Self::Streamed => "streamed replies",
            Self::Pipelined => "pipelined requests",
            Self::SlowWriter => "slow writers",
            Self::Http2 => "HTTP/2 requests",
            Self::HalfHttp2Preface => "half HTTP/2 prefaces",
            Self::Malformed => "malformed heads",
            Self::HalfHead => "half heads",
            Self::LeavesMidStream => "clients that left mid-stream",
            Self::BodyTooLarge => "bodies that are too large",
        }
    }

    /// Opens one connection and checks what comes back.
    pub(super) async fn run(self, requests: &Requests, detail: u64) -> Result<(), AnyError> {
        match self {
            Self::Whole => good(requests, &requests.whole).await,
            Self::Streamed => good(requests, &requests.streamed).await,
            Self::Pipelined => pipelined(requests).await,
            Self::SlowWriter => slow_writer(requests, detail).await,
            Self::Http2 => over_http2(requests).await,
            Self::HalfHttp2Preface => {
                let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
                leave_after(requests, part_of(preface, detail)).await
            }
            Self::Malformed => {
                let text = MALFORMED[index(detail, MALFORMED.len())];
                refused(requests, text.as_bytes(), "HTTP/1.1 4").await
            }
            Self::HalfHead => {
                let request = requests.bytes(&requests.whole, "");
                let head = memmem::find(&request, b"\r\n\r\n").unwrap_or(request.len());
                leave_after(requests, part_of(&request[..head], detail)).await
            }
            Self::LeavesMidStream => leave_mid_stream(requests).await,
            Self::BodyTooLarge => {
                let head = format!(
                    "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {REFUSED_BODY_BYTES}\r\n\r\n{{",
                    requests.address
                );
                refused(requests, head.as_bytes(), "HTTP/1.1 413").await
            }
        }
    }
}

fn index(detail: u64, length: usize) -> usize {
    let length = u64::try_from(length).unwrap_or(u64::MAX).max(1);
    usize::try_from(detail % length).unwrap_or_default()
}

/// The beginning of some bytes, never all of them.
fn part_of(bytes: &[u8], detail: u64) -> &[u8] {
    &bytes[..index(detail, bytes.len())]
}

async fn good(requests: &Requests, shot: &Shot) -> Result<(), AnyError> {
    fire(&requests.address, shot, Volume { requests: 1, connections: 1 }).await.map(drop)
}

async fn pipelined(requests: &Requests) -> Result<(), AnyError> {
    let mut stream = requests.connect().await?;
    let mut bytes = requests.bytes(&requests.whole, "").repeat(PIPELINED - 1);
    bytes.extend_from_slice(&requests.bytes(&requests.whole, "connection: close\r\n"));
    stream.write_all(&bytes).await?;
    read_replies(stream, &requests.whole, PIPELINED).await
}

async fn slow_writer(requests: &Requests, detail: u64) -> Result<(), AnyError> {
    let mut stream = requests.connect().await?;
    let bytes = requests.bytes(&requests.whole, "connection: close\r\n");
    // Between three and ten pieces.
    let piece = bytes.len() / (3 + index(detail, 8)) + 1;
    for piece in bytes.chunks(piece) {
        stream.write_all(piece).await?;
        tokio::time::sleep(PAUSE).await;
    }
    read_replies(stream, &requests.whole, 1).await
}

/// Reads to the end, where so many whole replies must have come.
async fn read_replies(mut stream: TcpStream, shot: &Shot, count: usize) -> Result<(), AnyError> {
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await?;
    let found = |mark: &str| memmem::find_iter(&received, mark.as_bytes()).count();
    if found("HTTP/1.1 200 ") == count && found(shot.dialect.end_mark(Delivery::Whole)) == count {
        return Ok(());
    }
    Err(format!("{count} replies were due, and this came: {}", shown(&received)).into())
}

async fn over_http2(requests: &Requests) -> Result<(), AnyError> {
    let shot = &requests.streamed;
    let stream = TokioIo::new(requests.connect().await?);
    let (mut sender, connection) = http2::handshake(LocalExecutor, stream).await?;
    // The request itself tells when its connection fails.
    drop(spawn_local(connection));
    let uri = format!("http://{}{}", requests.address, shot.dialect.path());
    let request =
        Request::post(uri).header("content-type", "application/json").body(Full::new(shot.body.clone()))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let reply = response.into_body().collect().await?.to_bytes();
    let end_mark = shot.dialect.end_mark(shot.delivery);
    if status.is_success() && memmem::find(&reply, end_mark.as_bytes()).is_some() {
        return Ok(());
    }
    Err(format!("answered {status} with no complete reply: {}", shown(&reply)).into())
}

async fn leave_after(requests: &Requests, bytes: &[u8]) -> Result<(), AnyError> {
    let mut stream = requests.connect().await?;
    stream.write_all(bytes).await?;
    Ok(())
}

async fn leave_mid_stream(requests: &Requests) -> Result<(), AnyError> {
    let mut stream = requests.connect().await?;
    stream.write_all(&requests.bytes(&requests.slow, "")).await?;
    let mut start = vec![0; 16];
    stream.read_exact(&mut start).await?;
    if start.starts_with(b"HTTP/1.1 200 ") {
        return Ok(());
    }
    Err(format!("the stream began with {}", shown(&start)).into())
}

/// Sends bytes that must not be answered, except with an error that begins as given.
async fn refused(requests: &Requests, bytes: &[u8], expected: &str) -> Result<(), AnyError> {
    let mut stream = requests.connect().await?;
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    let mut received = Vec::new();
    let read = stream.read_to_end(&mut received).await;
    // A gateway that closes with unread bytes resets the connection, and the client may lose the response.
    if received.starts_with(expected.as_bytes()) || received.is_empty() {
        return Ok(());
    }
    Err(format!("`{expected}…` or a close was due, and this came ({read:?}): {}", shown(&received)).into())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned()
}
