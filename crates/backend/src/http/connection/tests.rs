//! Exchanges over real loopback sockets.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;
use toolgate_h1::HeadError;

use super::*;
use crate::http::proxy::ProxyUse;
use crate::http::request::Address;

/// More than the buffers of both sockets hold.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

const DEADLINES: HostDeadlines = HostDeadlines {
    connect: Duration::from_secs(1),
    write: Duration::from_secs(2),
    first_byte: Duration::from_secs(3),
    idle: Duration::from_secs(4),
    count_tokens: Duration::from_secs(5),
    http2_keep_alive: Duration::from_secs(6),
};

/// A new connection and the host's end of it.
async fn connected() -> (Connection, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (client, host) = tokio::join!(TcpStream::connect(address), listener.accept());
    let wire = TokioIo::new(MaybeHttpsStream::Http(TokioIo::new(client.expect("a connection"))));
    (Connection::new(wire, OpenConnection::new(&Arc::default())), host.expect("a client").0)
}

fn begin(connection: Connection, body: &Bytes) -> HostExchange {
    let (uri, host) = (Uri::from_static("http://h/v1"), HeaderValue::from_static("h"));
    let to = Address::new(uri, &host, HeaderMap::new(), &ProxyUse::Direct);
    connection.begin(&HostRequest { to: &to, accept: "*/*", forwarded: &[], body: body.clone() })
}

async fn head(exchange: &mut HostExchange) -> Result<HostHead, ConnectionError> {
    let mut timer = IdleTimer::default();
    poll_fn(|cx| exchange.poll_head(&mut timer, &DEADLINES, cx)).await
}

async fn collect(exchange: &mut HostExchange) -> Result<Vec<u8>, ConnectionError> {
    let mut body = Vec::new();
    while let Some(bytes) = poll_fn(|cx| exchange.poll_bytes(cx)).await {
        body.extend_from_slice(&bytes?);
    }
    Ok(body)
}

/// Reads up to the end of the request's head.
async fn read_head(host: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(host.read_u8().await.expect("a byte"));
    }
}

fn response_head(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n")
}

#[tokio::test]
async fn a_host_may_want_the_request_while_it_sends_its_response() {
    let (connection, mut host) = connected().await;
    let body = Bytes::from(vec![b'q'; LARGE_BYTES]);
    let mut exchange = begin(connection, &body);
    let serve = async {
        read_head(&mut host).await;
        host.write_all(response_head(LARGE_BYTES).as_bytes()).await.expect("sent");
        let mut piece = vec![0; 64 * 1024];
        for _ in 0..LARGE_BYTES / piece.len() {
            host.read_exact(&mut piece).await.expect("more of the request");
            host.write_all(&piece).await.expect("sent");
        }
    };
    let ask = async {
        assert_eq!(head(&mut exchange).await.expect("a head").status, 200);
        collect(&mut exchange).await.expect("a body")
    };
    let ((), received) = tokio::join!(serve, ask);
    assert_eq!(received, body);
    assert!(exchange.into_connection().is_some(), "all was sent and received");
}

#[tokio::test]
async fn a_response_is_read_to_its_end_when_the_host_reads_no_more() {
    let (connection, mut host) = connected().await;
    let mut exchange = begin(connection, &Bytes::from(vec![b'q'; LARGE_BYTES]));
    let serve = async {
        read_head(&mut host).await;
        let response = response_head(2) + "no";
        host.write_all(response.as_bytes()).await.expect("sent");
        // The rest of the request is unread, so this resets the connection.
        drop(host);
    };
    let ask = async {
        head(&mut exchange).await.expect("a head");
        collect(&mut exchange).await.expect("a body")
    };
    let ((), received) = tokio::join!(serve, ask);
    assert_eq!(received, b"no");
    assert!(exchange.into_connection().is_none());
}

#[tokio::test]
async fn a_small_request_is_one_write() {
    let (connection, mut host) = connected().await;
    let mut exchange = begin(connection, &Bytes::from_static(b"body"));
    assert!(exchange.exchange.unsent().ends_with(b"\r\n\r\nbody"));
    host.write_all((response_head(0)).as_bytes()).await.expect("sent");
    head(&mut exchange).await.expect("a head");
    assert!(collect(&mut exchange).await.expect("a body").is_empty());
    let mut connection = exchange.into_connection().expect("a reusable connection");
    assert!(connection.is_usable());
    drop(host);
    // The end of the connection is visible once the runtime has looked at its sockets.
    while connection.is_usable() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_close_before_and_within_a_response_can_be_told_apart() {
    for (sent, is_answered) in [("", false), ("H", true), ("HTTP/1.1 100 Continue\r\n\r\n", true)] {
        let (connection, mut host) = connected().await;
        let mut exchange = begin(connection, &Bytes::new());
        let serve = async {
            read_head(&mut host).await;
            host.write_all(sent.as_bytes()).await.expect("sent");
            drop(host);
        };
        let ((), outcome) = tokio::join!(serve, head(&mut exchange));
        assert!(matches!(outcome, Err(ConnectionError::Exchange(ExchangeError::Closed))), "{outcome:?}");
        assert_eq!(exchange.is_answered(), is_answered, "{sent:?}");
    }
}

#[tokio::test]
async fn a_malformed_head_says_what_is_malformed() {
    let (connection, mut host) = connected().await;
    host.write_all(b"HTTP/1.1 200 OK\r\nx : y\r\n\r\n").await.expect("sent");
    let outcome = head(&mut begin(connection, &Bytes::new())).await;
    let expected = ExchangeError::Head(HeadError::FieldName);
    assert!(matches!(outcome, Err(ConnectionError::Exchange(error)) if error == expected));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_is_given_up_after_the_write_deadline() {
    let (connection, _host) = connected().await;
    let mut exchange = begin(connection, &Bytes::from(vec![b'q'; LARGE_BYTES]));
    let began = Instant::now();
    assert!(matches!(head(&mut exchange).await, Err(ConnectionError::WriteTimeout)));
    assert_eq!(began.elapsed().as_secs(), DEADLINES.write.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_given_up_after_the_first_byte_deadline() {
    let (connection, mut host) = connected().await;
    let mut exchange = begin(connection, &Bytes::new());
    let began = Instant::now();
    // Bytes of an incomplete head do not extend the wait.
    let trickle = async {
        loop {
            host.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.expect("sent");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = trickle => {}
        outcome = head(&mut exchange) => {
            assert!(matches!(outcome, Err(ConnectionError::FirstByteTimeout)), "{outcome:?}");
        }
    }
    assert_eq!(began.elapsed().as_secs(), DEADLINES.first_byte.as_secs());
}
