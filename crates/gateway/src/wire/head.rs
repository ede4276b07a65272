//! The heads of HTTP/1.1 messages: a turn's request read, its response written.

use std::cell::RefCell;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::time::{Duration, UNIX_EPOCH};

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Method, Request};
use memchr::memmem;
use toolgate_state::UnixMillis;

use super::{After, Sending};
use crate::http::Api;

/// Fields of a request's head. One with more is no ordinary one.
const MAX_FIELDS: usize = 64;

/// The fields that anybody looks at who answers a turn. All others are passed over.
const KEPT: [HeaderName; 11] = [
    HOST,
    ORIGIN,
    CONTENT_TYPE,
    AUTHORIZATION,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-session-id"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-beta"),
];

/// Fields that change how a message is read or answered. What they ask for is done elsewhere.
const UNUSUAL: [&str; 5] = ["transfer-encoding", "expect", "upgrade", "trailer", "content-encoding"];

/// The head of a request for a turn.
pub(super) struct Head {
    pub(super) api: Api,
    /// With the fields that matter.
    pub(super) request: Request<()>,
    pub(super) body_bytes: usize,
    /// The client wants no other request answered on this connection.
    pub(super) closes: bool,
    /// As it came.
    pub(super) text: Bytes,
}

impl Head {
    /// Takes the head of an ordinary turn off the front of what came. `None`, and everything left as it was, if it is
    /// not complete, asks for something else, or says anything that is not plain to understand.
    pub(super) fn take(received: &mut BytesMut, max_body_bytes: usize) -> Option<Self> {
        const END: &[u8] = b"\r\n\r\n";
        if !received.starts_with(b"POST /v1/") {
            return None;
        }
        let length = memmem::find(received, END)? + END.len();
        let text = received.split_to(length).freeze();
        let head = Self::read(&text, max_body_bytes);
        if head.is_none() {
            let rest = received.split();
            received.extend_from_slice(&text);
            received.extend_from_slice(&rest);
        }
        head
    }

    fn read(text: &Bytes, max_body_bytes: usize) -> Option<Self> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut head = httparse::Request::new(&mut []);
        let read = head.parse_with_uninit_headers(text, &mut fields).ok()?;
        if read.is_partial() || head.version != Some(1) {
            return None;
        }
        let target = head.path?;
        let api = Api::at(target.split_once('?').map_or(target, |(path, _)| path))?;
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = api.uri().clone();
        let (mut body_bytes, mut closes) = (None, false);
        for field in head.headers.iter() {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let length = length(field.value)?;
                if body_bytes.replace(length).is_some() {
                    return None;
                }
            } else if is("connection") {
                closes = match field.value {
                    value if value.eq_ignore_ascii_case(b"keep-alive") => closes,
                    value if value.eq_ignore_ascii_case(b"close") => true,
                    _ => return None,
                };
            } else if UNUSUAL.iter().any(|name| is(name)) {
                return None;
            } else if let Some(name) = KEPT.iter().find(|name| is(name.as_str())) {
                let value = HeaderValue::from_maybe_shared(text.slice_ref(field.value)).ok()?;
                request.headers_mut().append(name, value);
            }
        }
        let body_bytes = body_bytes.filter(|length| *length <= max_body_bytes)?;
        Some(Self { api, request, body_bytes, closes, text: text.clone() })
    }
}

/// Digits and nothing else: whoever reads a length otherwise than the proxy before us sees another request.
fn length(value: &[u8]) -> Option<usize> {
    let text = str::from_utf8(value).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Writes the head of a response, its last empty line included. Without a length the body goes out in chunks.
pub(super) fn write(parts: &Parts, body_bytes: Option<usize>, sending: Sending, out: &mut BytesMut) {
    put(out, &[b"HTTP/1.1 ", parts.status.as_str().as_bytes(), b" "]);
    put(out, &[parts.status.canonical_reason().unwrap_or_default().as_bytes(), b"\r\n"]);
    for (name, value) in &parts.headers {
        put(out, &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    put_date(out, sending.at);
    match body_bytes {
        Some(length) => put_number(out, format_args!("content-length: {length}\r\n")),
        None => put(out, &[b"transfer-encoding: chunked\r\n"]),
    }
    if sending.after == After::Close {
        put(out, &[b"connection: close\r\n"]);
    }
    put(out, &[b"\r\n"]);
}

/// Writes one chunk of a body.
pub(super) fn write_chunk(bytes: &[u8], out: &mut BytesMut) {
    if bytes.is_empty() {
        // An empty chunk would end the body.
        return;
    }
    out.reserve(bytes.len() + 16);
    put_number(out, format_args!("{:x}\r\n", bytes.len()));
    put(out, &[bytes, b"\r\n"]);
}

/// What stands after the last chunk.
pub(super) fn write_last_chunk(out: &mut BytesMut) {
    put(out, &[b"0\r\n\r\n"]);
}

fn put(out: &mut BytesMut, texts: &[&[u8]]) {
    for text in texts {
        out.put_slice(text);
    }
}

fn put_number(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    // Writing into memory that grows cannot fail.
    out.write_fmt(text).ok();
}

/// The line that says what time it is, written anew once a second.
fn put_date(out: &mut BytesMut, at: UnixMillis) {
    thread_local! {
        static LINE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let second = u64::try_from(at.0 / 1000).unwrap_or_default();
    LINE.with_borrow_mut(|(written, line)| {
        if *written != second || line.is_empty() {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            (*written, *line) = (second, format!("date: {date}\r\n"));
        }
        out.put_slice(line.as_bytes());
    });
}
