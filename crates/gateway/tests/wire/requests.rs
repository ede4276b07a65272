//! Well-formed requests, however their bytes arrive and whatever else is sent on the same connection.

use serde_json::json;
use sha2::{Digest, Sha256};
use toolgate_backend::ModelPattern;
use toolgate_backend::config::{BackendConfig, Via};
use toolgate_gateway::config::Key;
use toolgate_testkit::{RawEnd, RawMessage, Script, ScriptedUpstream};

use crate::gate::{Gate, ask, ask_messages, config, route};
use crate::replies;
use crate::stage::{client_of, post};

fn demo() -> Gate {
    let models = vec![route("demo", &[Via::Demo])];
    Gate::start(&config(), BackendConfig { models, ..BackendConfig::default() })
}

/// A request to the demo model.
fn messages(fields: &str) -> String {
    post("/v1/messages", fields, &ask_messages("demo", false).to_string())
}

#[track_caller]
fn assert_reply(response: &RawMessage) {
    assert_eq!(response.status(), 200, "{}", response.text());
    for name in ["request-id", "date"] {
        assert!(!response.header(name).is_empty(), "{name} is missing in:\n{}", response.head);
    }
    assert_eq!(response.json()["type"], "message", "{}", response.text());
}

#[tokio::test]
async fn a_request_may_come_in_any_two_pieces() {
    let gate = demo();
    let text = messages("");
    for cut in 1..text.len() {
        let mut client = client_of(&gate).await;
        client.send(&text[..cut]).await;
        // The gateway has read the first piece once it has answered a later request.
        assert_eq!(gate.get("/healthz").await.status(), 200);
        client.send(&text[cut..]).await;
        assert_reply(&client.response().await);
    }
}

#[tokio::test]
async fn whole_and_streamed_requests_sent_ahead_are_answered_in_order() {
    let gate = demo();
    let mut client = client_of(&gate).await;
    let streamed: String =
        ask("demo", true).iter().map(|(path, body)| post(path, "", &body.to_string())).collect();
    client.send(messages("") + &streamed + &messages("")).await;
    assert_reply(&client.response().await);
    for end in ["message_stop", "[DONE]", "response.completed"] {
        let response = client.response().await;
        assert_eq!(response.header("transfer-encoding"), "chunked", "{}", response.head);
        assert!(response.text().contains(end), "{}", response.text());
    }
    assert_reply(&client.response().await);
}

#[tokio::test]
async fn other_requests_are_answered_on_the_same_connection() {
    let gate = demo();
    let body = ask_messages("demo", false).to_string();
    let chunked = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for other in ["GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), chunked] {
        let mut client = client_of(&gate).await;
        client.send(messages("")).await;
        assert_reply(&client.response().await);
        client.send(other + &messages("")).await;
        assert_eq!(client.response().await.status(), 200);
        assert_reply(&client.response().await);
    }
}

#[tokio::test]
async fn a_client_that_asks_to_close_gets_its_reply_and_the_end() {
    let gate = demo();
    let mut client = client_of(&gate).await;
    client.send(messages("connection: close\r\n")).await;
    let response = client.response().await;
    assert_eq!(response.header("connection"), "close", "{}", response.head);
    assert_reply(&response);
    assert_eq!(client.rest().await, (Vec::new(), RawEnd::Played));
}

#[tokio::test]
async fn a_client_that_was_refused_may_send_another_request() {
    let gate = demo();
    let mut client = client_of(&gate).await;
    client.send(messages("").replace("localhost", "evil.example")).await;
    let response = client.response().await;
    assert_eq!(response.status(), 403);
    assert!(response.text().contains("evil.example"), "{}", response.text());
    client.send(messages("")).await;
    assert_reply(&client.response().await);
    // A large body is not waited for.
    let length = 10_000_000;
    client
        .send(format!(
            "POST /v1/messages HTTP/1.1\r\nhost: evil.example\r\ncontent-length: {length}\r\n\r\n{{"
        ))
        .await;
    assert_eq!(client.response().await.status(), 403);
}

#[tokio::test]
async fn each_request_on_a_connection_is_authorised_on_its_own() {
    let key = |name: &str, models: &str| Key {
        name: name.to_owned(),
        sha256: Sha256::digest(name).into(),
        models: vec![ModelPattern::new(models)],
    };
    let mut config = config();
    config.keys = vec![key("one", "*"), key("two", "other")];
    let models = vec![route("demo", &[Via::Demo])];
    let gate = Gate::start(&config, BackendConfig { models, ..BackendConfig::default() });
    let mut client = client_of(&gate).await;
    // All heads have the same length and differ in one word.
    let expected = [("one", 200), ("one", 200), ("two", 403), ("one", 200), ("new", 401), ("one", 200)];
    for (key, status) in expected {
        client.send(messages(&format!("x-api-key: {key}\r\n"))).await;
        let response = client.response().await;
        assert_eq!(response.status(), status, "{key}: {}", response.text());
    }
    client.send(messages("x-api-key: one\r\n").replace("application/json", "application/yaml")).await;
    assert_eq!(client.response().await.status(), 415);
    client.send(messages("x-api-key: one\r\n")).await;
    assert_reply(&client.response().await);
}

#[tokio::test]
async fn large_requests_and_replies_arrive_whole() {
    let upstream = ScriptedUpstream::start().await;
    let text = "word ".repeat(200_000);
    let reply = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
    });
    for _ in 0..2 {
        upstream.on(Script::json(200, &reply));
    }
    let gate = Gate::before(&upstream);
    let mut client = client_of(&gate).await;
    let body = json!({ "model": "gpt", "messages": [{ "role": "user", "content": text }] });
    for _ in 0..2 {
        client.send(post("/v1/chat/completions", "", &body.to_string())).await;
        let response = client.response().await;
        assert_eq!(response.status(), 200, "{}", response.head);
        assert_eq!(response.json(), reply);
        assert_eq!(upstream.next_request().await.json(), body);
    }
}

#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_cancels_the_turn_at_the_host() {
    for stream in [false, true] {
        let upstream = ScriptedUpstream::start().await;
        upstream.on(Script::sse().stall());
        let gate = Gate::before(&upstream);
        let mut client = client_of(&gate).await;
        client.send(post("/v1/messages", "", &ask_messages("claude", stream).to_string())).await;
        upstream.next_request().await;
        drop(client);
        upstream.disconnected().await;
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_when_the_gateway_stops() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(replies::tail(replies::head(Script::sse())));
    let gate = Gate::before(&upstream);
    let mut client = client_of(&gate).await;
    client.send(post("/v1/messages", "", &ask_messages("claude", true).to_string())).await;
    let response = client.response().await;
    assert!(response.text().contains("message_stop"), "{}", response.text());
    gate.running.stop().await.expect("it stops in order");
    assert_eq!(client.rest().await, (Vec::new(), RawEnd::Played));
}
