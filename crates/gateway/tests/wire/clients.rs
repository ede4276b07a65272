//! Requests that a client may send. A request with an unclear end is refused, and nothing behind it is read as another
//! request.

use serde_json::json;
use toolgate_testkit::{RawClient, RawEnd, RawHost, RawStep, Script, ScriptedUpstream};

use crate::gate::{Gate, backends, config};
use crate::replies;
use crate::stage::{
    Ask, assert_next_request_works, chunk, client_of, gate_before, good_reply, post, turn, turn_body,
};

/// The second of two requests on a connection. It asks to close, so that the client reads to an end in any case.
fn last_turn(content: &str) -> String {
    post("/v1/messages", "connection: close\r\n", &turn_body(Ask::Whole, content))
}

/// Sends a request with an unusual head, and a usual request behind it. Each turn at the host must be one that the
/// client sent, whole, in order and with its own body.
async fn check_no_desync(change_head: impl Fn(&str) -> String) {
    let host = RawHost::start().await;
    host.always([RawStep::answer_all(good_reply())]);
    let gate = gate_before(&host);
    let sent = ["first", "second"].map(|content| turn_body(Ask::Whole, content));
    let usual = post("/v1/messages", "", &sent[0]);
    let (head, body) = usual.split_at(usual.find("\r\n\r\n").expect("a head") + 4);
    let mut client = client_of(&gate).await;
    client.send(change_head(head) + body + &last_turn("second")).await;
    let (responses, _) = client.rest().await;
    let bodies: Vec<String> = host.requests().iter().map(toolgate_testkit::RawMessage::text).collect();
    assert!(sent.starts_with(&bodies), "the host got {bodies:#?}");
    let statuses: Vec<u16> = responses.iter().map(toolgate_testkit::RawMessage::status).collect();
    match bodies.len() {
        0 => assert_eq!(statuses, [400]),
        1 => assert_eq!(statuses, [200, 400]),
        _ => assert_eq!(statuses, [200, 200]),
    }
    assert_next_request_works(&gate).await;
}

#[tokio::test]
async fn a_head_that_ends_in_a_bare_line_feed_does_not_swallow_the_next_request() {
    check_no_desync(|head| head.replace("\r\n\r\n", "\r\n\n")).await;
}

#[tokio::test]
async fn a_head_with_bare_line_feeds_does_not_swallow_the_next_request() {
    check_no_desync(|head| head.replace("\r\n", "\n")).await;
    check_no_desync(|head| head.replace("\r\n\r\n", "\n\r\n")).await;
    check_no_desync(|head| head.replacen("\r\n", "\n", 1)).await;
}

#[tokio::test]
async fn empty_lines_before_a_request_do_not_swallow_it() {
    check_no_desync(|head| format!("\r\n{head}")).await;
    check_no_desync(|head| format!("\n{head}")).await;
}

/// Sends one request that must be refused with 400, with a usual one behind it that must not be read.
async fn check_refused(request: &str) {
    let host = RawHost::start().await;
    host.always([RawStep::answer_all(good_reply())]);
    let gate = gate_before(&host);
    let mut client = client_of(&gate).await;
    client.send(format!("{request}{}", last_turn("behind it"))).await;
    let (responses, _) = client.rest().await;
    let statuses: Vec<u16> = responses.iter().map(toolgate_testkit::RawMessage::status).collect();
    assert_eq!(statuses, [400], "{request:?}");
    assert!(host.requests().is_empty(), "{request:?} reached the host");
    assert_next_request_works(&gate).await;
}

/// The usual request with further header lines.
fn with_fields(fields: &str) -> String {
    post("/v1/messages", fields, &turn_body(Ask::Whole, "hello"))
}

#[tokio::test]
async fn two_host_headers_are_refused() {
    check_refused(&with_fields("host: localhost\r\n")).await;
    check_refused(&with_fields("Host: evil.example\r\n")).await;
}

#[tokio::test]
async fn a_length_beside_a_transfer_encoding_is_refused() {
    for encoding in ["chunked", "Chunked", "identity", "gzip, chunked", "chunked, chunked"] {
        check_refused(&with_fields(&format!("transfer-encoding: {encoding}\r\n"))).await;
    }
}

#[tokio::test]
async fn two_different_lengths_are_refused() {
    check_refused(&with_fields("content-length: 5\r\n")).await;
    check_refused(&with_fields("content-length: 5, 5\r\n")).await;
}

#[tokio::test]
async fn a_length_that_is_not_digits_is_refused() {
    let usual = with_fields("");
    let at = usual.find("content-length: ").expect("a length") + "content-length: ".len();
    for value in ["+10", "-1", "0x10", "1e2", "", "99999999999999999999999"] {
        let end = at + usual[at..].find("\r\n").expect("a line end");
        check_refused(&format!("{}{value}{}", &usual[..at], &usual[end..])).await;
    }
}

#[tokio::test]
async fn a_folded_header_is_refused() {
    check_refused(&with_fields("x-folded: one\r\n two\r\n")).await;
    check_refused(&with_fields("x-folded: one\r\n\ttwo\r\n")).await;
}

#[tokio::test]
async fn a_space_before_the_colon_is_refused() {
    check_refused(&with_fields("x-spaced : one\r\n")).await;
    check_refused(&with_fields("transfer-encoding : chunked\r\n")).await;
}

#[tokio::test]
async fn a_nul_in_a_header_is_refused() {
    check_refused(&with_fields("x-nul: a\0b\r\n")).await;
    check_refused(&with_fields("x-\0nul: a\r\n")).await;
}

#[tokio::test]
async fn a_bare_carriage_return_is_refused() {
    check_refused(&with_fields("x-bare: a\rb\r\n")).await;
    check_refused(&with_fields("x-bare: a\rtransfer-encoding: chunked\r\n")).await;
}

#[tokio::test]
async fn a_header_without_a_colon_or_a_name_is_refused() {
    check_refused(&with_fields("no colon\r\n")).await;
    check_refused(&with_fields(": no name\r\n")).await;
}

#[tokio::test]
async fn a_broken_request_line_is_refused() {
    for line in
        ["POST /v1/messages", "POST  /v1/messages HTTP/1.1", "POST /v1/messages HTTP/1.7", "\u{16}\u{3}\u{1}"]
    {
        check_refused(&turn(Ask::Whole).replacen("POST /v1/messages HTTP/1.1", line, 1)).await;
    }
}

#[tokio::test]
async fn a_chunk_size_that_is_none_is_refused() {
    for chunks in [
        "zz\r\nhi\r\n0\r\n\r\n",
        "-1\r\nhi\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhi\r\n0\r\n\r\n",
        "2\r\nhi!!0\r\n\r\n",
    ] {
        let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        check_refused(&format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}")).await;
    }
}

#[tokio::test]
async fn chunks_in_http_1_0_are_refused() {
    let body = turn_body(Ask::Whole, "hello");
    let head = "POST /v1/messages HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    check_refused(&format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    ))
    .await;
}

/// Sends bytes that must be refused with this status.
async fn check_refused_with(bytes: &str, status: u16) {
    let (upstream, gate) = echo().await;
    let mut client = client_of(&gate).await;
    client.send(bytes).await;
    let response = client.response().await;
    assert_eq!(response.status(), status, "{}", response.text());
    assert!(upstream.requests().is_empty());
    let mut client = client_of(&gate).await;
    client.send(turn(Ask::Whole)).await;
    assert_echoes(&mut client, "hello").await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let start = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n";
    check_refused_with(&format!("{start}{}", "x-more: 1\r\n".repeat(20_000)), 431).await;
    check_refused_with(&format!("{start}x-large: {}", "1".repeat(200_000)), 431).await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_and_without_a_length() {
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let body = turn_body(Ask::Whole, &"x".repeat(MAX_BODY_BYTES));
    let length = body.len();
    check_refused_with(&format!("{head}content-length: {length}\r\n\r\n{body}"), 413).await;
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    check_refused_with(&format!("{chunked}{}0\r\n\r\n", chunk(&body)), 413).await;
    let (start, rest) = body.split_at(length / 2);
    check_refused_with(&format!("{chunked}{}{}0\r\n\r\n", chunk(start), chunk(rest)), 413).await;
}

/// The largest request body of [`echo`].
const MAX_BODY_BYTES: usize = 1000;

/// A gateway before a host that repeats what it was asked.
async fn echo() -> (ScriptedUpstream, Gate) {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|request| {
        let mut reply = replies::whole();
        reply["content"][0]["text"] = request.json()["messages"][0]["content"].clone();
        Script::json(200, reply)
    });
    let mut config = config();
    config.limits.body_bytes = MAX_BODY_BYTES;
    let gate = Gate::start(&config, backends(&upstream));
    (upstream, gate)
}

async fn assert_echoes(client: &mut RawClient, content: &str) {
    let response = client.response().await;
    assert_eq!(response.status(), 200, "{}", response.text());
    assert_eq!(response.json()["content"][0]["text"], json!(content));
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order_each_with_its_own_body() {
    let (_upstream, gate) = echo().await;
    for contents in [&["one", "two"][..], &["one", "two", "three"][..]] {
        let ahead = contents.iter().map(|content| post("/v1/messages", "", &turn_body(Ask::Whole, content)));
        let mut client = client_of(&gate).await;
        client.send(ahead.collect::<String>()).await;
        for content in contents {
            assert_echoes(&mut client, content).await;
        }
    }
}

#[tokio::test]
async fn requests_of_different_kinds_may_be_sent_ahead() {
    let (_upstream, gate) = echo().await;
    let body = turn_body(Ask::Whole, "chunked");
    let chunked = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n{:x};name=value\r\n{body}\r\n0\r\nx-trailer: 1\r\n\r\n",
        body.len()
    );
    let health = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut client = client_of(&gate).await;
    let plain = post("/v1/messages", "", &turn_body(Ask::Whole, "plain"));
    client.send(format!("{chunked}{health}{plain}{health}{chunked}")).await;
    assert_echoes(&mut client, "chunked").await;
    assert_eq!(client.response().await.text(), "ok\n");
    assert_echoes(&mut client, "plain").await;
    assert_eq!(client.response().await.text(), "ok\n");
    assert_echoes(&mut client, "chunked").await;
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it_and_then_its_reply() {
    let (_upstream, gate) = echo().await;
    let request = with_fields("expect: 100-continue\r\n");
    let (head, body) = request.split_at(request.find("\r\n\r\n").expect("a head") + 4);
    let mut client = client_of(&gate).await;
    for _ in 0..2 {
        client.send(head).await;
        assert_eq!(client.response().await.status(), 100);
        client.send(body).await;
        assert_echoes(&mut client, "hello").await;
    }
}

#[tokio::test]
async fn a_client_that_expects_100_continue_need_not_send_a_body_that_is_refused() {
    let (upstream, gate) = echo().await;
    let request = with_fields("expect: 100-continue\r\n").replace("host: localhost", "host: evil.example");
    let (head, _) = request.split_at(request.find("\r\n\r\n").expect("a head") + 4);
    let mut client = client_of(&gate).await;
    client.send(head).await;
    assert_eq!(client.response().await.status(), 403);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_reply_in_http_1_0_ends_with_the_connection_or_has_a_length() {
    let (_upstream, gate) = echo().await;
    let mut client = client_of(&gate).await;
    client.send(turn(Ask::Whole).replace("HTTP/1.1", "HTTP/1.0")).await;
    let (responses, end) = client.rest().await;
    assert_eq!((responses.len(), responses[0].status(), end), (1, 200, RawEnd::Played));
    assert!(responses[0].text().contains("hello"), "{}", responses[0].text());
    assert!(responses[0].header("transfer-encoding").is_empty(), "{}", responses[0].head);
}

#[tokio::test]
async fn a_request_that_breaks_off_never_reaches_the_host() {
    let (upstream, gate) = echo().await;
    let whole = turn(Ask::Whole);
    for end in [RawStep::Close, RawStep::Reset, RawStep::CloseWrite] {
        let mut client = client_of(&gate).await;
        client.play([RawStep::send(&whole[..whole.len() - 1]), end]).await;
        drop(client);
    }
    let mut client = client_of(&gate).await;
    client.send(whole).await;
    assert_echoes(&mut client, "hello").await;
    assert_eq!(upstream.requests().len(), 1);
}
