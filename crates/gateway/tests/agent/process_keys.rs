//! No real key reaches an agent's process: it calls its model through the gateway, with a key of its own that opens
//! nothing else and is revoked when the process ends.

use std::fs;
use std::time::Duration;

use http::Method;
use secrecy::SecretString;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_backend::config::AgentModel;
use toolgate_gateway::config::{Key, ModelPattern};
use toolgate_state::{UnixMillis, UsageGroup};

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

const REAL_KEY: &str = "the-real-key";
const REAL_TOKEN: &str = "the-real-token";

/// A gateway with keys, so that a request without one is refused, and an agent whose `env` holds real keys.
async fn harness(program: &std::path::Path, model: AgentModel) -> Harness {
    Harness::set(program, |config| {
        let models = vec![ModelPattern::new("*")];
        config.config.keys =
            vec![Key { name: "alice".to_owned(), sha256: Sha256::digest("alice").into(), models }];
        config.agent.pool.warm = 0;
        config.agent.model = model;
        let secret = |name: &str, value: &str| (name.to_owned(), SecretString::from(value));
        config.agent.env.extend([
            secret("ANTHROPIC_API_KEY", REAL_KEY),
            secret("ANTHROPIC_AUTH_TOKEN", REAL_TOKEN),
            secret("CLAUDE_CODE_OAUTH_TOKEN", REAL_TOKEN),
        ]);
    })
    .await
}

fn alice() -> Client {
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.headers = vec![("x-api-key", "alice".to_owned())];
    client
}

/// The environment of each process.
fn environments(harness: &Harness) -> Vec<String> {
    let read = |id: u32| fs::read_to_string(format!("/proc/{id}/environ")).ok();
    harness.processes().into_iter().filter_map(read).collect()
}

/// The key of the only process.
fn process_key(harness: &Harness) -> String {
    let keys = environments(harness).into_iter().filter_map(|environment| {
        let key = environment.split('\0').find_map(|variable| variable.strip_prefix("ANTHROPIC_API_KEY="));
        key.map(str::to_owned)
    });
    let mut keys: Vec<String> = keys.collect();
    keys.dedup();
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.remove(0)
}

/// Sends a request with this key and checks the status.
async fn check(harness: &Harness, key: &str, (method, path, model): (Method, &str, &str), expected: u16) {
    let (status, text) = send(harness, key, method, path, model).await;
    assert_eq!(status, expected, "{path} {model}: {text}");
}

async fn send(harness: &Harness, key: &str, method: Method, path: &str, model: &str) -> (u16, String) {
    let hello = json!([{ "role": "user", "content": "hello" }]);
    let body = json!({ "model": model, "max_tokens": 10, "messages": hello, "stream": true });
    let headers = [("x-api-key", key), ("content-type", "application/json")];
    let answer = harness.gate.send(method, path, &headers, body.to_string()).await;
    (answer.status(), answer.text().await)
}

#[tokio::test]
async fn the_real_key_is_added_by_the_gateway_and_never_reaches_the_process() {
    for program in programs() {
        let harness = harness(&program, AgentModel::Default).await;
        harness.queue(message(&[Block::Text("Yes.")]));
        alice().say(&harness.gate, "go").await;
        let asked = harness.model_requests();
        assert_eq!(asked.len(), 1);
        let header = |name: &str| asked[0].headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("x-api-key"), Some(REAL_KEY));
        assert_eq!(header("authorization"), Some("Bearer the-real-token"));
        let environments = environments(&harness);
        assert!(!environments.is_empty());
        for environment in environments {
            assert!(!environment.contains(REAL_KEY) && !environment.contains(REAL_TOKEN), "{environment}");
        }
    }
}

#[tokio::test]
async fn a_process_key_opens_only_the_agents_host_and_dies_with_the_process() {
    for program in programs() {
        let harness = harness(&program, AgentModel::Default).await;
        let mut client = alice();
        harness.queue(message(&[Block::Call("toolu_t", "mcp__client__get_time", json!({}))]));
        client.say(&harness.gate, "go").await;
        let key = process_key(&harness);
        harness.queue(message(&[Block::Text("Yes.")]));
        check(&harness, &key, (Method::POST, "/v1/messages", "any-model"), 200).await;
        assert_eq!(harness.model_requests().last().expect("a request").json()["model"], "any-model");
        for (method, path) in [
            (Method::POST, "/v1/chat/completions"),
            (Method::POST, "/v1/responses"),
            (Method::GET, "/v1/models"),
            (Method::GET, "/metrics"),
            (Method::GET, "/v1/responses/resp_1"),
        ] {
            check(&harness, &key, (method, path, "demo"), 403).await;
        }
        // No other caller reaches the agent's host.
        check(&harness, "alice", (Method::POST, "/v1/messages", "any-model"), 404).await;
        harness.kill_all();
        harness.wait_for_no_processes().await;
        let revoked =
            async { while send(&harness, &key, Method::POST, "/v1/messages", "any-model").await.0 != 401 {} };
        tokio::time::timeout(Duration::from_mins(1), revoked).await.expect("the key is revoked");
        harness.queue(message(&[Block::Text("Noon.")]));
        client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
        assert_ne!(process_key(&harness), key, "every process has its own key");
    }
}

#[tokio::test]
async fn a_process_key_opens_only_the_gateway_model_of_its_agent() {
    for program in programs() {
        let harness = harness(&program, AgentModel::Gateway("demo".to_owned())).await;
        alice().say(&harness.gate, "Hello.").await;
        let key = process_key(&harness);
        check(&harness, &key, (Method::POST, "/v1/messages", "demo"), 200).await;
        for other in ["agent", "claude-sonnet-4-5"] {
            check(&harness, &key, (Method::POST, "/v1/messages", other), 403).await;
        }
        assert!(harness.model_requests().is_empty(), "the host in `env` gets no request");
    }
}

#[tokio::test]
async fn model_requests_of_an_agent_are_not_counted_as_the_clients() {
    let harness = harness(&programs()[1], AgentModel::Default).await;
    harness.queue(message(&[Block::Text("Yes.")]));
    alice().say(&harness.gate, "go").await;
    let models = [("x-api-key", "alice")];
    let listed = harness.gate.send(Method::GET, "/v1/models", &models, "").await.text().await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2), "{listed}");
    let store = harness.gate.store.clone();
    harness.stop().await;
    // The usage log writes in intervals, so the summary is polled.
    let totals = loop {
        let totals = store.usage_summary(UnixMillis(0), UsageGroup::Caller).await.expect("a summary");
        if totals.len() > 1 {
            break totals;
        }
        tokio::task::yield_now().await;
    };
    let mut counted: Vec<(&str, u64, u64)> =
        totals.iter().map(|row| (row.group.as_str(), row.turns, row.output)).collect();
    counted.sort_unstable();
    assert_eq!(counted, [("agents", 1, 7), ("alice", 1, 7)]);
}

#[tokio::test]
async fn an_agent_without_a_key_is_an_error_that_says_what_to_set() {
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            agent.env.retain(|(name, _)| !name.starts_with("ANTHROPIC_"));
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.push(json!({ "role": "user", "content": "go" }));
        let answer = client.send(&harness.gate).await;
        let (status, text) = (answer.status(), answer.text().await);
        assert_eq!(status, 401, "{text}");
        assert!(text.contains("ANTHROPIC_API_KEY"), "{text}");
        assert!(harness.model_requests().is_empty());
    }
}
