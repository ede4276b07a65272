//! The response to one `POST`, as a client reads it.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolgate_h1::{BodyError, Decoded, Exchange, ExchangeError, MAX_FIELDS};

use super::grammar::Grammar;
use super::{FieldList, piece_sizes, polling};

/// More than hyper's request, of which no more than the first byte is read.
const PIPE_BYTES: usize = 4 * 1024;

/// The head of a final response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    status: u16,
    fields: FieldList,
}

/// What the host does to hyper after it sent its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Close,
    StayOpen,
}

#[derive(Debug, PartialEq, Eq)]
struct Received {
    head: Option<Head>,
    /// The body, or as much of it as could be read.
    body: Vec<u8>,
    is_whole: bool,
    /// Before the host closed the connection.
    is_reusable: bool,
}

/// An answer, mostly a valid one.
pub fn generate(choices: &[u8]) -> Vec<u8> {
    Grammar::new(choices).responses()
}

/// Whether we accept these bytes as a whole response.
///
/// # Panics
///
/// When hyper reads them differently or would not use the connection again where we would, or when our answer depends
/// on how the bytes are split.
pub fn check(bytes: &[u8]) -> bool {
    let text = bytes.escape_ascii();
    let (accepted, result) = ours(bytes, usize::MAX);
    for size in piece_sizes(bytes.len()) {
        let (pieces, pieces_result) = ours(bytes, size);
        assert_eq!((&accepted, result), (&pieces, pieces_result), "in pieces of {size}: {text}");
    }
    if accepted.is_reusable {
        let is_reusable = hypers(bytes, Then::StayOpen).is_reusable;
        assert!(is_reusable, "hyper would not use the connection again: {text}");
    }
    let seen = hypers(bytes, Then::Close);
    if accepted.head.is_some() {
        assert_eq!(accepted.head, seen.head, "{text}");
        assert!(seen.body.starts_with(&accepted.body), "{text}");
    }
    match result {
        Ok(()) => assert!(seen.is_whole && seen.body == accepted.body, "hyper reads another body: {text}"),
        Err(ExchangeError::Body(BodyError::Truncated)) => {
            assert!(!seen.is_whole && seen.body == accepted.body, "only we miss the end of the body: {text}");
        }
        Err(ExchangeError::Closed) => assert_eq!(None, seen.head, "only we miss the end of the head: {text}"),
        Err(ExchangeError::Head(_) | ExchangeError::Body(_) | ExchangeError::TooManyInterimResponses) => {}
    }
    result.is_ok()
}

/// Reads the bytes in pieces, and then the end of the connection.
fn ours(bytes: &[u8], piece_size: usize) -> (Received, Result<(), ExchangeError>) {
    let mut exchange = Exchange::new(BytesMut::new(), Bytes::new());
    let (mut head, mut body) = (None, Vec::new());
    let mut received = BytesMut::new();
    let mut read = |exchange: &mut Exchange, received: &mut BytesMut| {
        if head.is_none() {
            head = exchange
                .read_head(received, |head| Head { status: head.status, fields: super::ours(head.fields) })?;
        }
        while let Decoded::Bytes(bytes) = exchange.read_body(received)? {
            body.extend_from_slice(&bytes);
        }
        Ok(())
    };
    let mut result = Ok(());
    for piece in bytes.chunks(piece_size.min(bytes.len().max(1))) {
        received.extend_from_slice(piece);
        result = result.and_then(|()| read(&mut exchange, &mut received));
    }
    let is_reusable = result.is_ok() && exchange.is_reusable(&received);
    result = result.and_then(|()| exchange.end_of_input());
    (Received { head, body, is_whole: result.is_ok(), is_reusable }, result)
}

fn hypers(bytes: &[u8], then: Then) -> Received {
    let (client, mut host) = tokio::io::duplex(PIPE_BYTES);
    let mut received = Received { head: None, body: Vec::new(), is_whole: false, is_reusable: false };
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::POST;
    let exchange = async {
        let (mut sender, connection) =
            http1::Builder::new().max_headers(MAX_FIELDS).handshake(TokioIo::new(client)).await?;
        let response = sender.send_request(request);
        let receive = async {
            let (head, mut body) = response.await?.into_parts();
            received.head = Some(Head { status: head.status.as_u16(), fields: super::hypers(&head.headers) });
            while let Some(frame) = body.frame().await {
                received.body.extend(frame?.into_data().unwrap_or_default());
            }
            received.is_whole = true;
            received.is_reusable = sender.ready().await.is_ok();
            Ok::<_, hyper::Error>(())
        };
        let answer = async {
            // hyper takes bytes that come before its request for a mistake of the host.
            host.read_u8().await?;
            host.write_all(bytes).await?;
            if then == Then::Close { host.shutdown().await } else { Ok(()) }
        };
        Ok::<_, hyper::Error>(tokio::join!(receive, connection, answer))
    };
    // A connection that stays open never ends; all that matters is in `received`.
    drop(polling::run(exchange));
    received
}
