//! Connections to a host that end at a bad moment, or never begin.

use std::time::Duration;

use toolgate_testkit::{RawEnd, RawHost, RawStep};

use crate::gate::{Gate, backends_at, config};
use crate::stage::{
    Ask, assert_next_request_works, gate_before, good_reply, good_reply_to, post, request, turn, turn_body,
};

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_replaced() {
    for end in [RawStep::Close, RawStep::Reset] {
        let host = RawHost::start().await;
        host.on([RawStep::ReadMessage, RawStep::send(good_reply()), RawStep::gate("end"), end]);
        host.always([RawStep::answer_all(good_reply())]);
        let gate = gate_before(&host);
        assert_next_request_works(&gate).await;
        host.open("end");
        host.until("the host to close", |all| all[0].end == Some(RawEnd::Played)).await;
        assert_next_request_works(&gate).await;
        let connections = host.connections();
        assert_eq!(connections.len(), 2);
        assert_eq!(host.requests().len(), 2, "the closed connection was not written to, or without effect");
    }
}

#[tokio::test]
async fn a_request_that_an_old_connection_swallowed_is_sent_once_more_on_a_new_one() {
    for end in [RawStep::Close, RawStep::Reset] {
        for ask in [Ask::Whole, Ask::Stream] {
            let host = RawHost::start().await;
            host.on([RawStep::ReadMessage, RawStep::send(good_reply()), RawStep::ReadMessage, end.clone()]);
            host.always([RawStep::answer_all(good_reply_to(ask))]);
            let gate = gate_before(&host);
            assert_next_request_works(&gate).await;
            let answer = request(&gate, &turn(ask)).await;
            assert_eq!(answer.status(), 200, "{}", answer.text());
            assert!(answer.text().contains("hi there"));
            let requests: Vec<usize> = host.connections().iter().map(|one| one.requests().len()).collect();
            assert_eq!(requests, [2, 1]);
        }
    }
}

#[tokio::test]
async fn a_request_that_a_new_connection_swallowed_too_is_given_up() {
    let host = RawHost::start().await;
    host.on([RawStep::ReadMessage, RawStep::send(good_reply()), RawStep::ReadMessage, RawStep::Close]);
    host.on([RawStep::ReadMessage, RawStep::Close]);
    host.always([RawStep::answer_all(good_reply())]);
    let mut backends = backends_at(&host.base_url());
    backends.upstreams[0].retry.retries = 0;
    let gate = Gate::start(&config(), backends);
    assert_next_request_works(&gate).await;
    let answer = request(&gate, &turn(Ask::Whole)).await;
    assert_eq!(answer.status(), 502, "{}", answer.text());
    assert_eq!(host.requests().len(), 3);
    assert_next_request_works(&gate).await;
}

#[tokio::test]
async fn a_request_is_not_sent_again_after_the_first_byte_of_its_response() {
    for end in [RawStep::Close, RawStep::Reset] {
        let host = RawHost::start().await;
        host.on([
            RawStep::ReadMessage,
            RawStep::send(good_reply()),
            RawStep::ReadMessage,
            RawStep::send("H"),
            end,
        ]);
        host.always([RawStep::answer_all(good_reply())]);
        let gate = gate_before(&host);
        assert_next_request_works(&gate).await;
        let answer = request(&gate, &turn(Ask::Whole)).await;
        assert_eq!(answer.status(), 502, "{}", answer.text());
        assert_eq!(host.requests().len(), 2);
        assert_next_request_works(&gate).await;
    }
}

#[tokio::test]
async fn bytes_on_an_idle_connection_are_not_the_next_response() {
    let host = RawHost::start().await;
    let smuggled = good_reply().replace("hi there", "smuggled");
    host.on([
        RawStep::ReadMessage,
        RawStep::send(good_reply()),
        RawStep::gate("more"),
        RawStep::send(smuggled),
        RawStep::answer_all(good_reply()),
    ]);
    host.always([RawStep::answer_all(good_reply())]);
    let gate = gate_before(&host);
    assert_next_request_works(&gate).await;
    host.open("more");
    host.until("the bytes to be sent", |all| all[0].steps == 4).await;
    assert_next_request_works(&gate).await;
    let requests: Vec<usize> = host.connections().iter().map(|one| one.requests().len()).collect();
    assert_eq!(requests, [1, 1]);
}

#[tokio::test]
async fn a_host_that_asks_to_close_gets_its_next_request_on_a_new_connection() {
    let host = RawHost::start().await;
    let reply = good_reply().replace("content-type", "connection: close\r\ncontent-type");
    // It does not close by itself, so a second request would show.
    host.always([RawStep::answer_all(reply)]);
    let gate = gate_before(&host);
    for _ in 0..3 {
        assert_next_request_works(&gate).await;
    }
    assert_eq!(host.connections().len(), 3);
}

#[tokio::test]
async fn a_tls_handshake_without_an_answer_is_given_up() {
    let host = RawHost::start().await;
    host.always([RawStep::ReadToEnd]);
    let mut backends = backends_at(&host.base_url().replace("http://", "https://"));
    backends.upstreams[0].timeouts.connect = Duration::from_millis(200);
    backends.upstreams[0].retry.retries = 0;
    let gate = Gate::start(&config(), backends);
    let answer = request(&gate, &turn(Ask::Whole)).await;
    assert!([502, 504].contains(&answer.status()), "{}", answer.text());
    host.until("the gateway to close", |all| all.iter().all(|one| one.end == Some(RawEnd::Played))).await;
    assert_eq!(host.connections().len(), 1);
}

#[tokio::test]
async fn tokens_are_estimated_where_the_host_stays_silent() {
    let host = RawHost::start().await;
    host.always([RawStep::ReadToEnd]);
    let mut backends = backends_at(&host.base_url());
    backends.upstreams[0].timeouts.count_tokens = Duration::from_millis(300);
    let gate = Gate::start(&config(), backends);
    let asked = post("/v1/messages/count_tokens", "", &turn_body(Ask::Whole, "how many?"));
    let answer = request(&gate, &asked).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-count")), (200, "estimate"));
    assert!(answer.json()["input_tokens"].as_u64().is_some_and(|count| count > 0), "{}", answer.text());
    assert_eq!(host.requests().len(), 1, "a host that is slow to count is not asked again");
}

#[tokio::test]
async fn tokens_are_estimated_where_the_count_breaks_off_or_stalls() {
    let whole = r#"{"input_tokens":12}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\r\n";
    for end in [RawStep::Close, RawStep::ReadToEnd] {
        let host = RawHost::start().await;
        host.always([RawStep::ReadMessage, RawStep::send(head), RawStep::send(&whole[..9]), end]);
        let mut backends = backends_at(&host.base_url());
        backends.upstreams[0].timeouts.count_tokens = Duration::from_millis(300);
        let gate = Gate::start(&config(), backends);
        let asked = post("/v1/messages/count_tokens", "", &turn_body(Ask::Whole, "how many?"));
        let answer = request(&gate, &asked).await;
        assert_eq!((answer.status(), answer.header("x-toolgate-count")), (200, "estimate"));
    }
}
