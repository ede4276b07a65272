//! The head of a response, as a client reads it.

use crate::body::BodyDecoder;
use crate::facts::HeadFacts;
use crate::fields::Fields;
use crate::syntax::{HeadError, Version, decimal, is_text_byte, parse_head};

/// The head of a response.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'b> {
    /// 100 to 599.
    pub status: u16,
    /// The header fields.
    pub fields: Fields<'b>,
    facts: HeadFacts<'b>,
    version: Version,
    length: usize,
}

impl<'b> ResponseHead<'b> {
    /// Reads the head at the front of what was received. `None` while it is incomplete.
    pub fn parse(received: &'b [u8]) -> Result<Option<Self>, HeadError> {
        let Some(head) = parse_head(received)? else { return Ok(None) };
        let (version, status) = status_line(head.start_line).ok_or(HeadError::StartLine)?;
        Ok(Some(Self { status, fields: head.fields, facts: head.facts, version, length: head.length }))
    }

    /// Bytes of the head, the empty line included.
    pub fn length(&self) -> usize {
        self.length
    }

    /// An interim response: the final one follows it. 101 is none, because no other protocol was asked for.
    pub(crate) fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

    /// How the body of this answer to a `POST` ends.
    pub(crate) fn body(&self) -> Result<BodyDecoder, HeadError> {
        let (is_chunked, length) = (self.facts.is_chunked?, self.facts.content_length?);
        if is_chunked && self.version == Version::Http10 {
            return Err(HeadError::TransferEncoding);
        }
        Ok(match (self.status, is_chunked, length) {
            (101 | 204 | 304, _, _) => BodyDecoder::with_length(0),
            (_, true, _) => BodyDecoder::chunked(),
            (_, false, Some(length)) => BodyDecoder::with_length(length),
            (_, false, None) => BodyDecoder::until_close(),
        })
    }

    /// Whether the host will answer another request on this connection. A response with two different ends is read as
    /// RFC 9112 says, but nothing that follows it can be trusted.
    pub(crate) fn keeps_alive(&self) -> bool {
        let framing = (self.facts.is_chunked, self.facts.content_length);
        let has_one_end = match self.status {
            101 => false,
            204 | 304 => matches!(framing, (Ok(false), Ok(None | Some(0)))),
            _ => !matches!(framing, (Ok(true), Ok(Some(_)))),
        };
        has_one_end && self.facts.keeps_alive(self.version)
    }
}

fn status_line(line: &[u8]) -> Option<(Version, u16)> {
    let (version, rest) = line.split_at_checked("HTTP/1.1 ".len())?;
    let version = match version {
        b"HTTP/1.1 " => Version::Http11,
        b"HTTP/1.0 " => Version::Http10,
        _ => return None,
    };
    let (status, reason) = rest.split_at_checked(3)?;
    let status = decimal(status).and_then(|status| u16::try_from(status).ok())?;
    let is_reason = reason.is_empty() || (reason[0] == b' ' && reason.iter().copied().all(is_text_byte));
    (is_reason && (100..=599).contains(&status)).then_some((version, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<ResponseHead<'_>>, HeadError> {
        ResponseHead::parse(text.as_bytes())
    }

    #[track_caller]
    fn head(text: &str) -> ResponseHead<'_> {
        parse(text).expect("a valid head").expect("a complete head")
    }

    #[test]
    fn half_a_head_is_incomplete() {
        let text = "HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\n\r\n";
        for end in 0..text.len() {
            assert!(matches!(parse(&text[..end]), Ok(None)), "{:?}", &text[..end]);
        }
        assert_eq!(head(text).status, 429);
        assert_eq!(
            head(text).fields.iter().next().map(|field| (field.name, field.value)),
            Some(("Retry-After", &b"3"[..]))
        );
    }

    #[test]
    fn a_status_line_is_a_version_a_status_and_perhaps_a_reason() {
        for line in ["HTTP/1.1 200 OK", "HTTP/1.1 200 ", "HTTP/1.1 200", "HTTP/1.0 599 \u{e9} x"] {
            assert!(matches!(parse(&format!("{line}\r\n\r\n")), Ok(Some(_))), "{line:?}");
        }
        for line in [
            "SSH-2.0-x",
            "HTTP/2 200 OK",
            "HTTP/1.1 99 OK",
            "HTTP/1.1 600 OK",
            "HTTP/1.1 2000",
            "HTTP/1.1  200",
            "",
        ] {
            let text = format!("{line}\r\n\r\n");
            assert_eq!(parse(&text).map(|_| ()), Err(HeadError::StartLine), "{line:?}");
        }
    }

    #[test]
    fn the_head_says_where_the_body_ends() {
        let body = |status: &str, fields: &str| head(&format!("HTTP/1.1 {status}\r\n{fields}\r\n")).body();
        assert_eq!(body("200", "Transfer-Encoding: Chunked\r\n"), Ok(BodyDecoder::chunked()));
        assert_eq!(
            body("200", "content-length: 7\r\ntransfer-encoding: chunked\r\n"),
            Ok(BodyDecoder::chunked())
        );
        assert_eq!(body("200", "content-length: 7\r\n"), Ok(BodyDecoder::with_length(7)));
        assert_eq!(body("200", ""), Ok(BodyDecoder::until_close()));
        for status in ["101", "204", "304"] {
            assert_eq!(body(status, "content-length: 7\r\n"), Ok(BodyDecoder::with_length(0)));
        }
        assert_eq!(body("200", "content-length: 7\r\ncontent-length: 7\r\n"), Err(HeadError::ContentLength));
        assert_eq!(body("200", "transfer-encoding: gzip, chunked\r\n"), Err(HeadError::TransferEncoding));
    }

    #[test]
    fn a_response_of_http_1_0_is_never_chunked() {
        let text = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(head(text).body(), Err(HeadError::TransferEncoding));
    }

    #[test]
    fn the_head_says_whether_the_connection_stays_open() {
        assert!(head("HTTP/1.1 200 OK\r\n\r\n").keeps_alive());
        assert!(!head("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n").keeps_alive());
        assert!(!head("HTTP/1.0 200 OK\r\n\r\n").keeps_alive());
        assert!(head("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n").keeps_alive());
        assert!(!head("HTTP/1.1 101 OK\r\n\r\n").keeps_alive());
        assert!(head("HTTP/1.1 204 OK\r\ncontent-length: 0\r\n\r\n").keeps_alive());
        assert!(!head("HTTP/1.1 204 OK\r\ncontent-length: 1\r\n\r\n").keeps_alive());
        assert!(!head("HTTP/1.1 204 OK\r\ntransfer-encoding: chunked\r\n\r\n").keeps_alive());
        assert!(!head("HTTP/1.0 200 OK\r\nconnection: keep-alive, \u{e9}\r\n\r\n").keeps_alive());
        assert!(
            !head("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n").keeps_alive()
        );
    }
}
