//! Pipelined requests, as a server reads them.

use std::cell::RefCell;
use std::convert::Infallible;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use toolgate_h1::{BodyDecoder, Decoded, MAX_FIELDS, RequestBody, RequestHead};

use super::grammar::Grammar;
use super::{FieldList, piece_sizes, polling};

/// A request whose body was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeRequest {
    method: String,
    target: String,
    fields: FieldList,
    body: Vec<u8>,
}

/// What we do after the last whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// More bytes are needed.
    Wait,
    /// The client wanted the connection closed, or sent something malformed.
    Close,
}

/// A stream of requests, mostly valid ones.
pub fn generate(choices: &[u8]) -> Vec<u8> {
    Grammar::new(choices).requests()
}

/// How many requests we accept from these bytes.
///
/// # Panics
///
/// When hyper does not see the same requests, or when our answer depends on how the bytes are split.
pub fn check(bytes: &[u8]) -> usize {
    let (accepted, next) = ours(bytes, usize::MAX);
    let text = bytes.escape_ascii();
    for size in piece_sizes(bytes.len()) {
        let (pieces, next_of_pieces) = ours(bytes, size);
        assert_eq!((&accepted, next), (&pieces, next_of_pieces), "in pieces of {size}: {text}");
    }
    let seen = hypers(bytes);
    for (index, request) in accepted.iter().enumerate() {
        assert_eq!(Some(request), seen.get(index), "request {index} of {text}");
    }
    assert!(next == Next::Close || seen.len() == accepted.len(), "we wait, hyper does not: {text}");
    accepted.len()
}

fn ours(bytes: &[u8], piece_size: usize) -> (Vec<WholeRequest>, Next) {
    let mut connection = Connection::default();
    for piece in bytes.chunks(piece_size.min(bytes.len().max(1))) {
        connection.received.extend_from_slice(piece);
        while connection.next == Next::Wait && connection.step() {}
    }
    (connection.whole, connection.next)
}

struct Connection {
    received: BytesMut,
    reading: Option<Reading>,
    whole: Vec<WholeRequest>,
    next: Next,
}

/// A request whose head was read.
struct Reading {
    request: WholeRequest,
    body: BodyDecoder,
    after: Next,
}

impl Default for Connection {
    fn default() -> Self {
        Self { received: BytesMut::new(), reading: None, whole: Vec::new(), next: Next::Wait }
    }
}

impl Connection {
    /// False when more bytes are needed.
    fn step(&mut self) -> bool {
        let Some(reading) = &mut self.reading else { return self.read_head() };
        match reading.body.decode(&mut self.received) {
            Ok(Decoded::Bytes(bytes)) => reading.request.body.extend_from_slice(&bytes),
            Ok(Decoded::Incomplete) => return false,
            Ok(Decoded::End) => {
                self.next = reading.after;
                self.whole.extend(self.reading.take().map(|reading| reading.request));
            }
            Err(_) => self.next = Next::Close,
        }
        true
    }

    fn read_head(&mut self) -> bool {
        let head = match RequestHead::parse(&self.received) {
            Ok(None) => return false,
            Ok(Some(head)) => head,
            Err(_) => {
                self.next = Next::Close;
                return true;
            }
        };
        let request = WholeRequest {
            method: head.method.to_owned(),
            target: head.target.to_owned(),
            fields: super::ours(head.fields),
            body: Vec::new(),
        };
        let body = match head.body {
            RequestBody::Length(length) => BodyDecoder::with_length(length),
            RequestBody::Chunked => BodyDecoder::chunked(),
        };
        let after = if head.keeps_alive { Next::Wait } else { Next::Close };
        let length = head.length;
        self.received.advance(length);
        self.reading = Some(Reading { request, body, after });
        true
    }
}

fn hypers(bytes: &[u8]) -> Vec<WholeRequest> {
    let seen = RefCell::new(Vec::new());
    let serve = async |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        if let Ok(body) = body.collect().await {
            seen.borrow_mut().push(WholeRequest {
                method: head.method.to_string(),
                target: head.uri.to_string(),
                fields: super::hypers(&head.headers),
                body: body.to_bytes().to_vec(),
            });
        }
        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
    };
    let io = TokioIo::new(tokio::io::join(bytes, tokio::io::sink()));
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .max_headers(MAX_FIELDS)
        .serve_connection(io, service_fn(serve));
    // The result says no more than how the connection ended.
    drop(polling::run(connection));
    seen.into_inner()
}
