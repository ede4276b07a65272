//! Invalid requests: each API reports the error in its own format, with the right status and what to do.

use crate::gate::{Gate, ask, config, error_message, route};
use http::Method;
use toolgate_backend::config::{BackendConfig, Via};

fn gate() -> Gate {
    let models = vec![route("demo", &[Via::Demo]), route("demo-two", &[Via::Demo])];
    Gate::start(&config(), BackendConfig { models, ..BackendConfig::default() })
}

async fn check(make: impl Fn(&str) -> Vec<u8>, status: u16, part: &str) {
    let gate = gate();
    for (path, body) in ask("demo", true) {
        let body = make(&body.to_string());
        let answer = gate.send(Method::POST, path, &[("content-type", "application/json")], body).await;
        assert_eq!(answer.status(), status, "{path} {part}");
        let message = error_message(path, &answer.json().await);
        assert!(message.contains(part), "{path}: {message}");
    }
    assert_eq!(gate.get("/healthz").await.status(), 200);
}

#[tokio::test]
async fn broken_json() {
    check(|body| body.as_bytes()[..body.len() - 1].to_vec(), 400, "").await;
    check(|_| Vec::new(), 400, "").await;
    check(|_| b"[]".to_vec(), 400, "").await;
}

#[tokio::test]
async fn text_that_is_not_utf8() {
    check(
        |body| {
            body.replace("hello", "\u{1}")
                .into_bytes()
                .into_iter()
                .map(|b| if b == 1 { 0xFF } else { b })
                .collect()
        },
        400,
        "",
    )
    .await;
}

#[tokio::test]
async fn nesting_without_end() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check(move |body| body.replace("\"hello\"", &deep).into_bytes(), 400, "").await;
}

#[tokio::test]
async fn an_unknown_model_gets_near_names() {
    check(|body| body.replace("\"demo\"", "\"dem0\"").into_bytes(), 404, "did you mean demo?").await;
    check(|body| body.replace("\"demo\"", "\"something-else\"").into_bytes(), 404, "/v1/models").await;
}

#[tokio::test]
async fn a_body_over_the_limit() {
    let mut config = config();
    config.limits.body_bytes = 1000;
    let gate = Gate::start(
        &config,
        BackendConfig { models: vec![route("demo", &[Via::Demo])], ..BackendConfig::default() },
    );
    for (path, body) in ask("demo", false) {
        let body = body.to_string().replace("hello", &"x".repeat(50_000_000));
        let answer = gate.send(Method::POST, path, &[("content-type", "application/json")], body).await;
        assert_eq!(answer.status(), 413, "{path}");
        let message = error_message(path, &answer.json().await);
        assert!(message.contains("1000 bytes"), "{message}");
    }
}

#[tokio::test]
async fn an_unknown_path_or_method() {
    let gate = gate();
    let answer = gate.send(Method::POST, "/v1/nothing", &[("content-type", "application/json")], "{}").await;
    assert_eq!(answer.status(), 404);
    assert!(error_message("/v1/nothing", &answer.json().await).contains("/v1/chat/completions"));
    for (path, _) in ask("demo", false) {
        let answer = gate.get(path).await;
        assert_eq!(answer.status(), 405, "{path}");
        error_message(path, &answer.json().await);
    }
}
