//! The client and the host speak the same dialect: bytes are relayed, and only what must change changes.

use crate::gate::{Gate, ask, ask_messages, backends, config};
use crate::hosts::HOSTS;
use crate::replies;
use http::Method;
use toolgate_state::{UnixMillis, UsageGroup};
use toolgate_testkit::{Script, ScriptedUpstream};

#[tokio::test]
async fn a_whole_reply_and_its_request_pass_byte_by_byte() {
    let upstream = ScriptedUpstream::start().await;
    upstream.accept_anything();
    upstream.on(Script::json(200, replies::whole()));
    let gate = Gate::before(&upstream);
    let body =
        r#"{ "model" : "claude","max_tokens":5, "messages":[{"role":"user","content":"é"}], "new": 1.0 }"#;
    let headers = [
        ("content-type", "application/json"),
        ("anthropic-beta", "new-things"),
        ("x-api-key", "the-callers-own"),
    ];
    let answer = gate.send(Method::POST, "/v1/messages", &headers, body).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("x-toolgate-upstream"), "claude");
    assert_eq!(answer.header("x-toolgate-loss"), "");
    assert_eq!(answer.header("request-id"), answer.header("x-request-id"));
    assert_eq!(answer.text().await, replies::whole().to_string());

    let received = upstream.next_request().await;
    assert_eq!(received.path, "/v1/messages");
    assert_eq!(received.body, body.as_bytes());
    assert_eq!(received.header("x-api-key"), Some("claude-secret"), "the gateway's key, never the caller's");
    assert_eq!(received.header("anthropic-beta"), Some("new-things"));
    assert_eq!(received.header("anthropic-version"), Some("2023-06-01"));
}

#[tokio::test]
async fn an_unrequested_stream_becomes_one_whole_reply() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::stream());
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", false)).await;
    assert_eq!(answer.status(), 200);
    let reply = answer.json().await;
    assert_eq!(reply["content"][0]["text"], "hi there");
    assert_eq!(reply["usage"]["output_tokens"], 3);
    let upstream = upstream.next_request().await;
    assert_eq!(upstream.json()["stream"], false, "no stream was requested");
}

#[tokio::test]
async fn only_the_models_name_changes_where_the_host_calls_it_differently() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::json(200, replies::whole()));
    let mut backends = backends(&upstream);
    backends.models[1].targets[0].model = Some("claude-host".to_owned());
    let gate = Gate::start(&config(), backends);
    let body = r#"{"max_tokens":5, "model":"claude", "messages":[{"role":"user","content":"x"}]}"#;
    let answer = gate.send(Method::POST, "/v1/messages", &[("content-type", "application/json")], body).await;
    assert_eq!(answer.status(), 200);
    let received = upstream.next_request().await;
    assert_eq!(received.body, body.replace("\"claude\"", "\"claude-host\"").as_bytes());
}

#[tokio::test]
async fn a_stream_passes_byte_by_byte_and_is_metered() {
    let upstream = ScriptedUpstream::start().await;
    let script = replies::stream();
    let bytes = replies::bytes_of(&script);
    upstream.on(script);
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    assert_eq!(answer.text().await, bytes);

    let store = gate.store.clone();
    gate.running.stop().await.expect("it stops in order");
    // The usage log writes in intervals, so the summary is polled.
    let totals = loop {
        let totals = store.usage_summary(UnixMillis(0), UsageGroup::Model).await.expect("a summary");
        if !totals.is_empty() {
            break totals;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((totals[0].group.as_str(), totals[0].input, totals[0].output), ("claude", 7, 3));
}

#[tokio::test]
async fn a_chat_stream_without_token_counts_passes_as_it_is_and_is_estimated() {
    let host = &HOSTS[1];
    let upstream = ScriptedUpstream::start().await;
    let script = (host.tail)(host.begun());
    let bytes = replies::bytes_of(&script);
    upstream.on(script);
    let gate = Gate::before(&upstream);
    let [_, (path, body), _] = ask(host.model, true);
    assert_eq!(gate.post(path, &body).await.text().await, bytes);
    assert_eq!(upstream.next_request().await.json(), body, "the request is unchanged");
    let metrics = gate.get("/metrics").await.text().await;
    let count = |kind: &str| {
        let line = metrics.lines().find(|line| line.contains("toolgate_tokens_total") && line.contains(kind));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or_default()
    };
    assert!((1..50).contains(&count("input")) && (1..50).contains(&count("output")), "{metrics}");
}

#[tokio::test]
async fn half_a_frame_never_reaches_the_client_and_a_cut_ends_in_an_error_event() {
    // T17
    let upstream = ScriptedUpstream::start().await;
    upstream
        .on(replies::head(Script::sse()).bytes("event: content_block_delta\ndata: {\"type\":\"conte").cut());
    let gate = Gate::before(&upstream);
    let answer = gate.post("/v1/messages", &ask_messages("claude", true)).await;
    let text = answer.text().await;
    let head = replies::bytes_of(&replies::head(Script::sse()));
    let rest = text.strip_prefix(&head).unwrap_or_else(|| panic!("the whole frames came: {text}"));
    assert!(rest.starts_with("event: error\n"), "{rest}");
    assert!(rest.contains("incomplete"), "{rest}");
}

#[tokio::test]
async fn a_stream_that_ends_without_its_last_frame_is_an_error() {
    // T17
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::head(Script::sse()));
    let gate = Gate::before(&upstream);
    let text = gate.post("/v1/messages", &ask_messages("claude", true)).await.text().await;
    assert!(text.contains("event: error\n"), "{text}");
}
