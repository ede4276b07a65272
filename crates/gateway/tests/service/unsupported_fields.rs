//! Optional fields that a host refuses: left out, reported and remembered.

use serde_json::{Value, json};
use toolgate_backend::config::{UpstreamName, Via};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::{Gate, ask, backends, config, route};
use crate::hosts::HOSTS;

/// A gateway with a model of which nothing is known.
fn gate(upstream: &ScriptedUpstream) -> Gate {
    let mut backends = backends(upstream);
    backends.models.push(route("mystery", &[Via::Upstream(UpstreamName::new("gpt"))]));
    Gate::start(&config(), backends)
}

/// A host of the model `mystery` that refuses these fields, one per response, in the words of an OpenAI host.
fn refuse(upstream: &ScriptedUpstream, fields: &'static [&'static str]) {
    upstream.always(move |received| {
        let request = received.json();
        match fields.iter().find(|field| !request[**field].is_null()) {
            Some(field) => {
                let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
                Script::json(400, error(&message))
            }
            None => Script::json(200, (HOSTS[1].whole)()),
        }
    });
}

fn error(message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": null, "code": null } })
}

/// A request of the Messages API with two settings.
fn request() -> Value {
    let [(_, mut body), ..] = ask("mystery", false);
    body["temperature"] = json!(0.5);
    body["stop_sequences"] = json!(["END"]);
    body
}

#[tokio::test]
async fn a_field_that_the_host_refuses_is_left_out_reported_and_remembered() {
    let upstream = ScriptedUpstream::start().await;
    refuse(&upstream, &["temperature", "stop"]);
    let gate = gate(&upstream);
    let answer = gate.post("/v1/messages", &request()).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-loss")), (200, "temperature, stop"));
    let sent: Vec<Value> = upstream.requests().iter().map(toolgate_testkit::Received::json).collect();
    let has = |field: &str| sent.iter().map(|body| !body[field].is_null()).collect::<Vec<_>>();
    assert_eq!(has("temperature"), [true, false, false]);
    assert_eq!(has("stop"), [true, true, false]);
    assert_eq!(sent[2]["messages"], sent[0]["messages"]);

    let before = upstream.requests().len();
    let answer = gate.post("/v1/messages", &request()).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-loss")), (200, "stop, temperature"));
    assert_eq!(upstream.requests().len(), before + 1, "the second request is right at once");
}

#[tokio::test]
async fn a_refusal_that_cannot_be_met_reaches_the_client_after_one_request() {
    for message in [
        "Unsupported parameter: 'messages' is not supported with this model.",
        "Invalid 'temperature': decimal above maximum value.",
        "The 'stop' of the reply before is unsupported here and must be passed back",
        "This model does not support tools.",
    ] {
        let upstream = ScriptedUpstream::start().await;
        upstream.always(move |_| Script::json(400, error(message)));
        let gate = gate(&upstream);
        let answer = gate.post("/v1/messages", &request()).await;
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.json().await["error"]["message"], message);
        assert_eq!(upstream.requests().len(), 1, "{message}");
    }
}

#[tokio::test]
async fn a_host_that_refuses_everything_is_not_asked_for_ever() {
    let upstream = ScriptedUpstream::start().await;
    refuse(&upstream, &["temperature", "stop", "max_tokens", "max_completion_tokens", "messages"]);
    let gate = gate(&upstream);
    let answer = gate.post("/v1/messages", &request()).await;
    assert_eq!(answer.status(), 400);
    assert!(upstream.requests().len() <= 5, "{}", upstream.requests().len());
}

#[tokio::test]
async fn relayed_bytes_are_never_changed() {
    let upstream = ScriptedUpstream::start().await;
    refuse(&upstream, &["temperature"]);
    let gate = gate(&upstream);
    let [_, (path, mut body), _] = ask("mystery", false);
    body["temperature"] = json!(0.5);
    assert_eq!(gate.post(path, &body).await.status(), 400);
    assert_eq!(upstream.requests().len(), 1);
}
