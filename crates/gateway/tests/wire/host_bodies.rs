//! Bodies that a host breaks off, continues too long, or sends too early. A request that reached a host is never sent
//! again: the model may have run.

use std::time::Duration;

use toolgate_testkit::{RawHost, RawStep};

use crate::gate::{Gate, backends_at, config};
use crate::replies;
use crate::stage::{
    Ask, Outcome, STREAM_HEAD, all_events, assert_next_request_works, chunk, exchange, first_events,
    gate_before, good_reply, post, request, response, turn, turn_body,
};

/// A host that answers with these bytes and closes.
async fn breaks_off(ask: Ask, bytes: &str) -> Outcome {
    exchange(ask, [RawStep::ReadMessage, RawStep::send(bytes), RawStep::Close]).await
}

const WHOLE_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_chunked_reply_that_breaks_off_is_an_error_and_not_sent_again() {
    let body = replies::whole().to_string();
    let cuts = [
        WHOLE_HEAD.to_owned(),
        format!("{WHOLE_HEAD}ff"),
        format!("{WHOLE_HEAD}{:x}\r\n{}", body.len(), &body[..9]),
        // All of the body, and not the chunk that ends it.
        format!("{WHOLE_HEAD}{}", chunk(&body)),
        format!("{WHOLE_HEAD}{}0\r\n", chunk(&body)),
    ];
    for cut in cuts {
        breaks_off(Ask::Whole, &cut).await.assert_error(502, "").assert_requests(2);
    }
}

#[tokio::test]
async fn a_reply_shorter_than_its_length_is_an_error_and_not_sent_again() {
    let whole = good_reply();
    for missing in [1, 100] {
        let cut = &whole[..whole.len() - missing];
        breaks_off(Ask::Whole, cut).await.assert_error(502, "").assert_requests(2);
    }
    let head_only = &whole[..whole.find("\r\n\r\n").expect("a head") + 4];
    breaks_off(Ask::Whole, head_only).await.assert_error(502, "").assert_requests(2);
}

#[tokio::test]
async fn half_a_head_is_an_error_and_not_sent_again() {
    for ask in [Ask::Whole, Ask::Stream] {
        breaks_off(ask, "HTTP/1.1 200 OK\r\ncontent-ty").await.assert_error(502, "").assert_requests(2);
    }
}

#[tokio::test]
async fn an_error_whose_body_breaks_off_keeps_its_status() {
    let error = response("422 Unprocessable Content", "", r#"{"type":"error","error":{"message":"odd"}}"#);
    for ask in [Ask::Whole, Ask::Stream] {
        breaks_off(ask, &error[..error.len() - 9]).await.assert_error(422, "").assert_requests(2);
    }
}

#[tokio::test]
async fn a_reset_in_the_middle_of_a_reply_is_an_error_and_not_sent_again() {
    let whole = good_reply();
    let steps = [RawStep::ReadMessage, RawStep::send(&whole[..whole.len() - 9]), RawStep::Reset];
    exchange(Ask::Whole, steps).await.assert_error(502, "").assert_requests(2);
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_in_an_error_event_and_is_not_sent_again() {
    let events = first_events();
    for cut in
        [chunk(&events), format!("{}ff", chunk(&events)), format!("{:x}\r\n{events}", events.len() + 9)]
    {
        let outcome = breaks_off(Ask::Stream, &format!("{STREAM_HEAD}{cut}")).await;
        outcome.assert_status(200).assert_says("hi there").assert_says("event: error").assert_requests(2);
        assert!(outcome.response.is_complete, "the client's own stream ends in order");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_its_first_event_is_an_error_and_not_sent_again() {
    for cut in ["", "1", "10\r\nevent: mess"] {
        let outcome = breaks_off(Ask::Stream, &format!("{STREAM_HEAD}{cut}")).await;
        outcome.assert_error(502, "").assert_requests(2);
    }
}

#[tokio::test]
async fn a_chunk_size_that_is_none_is_an_error_and_not_sent_again() {
    for chunks in ["zz\r\nhi\r\n", "fffffffffffffffff\r\nhi\r\n", "2\r\nhi!!0\r\n\r\n"] {
        breaks_off(Ask::Whole, &format!("{WHOLE_HEAD}{chunks}"))
            .await
            .assert_error(502, "")
            .assert_requests(2);
    }
}

#[tokio::test]
async fn trailers_are_skipped_and_the_connection_is_used_again() {
    let body = replies::whole().to_string();
    let reply = format!("{WHOLE_HEAD}{}0\r\nx-checksum: 1\r\nx-more: 2\r\n\r\n", chunk(&body));
    let steps = [RawStep::ReadMessage, RawStep::send(reply), RawStep::answer_all(good_reply())];
    let outcome = exchange(Ask::Whole, steps).await;
    outcome.assert_status(200).assert_says("hi there").assert_requests(2);
    assert_eq!(outcome.host.connections().len(), 1);
    let reply = format!("{STREAM_HEAD}{}0\r\nx-checksum: 1\r\n\r\n", chunk(&all_events()));
    let steps = [RawStep::ReadMessage, RawStep::send(reply), RawStep::answer_all(good_reply())];
    let outcome = exchange(Ask::Stream, steps).await;
    outcome.assert_status(200).assert_says("message_stop").assert_requests(2);
}

#[tokio::test]
async fn a_connection_with_bytes_after_the_reply_is_not_used_again() {
    let smuggled = response("200 OK", "", r#"{"smuggled":true}"#);
    let ends = [
        (Ask::Whole, good_reply()),
        (Ask::Whole, format!("{WHOLE_HEAD}{}0\r\n\r\n", chunk(&replies::whole().to_string()))),
        (Ask::Stream, format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&all_events()))),
    ];
    for (ask, reply) in ends {
        let bytes = format!("{reply}{smuggled}");
        let steps = [RawStep::ReadMessage, RawStep::send(bytes), RawStep::answer_all(good_reply())];
        let outcome = exchange(ask, steps).await;
        outcome.assert_status(200).assert_says("hi there").assert_requests(2);
        let connections = outcome.host.connections();
        assert_eq!(connections.len(), 2, "the next request has a connection of its own");
        assert_eq!(connections[0].requests().len(), 1);
    }
}

/// More than the buffers of both sockets hold.
const LARGE_BODY_BYTES: usize = 8 * 1024 * 1024;

/// A host that answers after the head of an 8 MB request, and then plays `rest`.
async fn check_early_response(rest: RawStep) {
    let host = RawHost::start().await;
    let refusal = response(
        "413 Payload Too Large",
        "connection: close\r\n",
        r#"{"type":"error","error":{"type":"request_too_large","message":"send less than that"}}"#,
    );
    host.on([RawStep::ReadHead, RawStep::send(&refusal), rest]);
    host.always([RawStep::answer_all(good_reply())]);
    let gate = gate_before(&host);
    let body = turn_body(Ask::Whole, &"x".repeat(LARGE_BODY_BYTES));
    let answer = request(&gate, &post("/v1/messages", "", &body)).await;
    assert_eq!(answer.status(), 413, "{}", answer.text());
    assert!(answer.text().contains("send less than that"), "{}", answer.text());
    assert_next_request_works(&gate).await;
    assert_eq!(host.requests().len(), 2);
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_arrives_when_the_host_reads_the_rest() {
    check_early_response(RawStep::ReadToEnd).await;
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_arrives_when_the_host_reads_nothing_more() {
    check_early_response(RawStep::Stall).await;
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_arrives_when_the_host_closes() {
    check_early_response(RawStep::Close).await;
}

#[tokio::test]
async fn a_host_that_does_not_read_the_request_is_given_up() {
    let host = RawHost::start().await;
    host.on([RawStep::Stall]);
    host.always([RawStep::answer_all(good_reply())]);
    let mut backends = backends_at(&host.base_url());
    backends.upstreams[0].timeouts.write = Duration::from_millis(500);
    let gate = Gate::start(&config(), backends);
    let body = turn_body(Ask::Whole, &"x".repeat(LARGE_BODY_BYTES));
    let answer = request(&gate, &post("/v1/messages", "", &body)).await;
    assert!([502, 504].contains(&answer.status()), "{}", answer.text());
    assert_eq!(host.connections().len(), 1, "the request is not sent again");
    assert_next_request_works(&gate).await;
}

#[tokio::test]
async fn a_whole_reply_may_take_longer_than_the_wait_for_its_first_byte() {
    let host = RawHost::start().await;
    let reply = good_reply();
    let (head, body) = reply.split_at(reply.find("\r\n\r\n").expect("a head") + 4);
    let trickle = RawStep::Trickle(body.to_owned().into(), Duration::from_millis(5));
    host.on([RawStep::ReadMessage, RawStep::send(head), trickle]);
    let mut backends = backends_at(&host.base_url());
    // About 250 bytes come in 1.25 s.
    backends.upstreams[0].timeouts.first_byte = Duration::from_millis(500);
    let gate = Gate::start(&config(), backends);
    let answer = request(&gate, &turn(Ask::Whole)).await;
    assert_eq!((answer.status(), answer.json()), (200, replies::whole()));
    assert_eq!(host.requests().len(), 1);
}
