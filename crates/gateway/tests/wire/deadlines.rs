//! Clients that are too slow: each wait for a client has a deadline.

use std::time::Duration;

use toolgate_gateway::config::{ClientDeadlines, GatewayConfig};
use toolgate_testkit::{RawEnd, RawHost, RawMessage, RawStep};

use crate::gate::{Gate, backends_at, config};
use crate::stage::{
    Ask, STREAM_HEAD, assert_next_request_works, chunk, client_of, first_events, good_reply, post, turn,
    turn_body,
};

/// Deadlines that a test can wait for. A client that is not slow on purpose meets them on a busy machine too.
const SHORT: Duration = Duration::from_millis(500);

fn impatient() -> GatewayConfig {
    let mut config = config();
    config.limits.deadlines = ClientDeadlines { head: SHORT, idle: SHORT, body_rate: 1000, stalled: SHORT };
    config
}

async fn host_and_gate() -> (RawHost, Gate) {
    let host = RawHost::start().await;
    let gate = Gate::start(&impatient(), backends_at(&host.base_url()));
    (host, gate)
}

/// Sends the beginning of something and says nothing more: the gateway closes, with or without a 408.
async fn check_given_up(start: &[u8]) {
    let (host, gate) = host_and_gate().await;
    host.always([RawStep::answer_all(good_reply())]);
    let mut client = client_of(&gate).await;
    client.send(start).await;
    let (responses, _) = client.rest().await;
    let statuses: Vec<u16> = responses.iter().map(RawMessage::status).collect();
    assert!(statuses.is_empty() || statuses == [408], "{start:?}: {statuses:?}");
    assert!(host.requests().is_empty());
    assert_next_request_works(&gate).await;
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_given_up() {
    check_given_up(b"").await;
}

#[tokio::test]
async fn half_a_head_is_given_up() {
    check_given_up(b"P").await;
    check_given_up(b"POST /v1/messages HTT").await;
    check_given_up(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n").await;
    check_given_up(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n").await;
}

#[tokio::test]
async fn a_head_that_trickles_is_given_up() {
    let (host, gate) = host_and_gate().await;
    let mut client = client_of(&gate).await;
    let field = "x-slow: 1\r\n".repeat(100);
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n{field}");
    let end = client.play([RawStep::Trickle(head.into(), Duration::from_millis(50))]).await;
    assert_eq!(end, RawEnd::PeerReset, "the gateway closes while the client still sends");
    assert!(host.requests().is_empty());
}

#[tokio::test]
async fn half_an_http2_preface_is_given_up() {
    check_given_up(b"PRI").await;
    check_given_up(b"PRI * HTTP/2.0\r\n\r\nSM").await;
}

#[tokio::test]
async fn half_a_body_is_given_up() {
    let whole = turn(Ask::Whole);
    check_given_up(&whole.as_bytes()[..whole.len() - 5]).await;
    let chunked = whole.replace("content-length: 97", "transfer-encoding: chunked");
    let (head, _) = chunked.split_at(chunked.find("\r\n\r\n").expect("a head") + 4);
    check_given_up(format!("{head}61\r\n{{").as_bytes()).await;
}

#[tokio::test]
async fn a_body_below_the_minimum_rate_is_given_up() {
    let (host, gate) = host_and_gate().await;
    let mut client = client_of(&gate).await;
    let body = turn_body(Ask::Whole, &"x".repeat(1000));
    let request = post("/v1/messages", "", &body);
    let (head, body) = request.split_at(request.find("\r\n\r\n").expect("a head") + 4);
    // Twenty bytes a second: no single wait is long.
    let trickle = RawStep::Trickle(body.to_owned().into(), Duration::from_millis(50));
    assert_eq!(client.play([RawStep::send(head), trickle]).await, RawEnd::PeerReset);
    assert!(host.requests().is_empty());
}

#[tokio::test]
async fn a_connection_that_is_idle_between_requests_is_closed() {
    let (host, gate) = host_and_gate().await;
    host.always([RawStep::answer_all(good_reply())]);
    let mut client = client_of(&gate).await;
    client.send(turn(Ask::Whole)).await;
    assert_eq!(client.response().await.status(), 200);
    assert_eq!(client.rest().await, (Vec::new(), RawEnd::Played));
}

/// An empty SETTINGS frame, and the acknowledgement of one.
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
const SETTINGS_ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";

#[tokio::test]
async fn an_idle_http2_connection_is_closed() {
    let (_host, gate) = host_and_gate().await;
    let mut client = client_of(&gate).await;
    client.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SETTINGS, SETTINGS_ACK].concat()).await;
    client.rest().await;
}

#[tokio::test]
async fn a_client_that_waits_for_its_reply_is_not_idle() {
    let host = RawHost::start().await;
    host.on([RawStep::ReadMessage, RawStep::gate("reply"), RawStep::send(good_reply())]);
    let gate = Gate::start(&impatient(), backends_at(&host.base_url()));
    let mut waiting = client_of(&gate).await;
    waiting.send(turn(Ask::Whole)).await;
    host.until("the request", |all| !all.is_empty()).await;
    // An idle connection that came later is closed first.
    client_of(&gate).await.rest().await;
    host.open("reply");
    assert_eq!(waiting.response().await.status(), 200);
}

/// More than all buffers between the host and a client that does not read.
const UNREAD_BYTES: usize = 64 * 1024 * 1024;

#[tokio::test]
async fn a_client_that_does_not_read_its_stream_is_given_up_and_the_host_too() {
    let (host, gate) = host_and_gate().await;
    let text = "x".repeat(1024 * 1024);
    let event = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    );
    let stream = format!("{STREAM_HEAD}{}", chunk(&first_events()));
    let events = chunk(&event).repeat(UNREAD_BYTES / event.len());
    host.on([RawStep::ReadMessage, RawStep::send(stream), RawStep::send(events), RawStep::ReadToEnd]);
    let mut client = client_of(&gate).await;
    client.send(turn(Ask::Stream)).await;
    client.read_until("hi there").await;
    host.until("the gateway to cancel", |all| all[0].end == Some(RawEnd::PeerReset)).await;
    let (rest, _) = client.rest().await;
    assert!(rest.iter().all(|message| !message.text().contains("message_stop")));
}
