//! Heads that a host may answer with. After each of them the next request works.

use toolgate_testkit::RawStep;

use crate::replies;
use crate::stage::{Ask, exchange, first_events, good_reply, good_reply_to, response};

/// A host that answers its first request with these bytes, and every later one well.
fn answers_with(bytes: &str) -> [RawStep; 3] {
    [RawStep::ReadMessage, RawStep::send(bytes), RawStep::answer_all(good_reply())]
}

/// The error that a client gets for a reply that is not one, from a host that is asked once and not again.
async fn check_refused(bytes: &str, part: &str) {
    for ask in [Ask::Whole, Ask::Stream] {
        exchange(ask, answers_with(bytes)).await.assert_error(502, part).assert_requests(2);
    }
}

#[tokio::test]
async fn status_204_is_an_error_and_ends_with_its_head() {
    let smuggled = response("200 OK", "", r#"{"smuggled":true}"#);
    check_refused(&format!("HTTP/1.1 204 No Content\r\n\r\n{smuggled}"), "204").await;
    check_refused("HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello", "204").await;
    check_refused("HTTP/1.1 204 No Content\r\n\r\n", "204").await;
}

#[tokio::test]
async fn status_304_is_an_error_and_ends_with_its_head() {
    let smuggled = response("200 OK", "", r#"{"smuggled":true}"#);
    check_refused(&format!("HTTP/1.1 304 Not Modified\r\n\r\n{smuggled}"), "304").await;
    check_refused("HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", "304").await;
}

#[tokio::test]
async fn statuses_201_and_202_are_successes() {
    for status in ["201 Created", "202 Accepted"] {
        let reply = response(status, "", &replies::whole().to_string());
        let outcome = exchange(Ask::Whole, answers_with(&reply)).await;
        outcome.assert_says("hi there").assert_requests(2);
        assert!((200..300).contains(&outcome.response.status()), "{}", outcome.response.head);
        let reply = good_reply_to(Ask::Stream).replace("200 OK", status);
        let outcome = exchange(Ask::Stream, answers_with(&reply)).await;
        outcome.assert_says("message_stop").assert_requests(2);
    }
}

#[tokio::test]
async fn status_101_is_an_error() {
    check_refused("HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n", "")
        .await;
}

#[tokio::test]
async fn interim_responses_are_skipped() {
    for ask in [Ask::Whole, Ask::Stream] {
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        let reply = format!("{interim}{}", good_reply_to(ask));
        exchange(ask, answers_with(&reply)).await.assert_status(200).assert_says("hi there");
    }
}

#[tokio::test]
async fn a_redirect_is_an_error_that_does_not_tell_where_it_leads() {
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let redirect = response(status, "location: http://secret.internal/admin\r\n", "{}");
        for ask in [Ask::Whole, Ask::Stream] {
            let outcome = exchange(ask, answers_with(&redirect)).await;
            outcome.assert_error(502, "redirect").assert_requests(2);
            assert!(!outcome.response.text().contains("secret.internal"), "{}", outcome.response.text());
        }
    }
}

#[tokio::test]
async fn a_reply_in_gzip_that_nobody_requested_is_an_error() {
    let gzip = "\u{1f}\u{8}not shown to anybody";
    check_refused(&response("200 OK", "content-encoding: gzip\r\n", gzip), "gzip").await;
}

#[tokio::test]
async fn a_folded_header_is_an_error() {
    check_refused(&response("200 OK", "x-folded: one\r\n two\r\n", &replies::whole().to_string()), "").await;
}

#[tokio::test]
async fn a_space_before_the_colon_is_an_error() {
    check_refused(&response("200 OK", "x-spaced : one\r\n", &replies::whole().to_string()), "").await;
}

#[tokio::test]
async fn two_lengths_are_an_error() {
    check_refused(&response("200 OK", "content-length: 3\r\n", &replies::whole().to_string()), "").await;
}

#[tokio::test]
async fn chunks_win_over_a_length_and_the_connection_is_not_used_again() {
    let reply = good_reply_to(Ask::Stream).replacen("content-type", "content-length: 9\r\ncontent-type", 1);
    let outcome = exchange(Ask::Stream, answers_with(&reply)).await;
    outcome.assert_status(200).assert_says("message_stop").assert_requests(2);
    assert_eq!(outcome.host.connections().len(), 2);
}

#[tokio::test]
async fn a_head_of_a_megabyte_is_an_error() {
    let field = format!("x-large: {}\r\n", "a".repeat(1000));
    check_refused(&response("200 OK", &field.repeat(1024), &replies::whole().to_string()), "").await;
}

#[tokio::test]
async fn a_malformed_head_is_an_error() {
    let heads = [
        "HTTP/1.1 2xx Hm\r\ncontent-length: 0\r\n\r\n",
        "HTTP/3.7 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0x10\r\n\r\n",
        "HTTP/1.1 200 OK\r\nnul: \0\r\ncontent-length: 0\r\n\r\n",
        "220 mail.example ESMTP\r\n\r\n",
        "\r\n\r\n\r\n\r\n",
    ];
    for head in heads {
        check_refused(head, "").await;
    }
}

#[tokio::test]
async fn a_success_with_a_body_that_is_no_reply_is_an_error() {
    check_refused(&response("200 OK", "", "not JSON"), "").await;
    check_refused(&response("200 OK", "", r#"{"hello":"world"}"#), "").await;
    check_refused(&response("200 OK", "", ""), "").await;
}

#[tokio::test]
async fn a_rejected_key_is_the_gateways_problem_and_the_hosts_words_stay_private() {
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"account 4711 of sk-host is closed"}}"#;
    for ask in [Ask::Whole, Ask::Stream] {
        let outcome = exchange(ask, answers_with(&response("401 Unauthorized", "", body))).await;
        outcome.assert_error(502, "key").assert_requests(2);
        assert!(!outcome.response.text().contains("4711"), "{}", outcome.response.text());
    }
}

#[tokio::test]
async fn a_reply_in_http_1_0_is_a_reply() {
    let reply = good_reply().replace("HTTP/1.1", "HTTP/1.0");
    exchange(Ask::Whole, answers_with(&reply)).await.assert_status(200).assert_says("hi there");
    // Without a length it ends with the connection.
    let head = "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n";
    let steps = [RawStep::ReadMessage, RawStep::send(format!("{head}{}", replies::whole())), RawStep::Close];
    exchange(Ask::Whole, steps).await.assert_status(200).assert_says("hi there").assert_requests(2);
}

#[tokio::test]
async fn an_http_1_0_stream_without_its_last_event_is_incomplete() {
    let head = "HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let bytes = format!("{head}{}", first_events());
    let steps = [RawStep::ReadMessage, RawStep::send(bytes), RawStep::Close];
    let outcome = exchange(Ask::Stream, steps).await;
    outcome.assert_status(200).assert_says("hi there").assert_says("event: error").assert_requests(2);
}
