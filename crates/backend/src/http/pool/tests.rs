//! Requests to hosts on loopback sockets, directly and through proxies.

use std::collections::VecDeque;

use http::{HeaderMap, HeaderValue, Uri};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolgate_testkit::{Offer, Script, ScriptedUpstream};

use super::*;
use crate::config::{ProxyConfig, UpstreamConfig};
use crate::http::client::Tls;
use crate::http::failure::{Access, Key};
use crate::http::proxy::{Proxy, ProxyUse};
use crate::http::request::Address;

/// What a host does on one connection.
type Play = &'static [Step];

#[derive(Clone, Copy)]
enum Step {
    /// Reads the head of a request that has no body.
    Read,
    Send(&'static str),
    Sleep(Duration),
    /// Keeps the connection open and does nothing.
    Stall,
}

/// A host that plays one script for each connection. Its tasks end with it.
struct PlayedHost {
    address: std::net::SocketAddr,
    _tasks: JoinSet<()>,
}

impl PlayedHost {
    async fn start(plays: &[Play]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut plays = VecDeque::from(plays.to_vec());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Some(play) = plays.pop_front() {
                let (stream, _) = listener.accept().await.expect("a connection");
                connections.spawn(play_on(stream, play));
            }
            connections.join_all().await;
        });
        Self { address, _tasks: tasks }
    }

    fn url(&self) -> Uri {
        format!("http://{}/v1", self.address).parse().expect("a URL")
    }
}

async fn play_on(mut stream: TcpStream, play: Play) {
    for step in play {
        match step {
            Step::Read => {
                read_head(&mut stream).await;
            }
            Step::Send(text) => stream.write_all(text.as_bytes()).await.expect("sent"),
            Step::Sleep(time) => tokio::time::sleep(*time).await,
            Step::Stall => std::future::pending().await,
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a byte"));
    }
    String::from_utf8(head).expect("text")
}

/// A pool with its counters, and an address to send to.
struct Client {
    pool: Arc<Pool>,
    to: Address,
    stats: Arc<UpstreamStats>,
}

impl Client {
    fn new(url: Uri, proxy: &ProxyUse, tls: &Tls) -> Self {
        let config = UpstreamConfig::new("host", "openai-chat", url.clone());
        let host = Host { name: "host".into(), access: Access::Direct, key: Key::Missing };
        let stats = Arc::<UpstreamStats>::default();
        let dialer = Dialer::new(&config, tls, proxy);
        let pool = Pool::new(dialer, host, config.timeouts, Arc::clone(&stats));
        let authority = url.authority().expect("a host").as_str();
        let name = HeaderValue::try_from(authority).expect("a header");
        Self { pool, to: Address::new(url, &name, HeaderMap::new(), proxy), stats }
    }

    fn direct(host: &PlayedHost) -> Self {
        Self::new(host.url(), &ProxyUse::Direct, &trusting(""))
    }

    async fn request(&self) -> Result<HostResponse, RequestError> {
        let request = HostRequest { to: &self.to, accept: "*/*", forwarded: &[], body: Bytes::new() };
        self.pool.request(&request).await
    }

    /// The whole body of a response.
    async fn body(&self) -> String {
        let mut response = self.request().await.expect("a response");
        let bytes = response.body.collect(1024).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("text")
    }
}

fn trusting(authority: &str) -> Tls {
    let mut roots = rustls::RootCertStore::empty();
    if let Ok(certificate) = CertificateDer::from_pem_slice(authority.as_bytes()) {
        roots.add(certificate).expect("a certificate");
    }
    Tls::trusting(roots)
}

const GOOD: Step = Step::Send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");

#[tokio::test]
async fn a_connection_is_used_again() {
    let host = PlayedHost::start(&[&[Step::Read, GOOD, Step::Read, GOOD, Step::Stall]]).await;
    let client = Client::direct(&host);
    assert_eq!((client.body().await, client.body().await), ("hi".into(), "hi".into()));
    let stats = &client.stats;
    let counts = (stats.connections_opened(), stats.connections_open(), stats.retries(), stats.in_flight());
    assert_eq!(counts, (1, 1, 0, 0));
}

#[tokio::test]
async fn a_reused_connection_that_breaks_unanswered_is_replaced_once() {
    let stale: Play = &[Step::Read, GOOD, Step::Read];
    let host = PlayedHost::start(&[stale, &[Step::Read, GOOD, Step::Stall]]).await;
    let client = Client::direct(&host);
    assert_eq!((client.body().await, client.body().await), ("hi".into(), "hi".into()));
    assert_eq!((client.stats.connections_opened(), client.stats.retries()), (2, 1));

    let host = PlayedHost::start(&[stale, &[Step::Read], &[Step::Read, GOOD]]).await;
    let client = Client::direct(&host);
    client.body().await;
    let outcome = client.request().await.map(|response| response.head);
    assert!(matches!(outcome, Err(RequestError::Unanswered(_))), "{outcome:?}");
    assert_eq!(client.stats.connections_opened(), 2, "a new connection that breaks is not replaced");
    assert_eq!(client.stats.connections_open(), 0);
}

#[tokio::test]
async fn a_request_is_not_sent_again_after_the_first_byte_of_its_response() {
    let host = PlayedHost::start(&[&[Step::Read, GOOD, Step::Read, Step::Send("H")]]).await;
    let client = Client::direct(&host);
    client.body().await;
    let outcome = client.request().await.map(|response| response.head);
    assert!(matches!(outcome, Err(RequestError::Broken(_))), "{outcome:?}");
    assert_eq!(client.stats.retries(), 0);
}

const MINUTES_3: Step = Step::Sleep(Duration::from_mins(3));

#[tokio::test(start_paused = true)]
async fn a_body_may_take_longer_than_its_head_but_not_be_silent() {
    const HEAD: Step = Step::Send("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n");
    const BYTE: Step = Step::Send("x");
    let trickle: Play = &[
        Step::Read,
        HEAD,
        MINUTES_3,
        BYTE,
        MINUTES_3,
        BYTE,
        MINUTES_3,
        BYTE,
        MINUTES_3,
        BYTE,
        MINUTES_3,
        BYTE,
        Step::Stall,
    ];
    let host = PlayedHost::start(&[trickle, &[Step::Read, HEAD, BYTE, Step::Stall]]).await;
    let client = Client::direct(&host);
    let silent = {
        let began = Instant::now();
        assert_eq!(client.body().await, "xxxxx");
        assert_eq!(began.elapsed().as_secs(), 15 * 60, "longer than `first_byte`");
        // The idle connection is closed by then.
        tokio::time::sleep(Duration::from_mins(2)).await;
        client.request().await.expect("a head").body.collect(1024).await
    };
    let error = silent.expect_err("half a body");
    assert_eq!(error.kind, toolgate_model::ErrorKind::Timeout, "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_connect_deadline_covers_the_tls_handshake() {
    let host = PlayedHost::start(&[&[Step::Stall]]).await;
    let url = host.url().to_string().replace("http:", "https:").parse().expect("a URL");
    let client = Client::new(url, &ProxyUse::Direct, &trusting(""));
    let began = Instant::now();
    let outcome = client.request().await.map(|response| response.head);
    assert!(matches!(outcome, Err(RequestError::ConnectTimeout)), "{outcome:?}");
    assert_eq!(began.elapsed(), HostDeadlines::default().connect);
}

/// A proxy for one tunnel. Gives the head of the request for it.
async fn tunnel_once(listener: TcpListener, answer: &str) -> String {
    let (mut client, _) = listener.accept().await.expect("a client");
    let head = read_head(&mut client).await;
    client.write_all(answer.as_bytes()).await.expect("sent");
    let target = head.split(' ').nth(1).expect("a target");
    if answer.contains("200")
        && let Ok(mut host) = TcpStream::connect(target).await
    {
        copy_bidirectional(&mut client, &mut host).await.ok();
    }
    head
}

async fn proxy(to: fn(Proxy) -> ProxyUse) -> (TcpListener, ProxyUse) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let url = format!("http://me:secret@{}", listener.local_addr().expect("an address"));
    let config = ProxyConfig { http: Some(url.parse().expect("a URL")), ..ProxyConfig::default() };
    let Some(ProxyUse::Forward(proxy)) = ProxyUse::of(&config, &Uri::from_static("http://elsewhere")) else {
        panic!("a proxy")
    };
    (listener, to(proxy))
}

#[tokio::test]
async fn an_https_host_is_reached_through_a_tunnel() {
    for offer in [Offer::Http1, Offer::Http2] {
        let host = ScriptedUpstream::start_tls(offer).await;
        host.on(Script::json(200, "hi"));
        let (listener, proxy) = proxy(ProxyUse::Tunnel).await;
        let url: Uri = host.base_url().parse().expect("a URL");
        let authority = url.authority().expect("a host").to_string();
        let ask = async {
            let client = Client::new(url, &proxy, &trusting(host.authority()));
            client.body().await
        };
        let (head, body) =
            tokio::join!(tunnel_once(listener, "HTTP/1.1 200 Connection established\r\n\r\n"), ask);
        assert_eq!(body, "hi");
        assert!(head.starts_with(&format!("CONNECT {authority} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
        let request = host.next_request().await;
        assert_eq!(request.header("proxy-authorization"), None);
    }
}

#[tokio::test]
async fn a_tunnel_that_the_proxy_refuses_is_a_failure_to_connect() {
    let (listener, proxy) = proxy(ProxyUse::Tunnel).await;
    let client = Client::new(Uri::from_static("https://host.test/v1"), &proxy, &trusting(""));
    let (_, outcome) = tokio::join!(
        tunnel_once(listener, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
        client.request()
    );
    assert!(matches!(outcome.map(|response| response.head), Err(RequestError::Connect(_))));
}

#[tokio::test]
async fn an_http_host_is_reached_by_requests_for_whole_urls() {
    let (listener, proxy) = proxy(ProxyUse::Forward).await;
    let client = Client::new(Uri::from_static("http://host.test/v1"), &proxy, &trusting(""));
    let serve = async {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let head = read_head(&mut stream).await;
        play_on(stream, &[GOOD]).await;
        head
    };
    let (head, body) = tokio::join!(serve, client.body());
    assert_eq!(body, "hi");
    assert!(head.starts_with("POST http://host.test/v1 HTTP/1.1\r\nhost: host.test\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
}
