//! The heads of HTTP/1.1 messages: a turn's request read, its response written.

use std::cell::RefCell;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::time::{Duration, UNIX_EPOCH};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderName, HeaderValue, Method, Request};
use memchr::memmem;
use toolgate_state::UnixMillis;
use uuid::Uuid;

use super::{After, Sending};
use crate::http::Api;
use crate::turn::{ID_NAMES, TurnBody, TurnReply};

/// Fields of a request's head. One with more is no ordinary one.
const MAX_FIELDS: usize = 64;

/// The fields that anybody looks at who answers a turn, with their names as text beside them, which is what a name
/// is compared with. All others are passed over.
static KEPT: [(&str, HeaderName); 11] = [
    ("host", HOST),
    ("origin", ORIGIN),
    ("content-type", CONTENT_TYPE),
    ("authorization", AUTHORIZATION),
    ("sec-fetch-site", HeaderName::from_static("sec-fetch-site")),
    ("x-api-key", HeaderName::from_static("x-api-key")),
    ("x-session-id", HeaderName::from_static("x-session-id")),
    ("anthropic-version", HeaderName::from_static("anthropic-version")),
    ("anthropic-beta", HeaderName::from_static("anthropic-beta")),
    ("openai-organization", HeaderName::from_static("openai-organization")),
    ("openai-beta", HeaderName::from_static("openai-beta")),
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
    /// As it came, in memory of its own: it may be kept for long.
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
        let head = Self::read(&Bytes::copy_from_slice(&received[..length]), max_body_bytes)?;
        received.advance(length);
        Some(head)
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
                if body_bytes.replace(length(field.value)?).is_some() {
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
            } else if let Some((_, name)) = KEPT.iter().find(|(text, _)| is(text)) {
                let value = HeaderValue::from_maybe_shared(text.slice_ref(field.value)).ok()?;
                request.headers_mut().append(name, value);
            }
        }
        let body_bytes = body_bytes.filter(|length| *length <= max_body_bytes)?;
        Some(Self { api, request, body_bytes, closes, text: text.clone() })
    }
}

/// Digits and nothing else: whoever reads a length otherwise than the proxy before us sees another request.
pub(super) fn length(value: &[u8]) -> Option<usize> {
    let text = str::from_utf8(value).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Writes the head of a response, its last empty line included. A body without a length goes out in chunks.
pub(super) fn write(reply: &TurnReply, sending: Sending, out: &mut BytesMut) {
    put(out, &[b"HTTP/1.1 ", reply.status.as_str().as_bytes(), b" "]);
    put(out, &[reply.status.canonical_reason().unwrap_or_default().as_bytes(), b"\r\n"]);
    for (name, value) in &reply.fields {
        put(out, &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    if let Some(id) = reply.id {
        let mut text = Uuid::encode_buffer();
        let text = id.hyphenated().encode_lower(&mut text);
        for name in ID_NAMES {
            put(out, &[name.as_bytes(), b": ", text.as_bytes(), b"\r\n"]);
        }
    }
    put_date(out, sending.at);
    match &reply.body {
        TurnBody::Whole(whole) => {
            put_number(out, format_args!("content-length: {}\r\n", whole.bytes.len()));
        }
        TurnBody::Stream(_) => put(out, &[b"transfer-encoding: chunked\r\n"]),
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

#[cfg(test)]
mod tests {
    use http::{Response, StatusCode};

    use super::*;

    const TURN: &str = "POST /v1/messages?beta=true HTTP/1.1\r\nHost: here\r\nX-Api-Key: k\r\nCookie: c\r\ncontent-length: 12\r\n";

    fn take(text: &str) -> (Option<Head>, String) {
        let mut received = BytesMut::from(text);
        let head = Head::take(&mut received, 1000);
        (head, String::from_utf8_lossy(&received).into_owned())
    }

    #[test]
    fn an_ordinary_turn_is_taken_and_its_body_left() {
        let (head, left) = take(&format!("{TURN}Connection: Keep-Alive\r\n\r\n{{body"));
        let head = head.expect("an ordinary turn");
        assert_eq!((head.api, head.body_bytes, head.closes), (Api::Messages, 12, false));
        assert_eq!(head.request.uri().path(), "/v1/messages");
        assert_eq!(head.request.headers()["x-api-key"], "k");
        assert_eq!(head.request.headers().len(), 2, "nobody looks at cookies");
        assert_eq!(left, "{body");
        assert!(take(&format!("{TURN}connection: close\r\n\r\n")).0.is_some_and(|head| head.closes));
    }

    #[test]
    fn the_names_of_what_is_kept_are_their_text() {
        for (text, name) in &KEPT {
            assert_eq!(name, text);
        }
    }

    #[test]
    fn half_a_head_is_left_as_it_is() {
        let whole = format!("{TURN}\r\n");
        for end in 0..whole.len() {
            let (head, left) = take(&whole[..end]);
            assert!(head.is_none() && left == whole[..end], "{:?}", &whole[..end]);
        }
    }

    #[test]
    fn whatever_is_unusual_is_left_as_it_is() {
        let fields = [
            "transfer-encoding: chunked",
            "Transfer-Encoding : chunked",
            "expect: 100-continue",
            "upgrade: h2c",
            "connection: upgrade",
            "connection: close, te",
            "content-length: 12",
            "content-length: 13",
            "content-encoding: gzip",
            " folded",
            "no colon",
        ];
        let mut unusual: Vec<String> =
            fields.iter().map(|field| format!("{TURN}{field}\r\n\r\nbody")).collect();
        let replaced = [
            ("content-length: 12", "content-length: 1001"),
            ("content-length: 12", "content-length: +1"),
            ("content-length: 12", "content-length: 1, 1"),
            ("content-length: 12", "content-length:"),
            ("content-length: 12", "accept: */*"),
            ("HTTP/1.1", "HTTP/1.0"),
            ("HTTP/1.1", "HTTP/2.0"),
            ("POST", "GET"),
            ("/v1/messages?", "/v1/messages/count_tokens?"),
            ("/v1/messages?", "http://here/v1/messages?"),
            ("\r\n", "\n"),
        ];
        unusual.extend(replaced.map(|(from, to)| format!("{}\r\nbody", TURN.replace(from, to))));
        unusual.push(format!("{TURN}{}\r\n", "a: b\r\n".repeat(MAX_FIELDS)));
        unusual.push("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned());
        for text in unusual {
            let (head, left) = take(&text);
            assert!(head.is_none() && left == text, "{text:?}");
        }
    }

    #[test]
    fn a_response_says_how_long_its_body_is_and_whether_it_was_the_last() {
        let mut response = Response::new(TurnBody::from(Bytes::from_static(b"nothing")));
        *response.status_mut() = StatusCode::NOT_FOUND;
        response.headers_mut().insert("x-name", HeaderValue::from_static("value"));
        let mut reply = TurnReply::from(response);
        reply.id = Some(Uuid::from_u128(7));
        let written = |after| {
            let mut out = BytesMut::new();
            write(&reply, Sending { at: UnixMillis(784_111_777_999), after }, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        let head = "HTTP/1.1 404 Not Found\r\nx-name: value\r\nrequest-id: 00000000-0000-0000-0000-000000000007\r\nx-request-id: 00000000-0000-0000-0000-000000000007\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 7\r\n";
        assert_eq!(written(After::Stay), format!("{head}\r\n"));
        assert_eq!(written(After::Close), format!("{head}connection: close\r\n\r\n"));
    }

    #[test]
    fn an_empty_piece_does_not_end_a_body() {
        let mut out = BytesMut::new();
        for piece in ["", "0123456789abcdefg", ""] {
            write_chunk(piece.as_bytes(), &mut out);
        }
        write_last_chunk(&mut out);
        assert_eq!(out, "11\r\n0123456789abcdefg\r\n0\r\n\r\n");
    }
}
