//! Header fields that pass from hosts to clients, and media types however they are written.

use toolgate_testkit::{RawHost, RawMessage, RawStep};

use crate::gate::{Gate, backends_at, config};
use crate::replies;
use crate::stage::{
    Ask, Outcome, STREAM_HEAD, all_events, chunk, exchange, gate_before, good_reply, good_reply_to, post,
    request, response, turn, turn_body,
};

async fn answers_with(ask: Ask, bytes: &str) -> Outcome {
    let steps = [RawStep::ReadMessage, RawStep::send(bytes), RawStep::answer_all(good_reply())];
    exchange(ask, steps).await
}

/// Fields that clients read, with values that no gateway would make up.
const LIMITS: [(&str, &str); 4] = [
    ("anthropic-ratelimit-requests-remaining", "41"),
    ("anthropic-ratelimit-tokens-reset", "2031-01-01T00:00:00Z"),
    ("x-ratelimit-remaining-tokens", "4242"),
    ("x-ratelimit-reset-requests", "17ms"),
];

fn limit_fields() -> String {
    LIMITS.map(|(name, value)| format!("{name}: {value}\r\n")).concat()
}

#[track_caller]
fn assert_limits(response: &RawMessage) {
    for (name, value) in LIMITS {
        assert_eq!(response.header(name), value, "{name} in:\n{}", response.head);
    }
}

#[tokio::test]
async fn rate_limits_of_the_host_reach_the_client() {
    for ask in [Ask::Whole, Ask::Stream] {
        let reply =
            good_reply_to(ask).replacen("content-type", &format!("{}content-type", limit_fields()), 1);
        let outcome = answers_with(ask, &reply).await;
        outcome.assert_status(200);
        assert_limits(&outcome.response);
    }
}

#[tokio::test]
async fn rate_limits_and_the_wait_reach_the_client_with_an_error() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let fields = format!("{}retry-after: 3600\r\n", limit_fields());
    for ask in [Ask::Whole, Ask::Stream] {
        let outcome = answers_with(ask, &response("429 Too Many Requests", &fields, body)).await;
        outcome.assert_error(429, "slow down").assert_requests(2);
        assert_eq!(outcome.response.header("retry-after"), "3600");
        assert_limits(&outcome.response);
    }
}

#[tokio::test]
async fn the_hosts_request_id_reaches_the_client() {
    for name in ["request-id", "x-request-id"] {
        for ask in [Ask::Whole, Ask::Stream] {
            let field = format!("{name}: req_of_the_host\r\ncontent-type");
            let reply = good_reply_to(ask).replacen("content-type", &field, 1);
            let outcome = answers_with(ask, &reply).await;
            outcome.assert_status(200);
            assert!(outcome.response.head.contains("req_of_the_host"), "{name}:\n{}", outcome.response.head);
        }
    }
}

#[tokio::test]
async fn fields_of_the_connection_to_the_host_do_not_reach_the_client() {
    let fields =
        "connection: x-private\r\nx-private: 1\r\nkeep-alive: timeout=5\r\nset-cookie: a=b\r\ncontent-type";
    let outcome = answers_with(Ask::Whole, &good_reply().replacen("content-type", fields, 1)).await;
    outcome.assert_status(200);
    for name in ["x-private", "keep-alive", "set-cookie"] {
        assert_eq!(outcome.response.header(name), "", "{}", outcome.response.head);
    }
}

#[tokio::test]
async fn streams_ask_proxies_not_to_buffer() {
    let outcome = answers_with(Ask::Stream, &good_reply_to(Ask::Stream)).await;
    assert_eq!(outcome.response.header("x-accel-buffering"), "no", "{}", outcome.response.head);
    // The same for a stream that the gateway writes itself.
    let host = RawHost::start().await;
    let demo = post("/v1/messages", "", &turn_body(Ask::Stream, "hello").replace("claude", "demo"));
    let answer = request(&gate_before(&host), &demo).await;
    assert_eq!((answer.status(), answer.header("x-accel-buffering")), (200, "no"), "{}", answer.head);
}

#[tokio::test]
async fn a_hosts_media_type_may_be_written_in_any_case() {
    // What was not requested shows that the media type decides.
    let reply = format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&all_events()));
    for media in ["TEXT/EVENT-STREAM", "Text/Event-Stream; charset=UTF-8"] {
        let outcome = answers_with(Ask::Whole, &reply.replace("text/event-stream", media)).await;
        outcome.assert_status(200);
        assert_eq!(outcome.response.json()["content"], replies::whole()["content"]);
    }
    for media in ["Application/JSON", "APPLICATION/JSON;charset=utf-8"] {
        let outcome = answers_with(Ask::Stream, &good_reply().replace("application/json", media)).await;
        outcome.assert_status(200).assert_says("hi there").assert_says("message_stop");
    }
    let page = response("200 OK", "", "<html>Welcome</html>").replace("application/json", "TEXT/HTML");
    answers_with(Ask::Stream, &page).await.assert_error(502, "base_url");
}

#[tokio::test]
async fn a_clients_media_type_may_be_written_in_any_case() {
    let host = RawHost::start().await;
    host.always([RawStep::answer_all(good_reply())]);
    let gate = gate_before(&host);
    for media in ["Application/JSON", "APPLICATION/json; charset=utf-8", "application/json;charset=UTF-8"] {
        let answer = request(&gate, &turn(Ask::Whole).replace("application/json", media)).await;
        assert_eq!(answer.status(), 200, "{media}: {}", answer.text());
    }
    let answer = request(&gate, &turn(Ask::Whole).replace("application/json", "text/plain")).await;
    assert_eq!(answer.status(), 415);
}

#[tokio::test]
async fn the_query_of_a_base_url_is_kept() {
    let host = RawHost::start().await;
    host.always([RawStep::answer_all(good_reply())]);
    let gate = Gate::start(&config(), backends_at(&format!("{}?api-version=2&x=%20", host.base_url())));
    assert_eq!(request(&gate, &turn(Ask::Whole)).await.status(), 200);
    let head = host.requests().swap_remove(0).head;
    assert!(head.starts_with("POST /v1/messages?api-version=2&x=%20 HTTP/1.1\r\n"), "{head}");
}
