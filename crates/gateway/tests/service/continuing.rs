//! Stored responses: later requests of the same caller continue them by id.

use http::Method;
use serde_json::{Value, json};
use toolgate_backend::ModelPattern;
use toolgate_gateway::config::Key;
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::{Answer, Gate, backends, config, error_message};
use crate::hosts::HOSTS;
use crate::replies;

/// The last event of a streamed response, which repeats the response.
pub(crate) fn last_event(stream: &str) -> Value {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok()).rev();
    events.find(|event| event["type"] == "response.completed").expect("it completes")
}

#[tokio::test]
async fn a_response_is_continued_whole_and_streamed() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let request: Value = received.json();
        if request["stream"] == true { replies::stream() } else { Script::json(200, replies::whole()) }
    });
    let gate = Gate::before(&upstream);
    let first = gate.post("/v1/responses", &json!({ "model": "claude", "input": "one" })).await.json().await;
    let second =
        json!({ "model": "claude", "input": "two", "stream": true, "previous_response_id": first["id"] });
    let stream = gate.post("/v1/responses", &second).await.text().await;
    let third = json!({ "model": "claude", "input": "three", "previous_response_id": last_event(&stream)["response"]["id"] });
    assert_eq!(gate.post("/v1/responses", &third).await.status(), 200);

    let sent = upstream.requests().pop().expect("three requests").json();
    let texts: Vec<String> = sent["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| {
            let content = &message["content"];
            let text = content.as_str().or_else(|| content[0]["text"].as_str());
            text.unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(texts, ["one", "hi there", "two", "hi there", "three"]);
}

/// A gateway for two callers, `alice` and `bob`, whose keys are their names.
pub(crate) fn gate_for_two(upstream: &ScriptedUpstream) -> Gate {
    use sha2::{Digest, Sha256};
    let mut config = config();
    let key = |name: &str| Key {
        name: name.to_owned(),
        sha256: Sha256::digest(name).into(),
        models: vec![ModelPattern::new("*")],
    };
    config.keys = vec![key("alice"), key("bob")];
    Gate::start(&config, backends(upstream))
}

pub(crate) async fn ask_as(name: &str, gate: &Gate, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("x-api-key", name)];
    gate.send(Method::POST, "/v1/responses", &headers, body.to_string()).await
}

#[tokio::test]
async fn a_relayed_response_is_stored_for_its_caller_and_nobody_else() {
    let host = &HOSTS[2];
    let upstream = ScriptedUpstream::start().await;
    let gate = gate_for_two(&upstream);
    for stream in [false, true] {
        let script = (host.tail)(host.begun());
        let bytes = replies::bytes_of(&script);
        upstream.on(if stream { script } else { Script::json(200, (host.whole)()) });
        let body = json!({ "model": host.model, "input": "one", "stream": stream });
        let answer = ask_as("alice", &gate, &body).await.text().await;
        assert_eq!(answer, if stream { bytes } else { (host.whole)().to_string() }, "relayed as it is");

        let path = "/v1/responses/resp_1";
        let stored = gate.send(Method::GET, path, &[("x-api-key", "alice")], "").await;
        assert_eq!(stored.json().await, (host.whole)());
        assert_eq!(gate.send(Method::GET, path, &[("x-api-key", "bob")], "").await.status(), 404);

        let next = json!({ "model": host.model, "input": "two", "previous_response_id": "resp_1" });
        let sent_before = upstream.requests().len();
        assert_eq!(ask_as("bob", &gate, &next).await.status(), 404);
        assert_eq!(
            upstream.requests().len(),
            sent_before,
            "another caller's response does not reach the host"
        );
        upstream.on(Script::json(200, (host.whole)()));
        assert_eq!(ask_as("alice", &gate, &next).await.status(), 200);
        let sent = upstream.requests().pop().expect("a request").json().to_string();
        assert!(["one", "hi there", "two"].iter().all(|text| sent.contains(text)), "{sent}");
        let deleted = gate.send(Method::DELETE, path, &[("x-api-key", "alice")], "").await;
        assert_eq!(deleted.json().await["deleted"], true);
    }
}

#[tokio::test]
async fn a_relayed_response_that_failed_is_not_stored() {
    let host = &HOSTS[2];
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    upstream.on((host.error_frame)(host.begun(), "out of cards"));
    let body = json!({ "model": host.model, "input": "one", "stream": true });
    gate.post("/v1/responses", &body).await.text().await;
    assert_eq!(gate.get("/v1/responses/resp_1").await.status(), 404);
}

#[tokio::test]
async fn a_stored_response_can_be_read_and_deleted() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let reply = gate.post("/v1/responses", &json!({ "model": "demo", "input": "hello" })).await.json().await;
    let path = format!("/v1/responses/{}", reply["id"].as_str().expect("an id"));
    assert_eq!(gate.get(&path).await.json().await, reply);
    let deleted = gate.send(Method::DELETE, &path, &[], "").await.json().await;
    assert_eq!(deleted["deleted"], true);
    assert_eq!(gate.get(&path).await.status(), 404);
}

#[tokio::test]
async fn a_response_with_store_false_is_not_stored() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let body = json!({ "model": "demo", "input": "hello", "store": false });
    let reply = gate.post("/v1/responses", &body).await.json().await;
    let path = format!("/v1/responses/{}", reply["id"].as_str().expect("an id"));
    assert_eq!(gate.get(&path).await.status(), 404);
}

#[tokio::test]
async fn an_unknown_id_is_forwarded_only_to_a_host_of_the_same_dialect() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let body = json!({ "model": "claude", "input": "hello", "previous_response_id": "resp_elsewhere" });
    let answer = gate.post("/v1/responses", &body).await;
    assert_eq!(answer.status(), 404);
    let message = error_message("/v1/responses", &answer.json().await);
    assert!(message.contains("resp_elsewhere"), "{message}");

    let refusal = json!({ "error": { "message": "not mine", "type": "invalid_request_error", "param": null, "code": null } });
    upstream.on(Script::json(400, refusal));
    let body = json!({ "model": "resp", "input": "hello", "previous_response_id": "resp_elsewhere" });
    assert_eq!(gate.post("/v1/responses", &body).await.status(), 400);
    assert_eq!(upstream.next_request().await.json(), body);
}
