//! Responses that are accepted, refused and asked for again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use toolgate_model::{Delivery, ErrorKind, TurnError};
use toolgate_testkit::{RawHost, RawStep};
use uuid::Uuid;

use super::{Tls, Upstream};
use crate::config::{ProxyConfig, Retry, UpstreamConfig};
use crate::stats::UpstreamStats;
use crate::turn::{Answer, Relay, RelayTurn};

struct Client {
    upstream: Upstream,
    stats: Arc<UpstreamStats>,
}

impl Client {
    fn new(base_url: &str) -> Self {
        let url: Uri = base_url.parse().expect("a URL");
        let mut config = UpstreamConfig::new("main", "anthropic-messages", url);
        config.api_key = Some("sk-host".into());
        config.retry =
            Retry { retries: 2, backoff: Duration::from_millis(1), longest_wait: Duration::from_secs(1) };
        let stats = Arc::<UpstreamStats>::default();
        let tls = Tls::trusting(rustls::RootCertStore::empty());
        let upstream = Upstream::new(&config, &ProxyConfig::default(), &tls, Arc::clone(&stats));
        Self { upstream: upstream.expect("an upstream"), stats }
    }

    async fn relay(&self) -> Result<Answer, TurnError> {
        let turn = RelayTurn {
            id: Uuid::nil(),
            body: Bytes::from_static(b"{}"),
            delivery: Delivery::Whole,
            model: None,
            headers: Arc::default(),
        };
        self.upstream.relay(turn).await
    }
}

/// The error for a host that answers every request with these bytes and closes, and the number of requests.
async fn refusal(answer: &str) -> (TurnError, usize) {
    let host = RawHost::start().await;
    host.always([RawStep::ReadMessage, RawStep::send(answer), RawStep::Close]);
    let client = Client::new(&host.base_url());
    let Err(error) = client.relay().await else { panic!("{answer} was accepted") };
    let requests = host.requests().len();
    assert_eq!(client.stats.retries(), requests as u64 - 1);
    assert_eq!(client.stats.in_flight(), 0);
    (error, requests)
}

fn response(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{fields}\r\n{body}", body.len())
}

fn error_response(status: &str, kind: &str) -> String {
    let body =
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"account 4711 of sk-host"}}}}"#);
    response(status, "request-id: req_1\r\nx-ratelimit-limit: 7\r\n", &body)
}

#[tokio::test]
async fn a_request_is_sent_again_when_no_connection_could_be_opened() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let client = Client::new(&format!("http://{}", address.expect("a free port")));
    let Err(error) = client.relay().await else { panic!("nothing listens there") };
    assert_eq!((error.kind, client.stats.retries()), (ErrorKind::Upstream, 2), "{error}");
}

#[tokio::test]
async fn a_request_is_sent_again_after_an_error_status_that_may_pass() {
    for (status, kind, expected) in [
        ("429 Too Many", "rate_limit_error", ErrorKind::RateLimited),
        ("500 Oh", "api_error", ErrorKind::Internal),
        ("529 Busy", "overloaded_error", ErrorKind::Overloaded),
    ] {
        let (error, requests) = refusal(&error_response(status, kind)).await;
        assert_eq!((error.kind, requests), (expected, 3), "{status}: {error}");
    }
    for (status, kind, expected) in [
        ("400 Bad", "invalid_request_error", ErrorKind::InvalidRequest),
        ("403 Forbidden", "permission_error", ErrorKind::Permission),
        ("504 Late", "timeout_error", ErrorKind::Timeout),
    ] {
        let (error, requests) = refusal(&error_response(status, kind)).await;
        assert_eq!((error.kind, requests), (expected, 1), "{status}: {error}");
    }
}

#[tokio::test]
async fn a_request_that_may_have_been_processed_is_not_sent_again() {
    let answers = [
        String::new(),
        "HTTP/1.1 200 OK\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
        response("200 OK", "", "not JSON"),
        response("204 No Content", "", ""),
        response("205 Reset Content", "", ""),
        response("304 Not Modified", "", ""),
        response("101 Switching Protocols", "", ""),
        response("307 Temporary Redirect", "location: http://secret.internal\r\n", ""),
        response("200 OK", "content-encoding: gzip\r\n", "\u{1f}"),
        response("200 OK", "", r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#),
    ];
    for answer in answers {
        let (error, requests) = refusal(&answer).await;
        assert_eq!(requests, 1, "{answer}: {error}");
        assert!(matches!(error.kind, ErrorKind::Upstream | ErrorKind::Overloaded), "{answer}: {error}");
        assert!(!error.message.contains("secret.internal"), "{error}");
    }
}

#[tokio::test]
async fn a_rejected_key_says_where_to_correct_it_and_shows_nothing_of_it() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (error, requests) = refusal(&error_response(status, "authentication_error")).await;
        assert_eq!((error.kind, error.status(), requests), (ErrorKind::Upstream, 502, 1), "{error}");
        assert!(error.message.contains("`api_key` of [upstreams.main]"), "{error}");
        assert!(!error.message.contains("4711"), "{error}");
    }
}

#[tokio::test]
async fn the_hosts_headers_come_with_its_errors() {
    let (error, _) = refusal(&error_response("400 Bad", "invalid_request_error")).await;
    let expected = [("request-id", "req_1"), ("x-ratelimit-limit", "7")];
    let expected: Vec<_> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(error.host_headers.as_deref(), Some(&expected));
}
