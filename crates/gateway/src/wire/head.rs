//! Heads of HTTP/1.1 messages: which requests are turns, and what a response begins with.

use std::time::{Duration, UNIX_EPOCH};

use bytes::BytesMut;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderName, HeaderValue, Method, Request};
use toolgate_h1::{HeadError, RequestBody, RequestHead, Version, write};
use toolgate_state::UnixMillis;
use uuid::Uuid;

use crate::http::Api;
use crate::turn::{ID_NAMES, TurnBody, TurnReply};

/// What an HTTP/2 client sends first.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The headers that anything on the way of a turn reads. The others are skipped.
static KEPT: [(&str, HeaderName); 14] = [
    ("host", HOST),
    ("origin", ORIGIN),
    ("content-type", CONTENT_TYPE),
    ("authorization", AUTHORIZATION),
    ("sec-fetch-site", HeaderName::from_static("sec-fetch-site")),
    ("x-api-key", HeaderName::from_static("x-api-key")),
    ("x-session-id", HeaderName::from_static("x-session-id")),
    ("idempotency-key", HeaderName::from_static("idempotency-key")),
    ("x-stainless-retry-count", HeaderName::from_static("x-stainless-retry-count")),
    ("cache-control", CACHE_CONTROL),
    ("anthropic-version", HeaderName::from_static("anthropic-version")),
    ("anthropic-beta", HeaderName::from_static("anthropic-beta")),
    ("openai-organization", HeaderName::from_static("openai-organization")),
    ("openai-beta", HeaderName::from_static("openai-beta")),
];

/// Headers that change how a message is read or answered. hyper knows what they ask for.
const UNUSUAL: [&str; 4] = ["expect", "upgrade", "trailer", "content-encoding"];

/// What was found at the front of the received bytes.
pub(super) enum Found {
    /// The head is incomplete.
    Incomplete,
    /// A turn that can be served here.
    Turn(Box<TurnRequest>),
    /// A valid request of another kind, or HTTP/2: hyper serves it.
    Other,
}

/// The head of a request for a turn.
pub(super) struct TurnRequest {
    pub(super) api: Api,
    /// With the headers of [`KEPT`].
    pub(super) request: Request<()>,
    pub(super) head_bytes: usize,
    pub(super) body_bytes: usize,
    pub(super) keeps_alive: bool,
}

/// Reads the head of the next request. An error means that nothing on this connection can be trusted any more.
pub(super) fn find(received: &[u8], max_body_bytes: usize) -> Result<Found, HeadError> {
    if received.starts_with(HTTP2_PREFACE) {
        return Ok(Found::Other);
    }
    if HTTP2_PREFACE.starts_with(received) {
        return Ok(Found::Incomplete);
    }
    let Some(head) = RequestHead::parse(received)? else { return Ok(Found::Incomplete) };
    Ok(turn(&head, max_body_bytes).map_or(Found::Other, |turn| Found::Turn(Box::new(turn))))
}

fn turn(head: &RequestHead<'_>, max_body_bytes: usize) -> Option<TurnRequest> {
    if head.method != "POST" || head.version != Version::Http11 {
        return None;
    }
    let api = Api::at(head.target.split_once('?').map_or(head.target, |(path, _)| path))?;
    let RequestBody::Length(length) = head.body else { return None };
    let body_bytes = usize::try_from(length).ok().filter(|length| *length <= max_body_bytes)?;
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = api.uri().clone();
    for field in head.fields {
        if UNUSUAL.iter().any(|name| field.is(name)) {
            return None;
        }
        if let Some((_, name)) = KEPT.iter().find(|(text, _)| field.is(text)) {
            request.headers_mut().append(name, HeaderValue::from_bytes(field.value).ok()?);
        }
    }
    Some(TurnRequest { api, request, head_bytes: head.length, body_bytes, keeps_alive: head.keeps_alive })
}

/// What becomes of the connection after a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterReply {
    KeepAlive,
    Close,
}

/// Writes the head of a response. A body without a length is sent in chunks.
pub(super) fn write_head(reply: &TurnReply, date: UnixMillis, after: AfterReply, out: &mut BytesMut) {
    let reason = reply.status.canonical_reason().unwrap_or_default();
    write::pieces(out, &[b"HTTP/1.1 ", reply.status.as_str().as_bytes(), b" ", reason.as_bytes(), b"\r\n"]);
    for (name, value) in &reply.fields {
        write::field(out, name.as_str().as_bytes(), value.as_bytes());
    }
    if let Some(id) = reply.id {
        let mut text = Uuid::encode_buffer();
        let text = id.hyphenated().encode_lower(&mut text);
        for name in ID_NAMES {
            write::field(out, name.as_bytes(), text.as_bytes());
        }
    }
    let date = UNIX_EPOCH + Duration::from_millis(u64::try_from(date.0).unwrap_or_default());
    write::field(out, b"date", httpdate::fmt_http_date(date).as_bytes());
    match &reply.body {
        TurnBody::Whole(whole) => write::content_length(out, whole.bytes.len()),
        TurnBody::Stream(_) => write::chunked_encoding(out),
    }
    if after == AfterReply::Close {
        write::field(out, b"connection", b"close");
    }
    write::end_of_head(out);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Response, StatusCode};

    use super::*;

    const TURN: &str = "POST /v1/messages?beta=true HTTP/1.1\r\nHost: here\r\nX-Api-Key: k\r\nCookie: c\r\ncontent-length: 12\r\n";

    fn found(text: &str) -> Result<Found, HeadError> {
        find(text.as_bytes(), 1000)
    }

    #[test]
    fn an_ordinary_turn_is_served_here() {
        let text = format!("{TURN}Connection: Keep-Alive\r\n\r\n{{body");
        let Ok(Found::Turn(turn)) = found(&text) else { panic!("a turn") };
        assert_eq!((turn.api, turn.body_bytes, turn.keeps_alive), (Api::Messages, 12, true));
        assert_eq!(turn.request.uri().path(), "/v1/messages");
        assert_eq!(turn.request.headers()["x-api-key"], "k");
        assert_eq!(turn.request.headers().len(), 2, "nothing reads cookies");
        assert_eq!(&text[turn.head_bytes..], "{body");
        let closing = format!("{TURN}connection: close\r\n\r\n");
        assert!(matches!(found(&closing), Ok(Found::Turn(turn)) if !turn.keeps_alive));
    }

    #[test]
    fn kept_names_equal_their_text() {
        for (text, name) in &KEPT {
            assert_eq!(name, text);
        }
    }

    #[test]
    fn half_a_head_and_half_a_preface_are_incomplete() {
        let turn = format!("{TURN}\r\n");
        let preface = str::from_utf8(HTTP2_PREFACE).unwrap();
        for text in [turn.as_str(), preface] {
            for end in 0..text.len() {
                assert!(matches!(found(&text[..end]), Ok(Found::Incomplete)), "{:?}", &text[..end]);
            }
            assert!(!matches!(found(text), Ok(Found::Incomplete)));
        }
    }

    #[test]
    fn valid_requests_of_other_kinds_go_to_hyper() {
        let fields = ["expect: 100-continue", "upgrade: h2c", "content-encoding: gzip", "trailer: x"];
        let mut others: Vec<String> =
            fields.iter().map(|field| format!("{TURN}{field}\r\n\r\nbody")).collect();
        let replaced = [
            ("content-length: 12", "content-length: 1001"),
            ("content-length: 12", "transfer-encoding: chunked"),
            ("HTTP/1.1", "HTTP/1.0"),
            ("POST", "GET"),
            ("/v1/messages?", "/v1/messages/count_tokens?"),
        ];
        others.extend(replaced.map(|(from, to)| format!("{}\r\nbody", TURN.replace(from, to))));
        others.push("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned());
        for text in others {
            assert!(matches!(found(&text), Ok(Found::Other)), "{text:?}");
        }
    }

    #[test]
    fn malformed_requests_go_nowhere() {
        for field in
            ["transfer-encoding: chunked", "Transfer-Encoding : x", "content-length: 12", "host: b", " fold"]
        {
            assert!(found(&format!("{TURN}{field}\r\n\r\nbody")).is_err(), "{field:?}");
        }
        assert!(found(&format!("{TURN}\n")).is_err());
        assert!(found("PRI * HTTP/3.0\r\n\r\n").is_err());
        assert!(
            found(&format!("{}\r\n", TURN.replace("/v1/messages?", "http://here/v1/messages?"))).is_err()
        );
    }

    #[test]
    fn a_response_says_how_long_its_body_is_and_whether_it_is_the_last() {
        let mut response = Response::new(TurnBody::from(Bytes::from_static(b"nothing")));
        *response.status_mut() = StatusCode::NOT_FOUND;
        response.headers_mut().insert("x-name", HeaderValue::from_static("value"));
        let mut reply = TurnReply::from(response);
        reply.id = Some(Uuid::from_u128(7));
        let written = |after| {
            let mut out = BytesMut::new();
            write_head(&reply, UnixMillis(784_111_777_999), after, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        let head = "HTTP/1.1 404 Not Found\r\nx-name: value\r\nrequest-id: 00000000-0000-0000-0000-000000000007\r\nx-request-id: 00000000-0000-0000-0000-000000000007\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 7\r\n";
        assert_eq!(written(AfterReply::KeepAlive), format!("{head}\r\n"));
        assert_eq!(written(AfterReply::Close), format!("{head}connection: close\r\n\r\n"));
    }
}
