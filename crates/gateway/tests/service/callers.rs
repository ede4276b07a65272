//! Who may call, under which host name, and with which models.

use crate::gate::{Gate, ask, backends, config, error_message};
use http::Method;
use toolgate_backend::ModelPattern;
use toolgate_gateway::config::Key;
use toolgate_testkit::ScriptedUpstream;

/// SHA-256 of `a-key`.
fn alice(models: &[&str]) -> Key {
    use sha2::{Digest, Sha256};
    Key {
        name: "alice".to_owned(),
        sha256: Sha256::digest("a-key").into(),
        models: models.iter().copied().map(ModelPattern::new).collect(),
    }
}

async fn gate_for_alice(models: &[&str]) -> Gate {
    let upstream = ScriptedUpstream::start().await;
    let mut config = config();
    config.keys = vec![alice(models)];
    Gate::start(&config, backends(&upstream))
}

#[tokio::test]
async fn a_foreign_host_name_or_page_is_refused_on_every_path_in_the_apis_own_words() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for (path, body) in ask("demo", false) {
        for header in
            [("host", "evil.example"), ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")]
        {
            let headers = [("content-type", "application/json"), header];
            let answer = gate.send(Method::POST, path, &headers, body.to_string()).await;
            assert_eq!(answer.status(), 403, "{path} {header:?}");
            error_message(path, &answer.json().await);
        }
    }
    let answer = gate.send(Method::GET, "/healthz", &[("host", "evil.example")], "").await;
    assert_eq!(answer.status(), 403);
}

#[tokio::test]
async fn a_form_or_text_post_is_refused() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for (path, body) in ask("demo", false) {
        let answer = gate.send(Method::POST, path, &[("content-type", "text/plain")], body.to_string()).await;
        assert_eq!(answer.status(), 415);
        let message = error_message(path, &answer.json().await);
        assert!(message.contains("application/json"), "{message}");
    }
}

#[tokio::test]
async fn a_key_opens_its_models_and_no_others() {
    let gate = gate_for_alice(&["demo"]).await;
    for (path, body) in ask("demo", false) {
        let as_alice = [("content-type", "application/json"), ("authorization", "Bearer a-key")];
        assert_eq!(gate.send(Method::POST, path, &as_alice, body.to_string()).await.status(), 200, "{path}");
        let nobody = gate.post(path, &body).await;
        assert_eq!(nobody.status(), 401, "{path}");
        let message = error_message(path, &nobody.json().await);
        assert!(message.contains("x-api-key"), "{message}");
        let other = body.to_string().replace("\"demo\"", "\"claude\"");
        let refused = gate.send(Method::POST, path, &as_alice, other).await;
        assert_eq!(refused.status(), 403, "{path}");
        error_message(path, &refused.json().await);
    }
}

#[tokio::test]
async fn models_are_listed_in_the_callers_shape_and_only_those_it_may_use() {
    let gate = gate_for_alice(&["demo", "cl*"]).await;
    let openai = gate.send(Method::GET, "/v1/models", &[("x-api-key", "a-key")], "").await.json().await;
    assert_eq!(openai["object"], "list");
    let ids: Vec<&str> =
        openai["data"].as_array().expect("models").iter().filter_map(|model| model["id"].as_str()).collect();
    assert_eq!(ids, ["demo", "claude"]);
    let headers = [("x-api-key", "a-key"), ("anthropic-version", "2023-06-01")];
    let anthropic = gate.send(Method::GET, "/v1/models", &headers, "").await.json().await;
    assert_eq!((&anthropic["has_more"], &anthropic["data"][0]["type"]), (&false.into(), &"model".into()));
    let one = gate.send(Method::GET, "/v1/models/demo", &[("x-api-key", "a-key")], "").await;
    assert_eq!(one.json().await["id"], "demo");
    let none = gate.send(Method::GET, "/v1/models/gpt", &[("x-api-key", "a-key")], "").await;
    assert_eq!(none.status(), 403);
}

#[tokio::test]
async fn health_needs_no_key_and_metrics_do() {
    let gate = gate_for_alice(&["*"]).await;
    assert_eq!(gate.get("/healthz").await.status(), 200);
    assert_eq!(gate.get("/metrics").await.status(), 401);
}
