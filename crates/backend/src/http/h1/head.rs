//! The heads of answers in HTTP/1.1.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::StatusCode;
use thiserror::Error;

use super::framing::Framing;
use crate::http::answer_head::AnswerHead;

/// Fields of an answer's head; hosts behind several proxies send some dozens.
const MAX_FIELDS: usize = 128;

/// The largest head of an answer that is waited for.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Why a head makes no sense.
#[derive(Debug, Error)]
pub(in crate::http) enum HeadError {
    #[error("the head of its answer is malformed")]
    Malformed(#[from] httparse::Error),
    #[error("the head of its answer is larger than {MAX_HEAD_BYTES} bytes")]
    TooLarge,
    #[error("its answer has the impossible status {0}")]
    Status(u16),
    #[error("its answer has a `content-length` that is no number, or several that differ")]
    Length,
}

/// The head of an answer, and what it says about what follows.
pub(super) struct Answer {
    pub(super) head: AnswerHead,
    pub(super) framing: Framing,
    pub(super) stays_open: bool,
}

/// Takes the head of an answer off the front of what came; `None` while it is not complete.
pub(super) fn read(received: &mut BytesMut) -> Result<Option<Answer>, HeadError> {
    if received.is_empty() {
        return Ok(None);
    }
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut head = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut head, received, &mut fields)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial if received.len() > MAX_HEAD_BYTES => return Err(HeadError::TooLarge),
        httparse::Status::Partial => return Ok(None),
    };
    let code = head.code.unwrap_or_default();
    let status = StatusCode::from_u16(code).map_err(|_| HeadError::Status(code))?;
    let is_1_0 = head.version == Some(0);
    let mut seen = Seen { head: AnswerHead::new(status), ..Seen::default() };
    for field in head.headers.iter() {
        seen.note(field)?;
    }
    received.advance(length);
    let stays_open = !seen.closes && (!is_1_0 || seen.keeps_alive);
    let framing = seen.framing();
    let stays_open = stays_open && !framing.ends_with_connection();
    Ok(Some(Answer { head: seen.head, framing, stays_open }))
}

/// What the fields of a head say.
#[derive(Default)]
struct Seen {
    head: AnswerHead,
    length: Option<u64>,
    is_chunked: bool,
    closes: bool,
    keeps_alive: bool,
}

impl Seen {
    fn note(&mut self, field: &httparse::Header<'_>) -> Result<(), HeadError> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let length = number(field.value).ok_or(HeadError::Length)?;
            if self.length.is_some_and(|earlier| earlier != length) {
                return Err(HeadError::Length);
            }
            self.length = Some(length);
        } else if is("transfer-encoding") {
            self.is_chunked =
                words(field.value).last().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
        } else if is("connection") {
            self.closes |= words(field.value).any(|word| word.eq_ignore_ascii_case(b"close"));
            self.keeps_alive |= words(field.value).any(|word| word.eq_ignore_ascii_case(b"keep-alive"));
        } else {
            self.head.note(field.name, field.value);
        }
        Ok(())
    }

    fn framing(&self) -> Framing {
        let status = self.head.status;
        let has_no_body = status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        match (has_no_body, self.is_chunked, self.length) {
            (true, _, _) => Framing::length(0),
            (false, true, _) => Framing::chunked(),
            (false, false, Some(length)) => Framing::length(length),
            (false, false, None) => Framing::until_close(),
        }
    }
}

/// The parts of a list of words with commas between them.
fn words(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn number(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value.trim_ascii()).ok()?;
    // `parse` would also take a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolgate_model::Delivery;

    use super::*;
    use crate::http::answer_head::ReplyForm;

    #[track_caller]
    fn read_all(text: &str) -> Answer {
        let mut received = BytesMut::from(text);
        for end in 0..text.len() {
            let mut part = BytesMut::from(&text[..end]);
            assert!(read(&mut part).is_ok_and(|answer| answer.is_none()), "{:?}", &text[..end]);
        }
        let answer = read(&mut received).expect("a good head").expect("a complete head");
        assert!(received.is_empty());
        answer
    }

    #[test]
    fn the_fields_that_matter_are_kept() {
        let answer = read_all(
            "HTTP/1.1 429 Too Many\r\nContent-Type: text/html\r\nServer: x\r\nRetry-After: 3\r\nContent-Length: 5\r\n\r\n",
        );
        assert_eq!(answer.head.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.head.asked_wait(), Some(Duration::from_secs(3)));
        assert_eq!(answer.head.form(Delivery::Whole), ReplyForm::Html);
        assert_eq!(answer.framing, Framing::length(5));
        assert!(answer.stays_open);
    }

    #[test]
    fn the_head_says_where_the_body_ends() {
        let framing = |fields: &str| read_all(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).framing;
        assert_eq!(framing("Transfer-Encoding: gzip, Chunked\r\n"), Framing::chunked());
        assert_eq!(framing("content-length: 7\r\ntransfer-encoding: chunked\r\n"), Framing::chunked());
        assert_eq!(framing("content-length: 7\r\ncontent-length: 7\r\n"), Framing::length(7));
        assert_eq!(framing(""), Framing::until_close());
        assert_eq!(read_all("HTTP/1.1 204 No\r\n\r\n").framing, Framing::length(0));
    }

    #[test]
    fn the_head_says_whether_the_connection_stays() {
        let stays = |text: &str| read_all(text).stays_open;
        assert!(stays("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(!stays("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: foo, Close\r\n\r\n"));
        assert!(!stays("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"));
        assert!(stays("HTTP/1.0 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"));
        assert!(!stays("HTTP/1.1 200 OK\r\n\r\n"));
    }

    #[test]
    fn a_bad_head_is_refused() {
        let refused = |text: &str| read(&mut BytesMut::from(text)).is_err();
        assert!(refused("SSH-2.0-x\r\n"));
        assert!(refused("HTTP/1.1 200 OK\r\ncontent-length: +7\r\n\r\n"));
        assert!(refused("HTTP/1.1 200 OK\r\ncontent-length: 7\r\ncontent-length: 8\r\n\r\n"));
        assert!(refused("HTTP/1.1 099 OK\r\n\r\n"));
        assert!(refused(&format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(MAX_HEAD_BYTES))));
    }
}
