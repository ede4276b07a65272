//! The head of a request, as a server reads it.

use crate::facts::Host;
use crate::fields::Fields;
use crate::syntax::{HeadError, Version, is_token_byte, parse_head};

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'b> {
    /// `POST`, in the case in which it was sent.
    pub method: &'b str,
    /// The path with its query. It begins with `/`: a whole URL, which a client sends to a proxy, is refused, because
    /// its host could differ from the `host` field.
    pub target: &'b str,
    /// The version the client speaks.
    pub version: Version,
    /// The header fields.
    pub fields: Fields<'b>,
    /// How the body is delimited.
    pub body: RequestBody,
    /// Whether the client may send another request on this connection.
    pub keeps_alive: bool,
    /// Bytes of the head, the empty line included.
    pub length: usize,
}

/// How the body of a request is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// The body has this many bytes; a request without a length has none.
    Length(u64),
    /// The body comes in chunks.
    Chunked,
}

impl<'b> RequestHead<'b> {
    /// Reads the head at the front of what was received. `None` while it is incomplete. An error means that the
    /// connection cannot be trusted any further: the end of this request is not known.
    pub fn parse(received: &'b [u8]) -> Result<Option<Self>, HeadError> {
        let Some(head) = parse_head(received)? else { return Ok(None) };
        let (method, target, version) = request_line(head.start_line).ok_or(HeadError::StartLine)?;
        let facts = head.facts;
        let is_addressed = match facts.host {
            Host::One(host) => host.iter().copied().all(is_host_byte),
            Host::Missing => version == Version::Http10,
            Host::Several => false,
        };
        if !is_addressed {
            return Err(HeadError::Host);
        }
        let body = match (facts.is_chunked?, facts.content_length?) {
            (true, Some(_)) => return Err(HeadError::AmbiguousLength),
            (true, None) if version == Version::Http10 => return Err(HeadError::TransferEncoding),
            (true, None) => RequestBody::Chunked,
            (false, length) => RequestBody::Length(length.unwrap_or(0)),
        };
        let keeps_alive = facts.keeps_alive(version);
        Ok(Some(Self {
            method,
            target,
            version,
            fields: head.fields,
            body,
            keeps_alive,
            length: head.length,
        }))
    }
}

fn request_line(line: &[u8]) -> Option<(&str, &str, Version)> {
    let line = str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let version = match version {
        "HTTP/1.1" => Version::Http11,
        "HTTP/1.0" => Version::Http10,
        _ => return None,
    };
    // CONNECT asks for a tunnel to another host; what follows its head is no body and no request.
    let is_method = !method.is_empty() && method != "CONNECT" && method.bytes().all(is_token_byte);
    let is_target = target.starts_with('/') && target.bytes().all(is_target_byte);
    (is_method && is_target && words.next().is_none()).then_some((method, target, version))
}

/// The bytes of a path and its query: what URLs allow, and what clients often leave unescaped. `#` would begin a
/// fragment, which some programs cut off.
fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'`')
}

/// The bytes of a name or address and its port (RFC 3986, section 3.2.2). URLs also allow a comma, which others read
/// as a second host.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{MAX_FIELDS, MAX_HEAD_BYTES};

    const POST: &str = "POST /v1/messages?beta=true HTTP/1.1\r\nHost: here\r\n";

    fn parse(text: &str) -> Result<Option<RequestHead<'_>>, HeadError> {
        RequestHead::parse(text.as_bytes())
    }

    #[test]
    fn a_head_gives_its_parts_and_leaves_the_body() {
        let text = format!("{POST}X-Api-Key: \t k e y \t\r\nContent-Length: 12\r\n\r\n{{body");
        let head = parse(&text).unwrap().unwrap();
        assert_eq!(
            (head.method, head.target, head.version),
            ("POST", "/v1/messages?beta=true", Version::Http11)
        );
        assert_eq!(head.body, RequestBody::Length(12));
        assert_eq!(&text[head.length..], "{body");
        let fields: Vec<_> = head.fields.iter().map(|field| (field.name, field.value)).collect();
        let expected: [(&str, &[u8]); 3] =
            [("Host", b"here"), ("X-Api-Key", b"k e y"), ("Content-Length", b"12")];
        assert_eq!(fields, expected);
        assert!(head.keeps_alive);
    }

    #[test]
    fn half_a_head_is_incomplete() {
        let text = format!("{POST}content-length: 1\r\n\r\n");
        for end in 0..text.len() {
            assert!(matches!(parse(&text[..end]), Ok(None)), "{:?}", &text[..end]);
        }
        assert!(matches!(parse(&text), Ok(Some(_))));
    }

    #[test]
    fn the_connection_header_decides_whether_another_request_may_follow() {
        let keeps = |fields: &str| parse(&format!("{POST}{fields}\r\n")).unwrap().unwrap().keeps_alive;
        assert!(keeps("") && keeps("Connection: Keep-Alive\r\n"));
        assert!(!keeps("connection: Close\r\n") && !keeps("connection: te, close\r\n"));
        let old =
            |fields: &str| parse(&format!("GET / HTTP/1.0\r\n{fields}\r\n")).unwrap().unwrap().keeps_alive;
        assert!(!old("") && old("connection: keep-alive\r\n"));
        assert!(!old("connection: keep-alive, \u{e9}\r\n") && !keeps("connection: \"x\"\r\n"));
    }

    #[track_caller]
    fn check_refused(text: &str, expected: HeadError) {
        assert_eq!(parse(text).map(|head| head.is_some()), Err(expected), "{text:?}");
    }

    #[test]
    fn lines_end_in_cr_lf_and_nothing_else() {
        check_refused(&format!("{POST}\n"), HeadError::BareLineFeed);
        check_refused("POST / HTTP/1.1\nhost: a\n\n", HeadError::BareLineFeed);
        check_refused(&format!("{POST}x: a\rb\r\n\r\n"), HeadError::FieldValue);
        check_refused("\r\nPOST / HTTP/1.1\r\nhost: a\r\n\r\n", HeadError::StartLine);
    }

    #[test]
    fn fields_are_a_name_a_colon_and_a_value_on_one_line() {
        let with = |line: &str| format!("{POST}{line}\r\n\r\n");
        check_refused(&with(" folded"), HeadError::Folded);
        check_refused(&with("\tfolded"), HeadError::Folded);
        check_refused(&with("name : v"), HeadError::FieldName);
        check_refused(&with(": v"), HeadError::FieldName);
        check_refused(&with("no colon"), HeadError::FieldName);
        check_refused(&with("a(b): v"), HeadError::FieldName);
        check_refused(&with("a: \0"), HeadError::FieldValue);
        check_refused(&with("a: \x7f"), HeadError::FieldValue);
        assert!(matches!(parse(&with("a: \u{e9}\tb")), Ok(Some(_))));
    }

    #[test]
    fn a_request_line_has_three_words() {
        for line in [
            "",
            "POST",
            "POST /",
            "POST  / HTTP/1.1",
            "POST / HTTP/1.1 ",
            " POST / HTTP/1.1",
            "POST / HTTP/2.0",
            "POST / http/1.1",
            "PO(T / HTTP/1.1",
            "POST /\u{e9} HTTP/1.1",
            "POST /\t HTTP/1.1",
            "POST /a#b HTTP/1.1",
            "POST /<a> HTTP/1.1",
            "POST /`a` HTTP/1.1",
            "POST /?a=\"b\" HTTP/1.1",
            "POST http://here/a HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "CONNECT here:80 HTTP/1.1",
            "CONNECT / HTTP/1.1",
        ] {
            check_refused(&format!("{line}\r\nhost: a\r\n\r\n"), HeadError::StartLine);
        }
    }

    #[test]
    fn the_length_of_the_body_can_be_read_in_one_way_only() {
        let with = |fields: &str| format!("{POST}{fields}\r\n\r\n");
        for length in ["+1", "-1", "1, 1", "", "0x1", "1 1", "9223372036854775808", "99999999999999999999"] {
            check_refused(&with(&format!("content-length: {length}")), HeadError::ContentLength);
        }
        check_refused(&with("content-length: 1\r\nContent-Length: 1"), HeadError::ContentLength);
        check_refused(&with("transfer-encoding: chunked\r\ncontent-length: 1"), HeadError::AmbiguousLength);
        for coding in ["gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", ""] {
            check_refused(&with(&format!("transfer-encoding: {coding}")), HeadError::TransferEncoding);
        }
        check_refused("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", HeadError::TransferEncoding);
        let chunked = with("Transfer-Encoding: Chunked");
        assert_eq!(parse(&chunked).unwrap().unwrap().body, RequestBody::Chunked);
        assert_eq!(parse(&with("a: b")).unwrap().unwrap().body, RequestBody::Length(0));
    }

    #[test]
    fn a_request_names_one_host() {
        check_refused("GET / HTTP/1.1\r\n\r\n", HeadError::Host);
        check_refused(&format!("{POST}host: here\r\n\r\n"), HeadError::Host);
        for host in ["a, b", "a b", "a/b", "user@a", "a?", "\u{e9}"] {
            check_refused(&format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n"), HeadError::Host);
        }
        for host in ["", "a.example:80", "[::1]:80", "a_b-c"] {
            assert!(
                matches!(parse(&format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n")), Ok(Some(_))),
                "{host}"
            );
        }
        assert!(matches!(parse("GET / HTTP/1.0\r\n\r\n"), Ok(Some(_))));
    }

    #[test]
    fn a_head_is_bounded() {
        check_refused(&format!("{POST}a: {}", "b".repeat(MAX_HEAD_BYTES)), HeadError::TooLarge);
        check_refused(&format!("{POST}{}", "a: b\r\n".repeat(MAX_FIELDS)), HeadError::TooManyFields);
    }
}
