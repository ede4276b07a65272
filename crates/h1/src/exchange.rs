//! One request and its response on a client's connection.
//!
//! Both directions are independent: a host may answer before it has read the whole request, and then wants the rest
//! of it while it sends its body. So the driver of an exchange writes [`Exchange::unsent`] and reads at the same time.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

use crate::body::{BodyDecoder, BodyError, Decoded};
use crate::response::ResponseHead;
use crate::syntax::HeadError;

/// The most interim responses before the final one. Hosts send a few, such as `100 Continue` or `103 Early Hints`.
const MAX_INTERIM_RESPONSES: usize = 64;

/// A request on its way out and its response on its way in.
#[derive(Debug)]
pub struct Exchange {
    head: BytesMut,
    body: Bytes,
    response: Response,
    interim_responses: usize,
    keeps_alive: bool,
}

#[derive(Debug)]
enum Response {
    /// The head of the final response has not been read.
    Awaited,
    Body(BodyDecoder),
}

/// Why an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ExchangeError {
    /// The host closed the connection before the head of its response was complete.
    #[error("the host closed the connection before it answered")]
    Closed,
    /// The head of the response is malformed.
    #[error("the head of the response is malformed")]
    Head(#[from] HeadError),
    /// Too many interim responses came before the final one.
    #[error("the host sent more than {MAX_INTERIM_RESPONSES} interim responses")]
    TooManyInterimResponses,
    /// The body of the response is malformed or incomplete.
    #[error("the body of the response is malformed")]
    Body(#[from] BodyError),
}

impl Exchange {
    /// An exchange of which nothing was sent. `head` may end with the beginning of the body.
    pub fn new(head: BytesMut, body: Bytes) -> Self {
        Self { head, body, response: Response::Awaited, interim_responses: 0, keeps_alive: false }
    }

    /// The next bytes to send; empty when the request is complete.
    pub fn unsent(&self) -> &[u8] {
        if self.head.is_empty() { &self.body } else { &self.head }
    }

    /// This many bytes of [`Exchange::unsent`] were sent.
    pub fn sent(&mut self, count: usize) {
        // What was sent is freed at once, because the response may take minutes.
        if !self.head.is_empty() {
            self.head.advance(count);
            if self.head.is_empty() {
                self.head = BytesMut::new();
            }
        } else if count < self.body.len() {
            self.body.advance(count);
        } else {
            self.body = Bytes::new();
        }
    }

    /// Reads the head of the final response, and shows it to `take`. `None` while it is incomplete. Interim responses
    /// are skipped.
    pub fn read_head<T>(
        &mut self,
        received: &mut BytesMut,
        take: impl FnOnce(&ResponseHead<'_>) -> T,
    ) -> Result<Option<T>, ExchangeError> {
        loop {
            let Some(head) = ResponseHead::parse(received)? else { return Ok(None) };
            let length = head.length();
            if head.is_interim() {
                received.advance(length);
                self.interim_responses += 1;
                if self.interim_responses > MAX_INTERIM_RESPONSES {
                    return Err(ExchangeError::TooManyInterimResponses);
                }
                continue;
            }
            self.response = Response::Body(head.body()?);
            self.keeps_alive = head.keeps_alive();
            let taken = take(&head);
            received.advance(length);
            return Ok(Some(taken));
        }
    }

    /// Takes all of the body that has been received.
    pub fn read_body(&mut self, received: &mut BytesMut) -> Result<Decoded, ExchangeError> {
        match &mut self.response {
            Response::Awaited => Ok(Decoded::Incomplete),
            Response::Body(body) => Ok(body.decode(received)?),
        }
    }

    /// The host has closed the connection, and everything received before was read.
    pub fn end_of_input(&mut self) -> Result<(), ExchangeError> {
        self.keeps_alive = false;
        match &mut self.response {
            Response::Awaited => Err(ExchangeError::Closed),
            Response::Body(body) => Ok(body.end_of_input()?),
        }
    }

    /// True once the last byte of the response was read.
    pub fn is_over(&self) -> bool {
        match &self.response {
            Response::Awaited => false,
            Response::Body(body) => body.is_over(),
        }
    }

    /// True when another exchange may follow on this connection. A host that answered before it read the whole
    /// request, or sent more than its response, is not trusted with another one.
    pub fn is_reusable(&self, received: &[u8]) -> bool {
        self.is_over() && self.keeps_alive && self.unsent().is_empty() && received.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> Exchange {
        Exchange::new(BytesMut::new(), Bytes::new())
    }

    /// The status, the body and whether the connection can be used again.
    fn read(exchange: &mut Exchange, text: &str) -> Result<(u16, String, bool), ExchangeError> {
        let mut received = BytesMut::from(text);
        let Some(status) = exchange.read_head(&mut received, |head| head.status)? else {
            return exchange.end_of_input().map(|()| (0, String::new(), false));
        };
        let mut body = String::new();
        loop {
            match exchange.read_body(&mut received)? {
                Decoded::Bytes(bytes) => body.push_str(&String::from_utf8_lossy(&bytes)),
                Decoded::Incomplete => exchange.end_of_input()?,
                Decoded::End => return Ok((status, body, exchange.is_reusable(&received))),
            }
        }
    }

    #[test]
    fn a_request_goes_out_in_any_pieces() {
        let mut exchange = Exchange::new(BytesMut::from("head"), Bytes::from_static(b"body"));
        let mut out = Vec::new();
        while let Some(byte) = exchange.unsent().first() {
            out.push(*byte);
            exchange.sent(1);
        }
        assert_eq!(out, b"headbody");
    }

    #[test]
    fn the_final_response_follows_interim_ones() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
        assert_eq!(read(&mut sent(), text), Ok((200, "hi".to_owned(), true)));
    }

    #[test]
    fn interim_responses_are_bounded() {
        let after = |count| {
            let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(count);
            read(&mut sent(), &format!("{interim}HTTP/1.1 204 No Content\r\n\r\n"))
        };
        assert_eq!(after(MAX_INTERIM_RESPONSES), Ok((204, String::new(), true)));
        assert_eq!(after(MAX_INTERIM_RESPONSES + 1), Err(ExchangeError::TooManyInterimResponses));
    }

    #[test]
    fn a_connection_is_used_again_only_when_nothing_is_left_over() {
        let reusable = |text: &str| read(&mut sent(), text).expect("a response").2;
        assert!(reusable("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"));
        assert!(reusable("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: trailer\r\n\r\n"));
        assert!(reusable("HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(!reusable("HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nhi"));
        assert!(!reusable("HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"));
        assert!(!reusable("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi "));
        assert!(!reusable("HTTP/1.1 101 Switching\r\n\r\n"));
        assert!(!reusable("HTTP/1.1 200 OK\r\n\r\nuntil the end"));
        let mut unsent = Exchange::new(BytesMut::new(), Bytes::from_static(b"rest"));
        assert_eq!(
            read(&mut unsent, "HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"),
            Ok((413, String::new(), false))
        );
    }

    #[test]
    fn a_response_that_breaks_off_is_an_error() {
        assert_eq!(read(&mut sent(), ""), Err(ExchangeError::Closed));
        assert_eq!(read(&mut sent(), "HTTP/1.1 200 OK\r\n"), Err(ExchangeError::Closed));
        assert_eq!(read(&mut sent(), "HTTP/1.1 100 Continue\r\n\r\n"), Err(ExchangeError::Closed));
        let truncated = Err(ExchangeError::Body(BodyError::Truncated));
        assert_eq!(read(&mut sent(), "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi"), truncated);
        assert_eq!(
            read(&mut sent(), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n"),
            truncated
        );
    }
}
