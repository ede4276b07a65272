//! Why there is no response to a request, in facts that decide whether it may be sent again.

use std::error::Error;
use std::io;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::TrySendError;
use thiserror::Error;
use toolgate_h1::{ExchangeError, HeadError};

use super::connect::BoxError;
use super::connection::ConnectionError;

/// Why there is no response.
#[derive(Debug, Error)]
pub(super) enum RequestError {
    /// There is no connection, so nothing was sent.
    #[error("connecting failed")]
    Connect(#[source] BoxError),
    /// There was no connection in time.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The host said, or the connection shows, that the host has not processed the request.
    #[error("the host refused the request before processing it")]
    Unprocessed(#[source] BoxError),
    /// The connection broke before the first byte of a response. The host may have processed the request.
    #[error("the connection broke before the host answered")]
    Unanswered(#[source] BoxError),
    /// The connection broke within the head of a response, or the host cancelled the request without one.
    #[error("the host broke off its response")]
    Broken(#[source] BoxError),
    /// The response is not valid HTTP.
    #[error("the head of the response is malformed")]
    Malformed(#[source] HeadError),
    /// The host stopped reading the request.
    #[error("the host did not accept the request in time")]
    WriteTimeout,
    /// The host did not send the head of its response.
    #[error("the host did not answer in time")]
    FirstByteTimeout,
    /// The host stopped replying to pings.
    #[error("the host stopped replying to pings")]
    PingTimeout(#[source] BoxError),
}

impl RequestError {
    pub(super) fn from_dial(error: BoxError) -> Self {
        if has_source(error.as_ref(), &|error: &io::Error| error.kind() == io::ErrorKind::TimedOut) {
            Self::ConnectTimeout
        } else {
            Self::Connect(error)
        }
    }

    pub(super) fn from_connection(error: ConnectionError, is_answered: bool) -> Self {
        match error {
            ConnectionError::WriteTimeout => Self::WriteTimeout,
            ConnectionError::FirstByteTimeout => Self::FirstByteTimeout,
            ConnectionError::Exchange(ExchangeError::Head(error)) => Self::Malformed(error),
            broken @ (ConnectionError::Io(_)
            | ConnectionError::Exchange(
                ExchangeError::Closed | ExchangeError::TooManyInterimResponses | ExchangeError::Body(_),
            )) => {
                if is_answered {
                    Self::Broken(broken.into())
                } else {
                    Self::Unanswered(broken.into())
                }
            }
        }
    }

    pub(super) fn from_http2(mut failed: TrySendError<Request<Full<Bytes>>>) -> Self {
        let is_unsent = failed.take_message().is_some();
        let error = failed.into_error();
        if is_unsent || has_source(&error, &is_unprocessed) {
            Self::Unprocessed(error.into())
        } else if error.is_timeout() {
            Self::PingTimeout(error.into())
        } else if has_source(&error, &h2::Error::is_reset) {
            Self::Broken(error.into())
        } else {
            Self::Unanswered(error.into())
        }
    }

    /// True if a reused connection that failed like this was most likely closed while it was idle.
    pub(super) fn is_stale_connection(&self) -> bool {
        matches!(self, Self::Unprocessed(_) | Self::Unanswered(_))
    }

    /// True if the host certainly has not processed the request.
    pub(super) fn is_unprocessed(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::ConnectTimeout | Self::Unprocessed(_))
    }
}

/// RFC 9113, section 8.7: a refused stream, and one above the last stream of a `GOAWAY`, were not processed. Streams
/// up to the last one do not fail with the host's `GOAWAY`.
fn is_unprocessed(error: &h2::Error) -> bool {
    error.reason() == Some(h2::Reason::REFUSED_STREAM) || (error.is_go_away() && error.is_remote())
}

/// True if the error, or one of its sources, is of this type and passes the test.
fn has_source<E: Error + 'static>(error: &(dyn Error + 'static), test: &dyn Fn(&E) -> bool) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref().is_some_and(test) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use hyper::client::conn::http2;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const HEADERS: u8 = 1;

    /// Reads up to the headers of the first request, sends these bytes and closes.
    async fn serve(mut host: DuplexStream, answer: &[u8]) {
        host.read_exact(&mut [0; PREFACE.len()]).await.expect("a preface");
        host.write_all(SETTINGS).await.expect("sent");
        loop {
            let mut head = [0; 9];
            host.read_exact(&mut head).await.expect("a frame");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            host.read_exact(&mut vec![0; length as usize]).await.expect("its payload");
            if head[3] == HEADERS {
                break;
            }
        }
        host.write_all(answer).await.expect("sent");
    }

    async fn failure(answer: &[u8]) -> RequestError {
        let (client, host) = duplex(64 * 1024);
        let ask = async {
            let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(client)).await;
            let (mut sender, connection) = handshake.expect("a handshake");
            let request = Request::post("http://h/").body(Full::new(Bytes::new())).expect("a request");
            let (outcome, _) = tokio::join!(sender.try_send_request(request), connection);
            RequestError::from_http2(outcome.expect_err("no response"))
        };
        tokio::join!(serve(host, answer), ask).1
    }

    #[tokio::test]
    async fn a_refused_stream_was_not_processed() {
        let error = failure(b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07").await;
        assert!(matches!(error, RequestError::Unprocessed(_)), "{error:?}");
        let internal_error = failure(b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x02").await;
        assert!(matches!(internal_error, RequestError::Broken(_)), "{internal_error:?}");
    }

    #[tokio::test]
    async fn a_stream_above_the_last_one_of_a_goaway_was_not_processed() {
        let error = failure(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0").await;
        assert!(matches!(error, RequestError::Unprocessed(_)), "{error:?}");
        let after_it = failure(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0").await;
        assert!(matches!(after_it, RequestError::Unanswered(_)), "{after_it:?}");
    }

    #[tokio::test]
    async fn a_connection_that_breaks_says_nothing_about_processing() {
        let error = failure(b"").await;
        assert!(matches!(error, RequestError::Unanswered(_)), "{error:?}");
    }
}
