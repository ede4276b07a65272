//! Webhooks: what another program learns of questions, and how it knows that the gateway says so.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use toolgate_backend::config::BackendConfig;
use toolgate_gateway::approval::WebhookConfig;
use toolgate_testkit::{Received, Script, ScriptedUpstream};

use crate::gate::{Gate, config};

const HOOK: &str = "/hooks/permission-request";
const SECRET: &str = "a secret of the operator";

/// A gateway whose questions time out at once, and the receiver of its webhooks.
async fn start(secret: &str) -> (Gate, ScriptedUpstream) {
    let receiver = ScriptedUpstream::start().await;
    let mut config = config();
    config.approvals.timeout = Some(Duration::from_millis(10));
    let url = format!("{}/path?key=hidden", receiver.base_url()).parse().expect("a URL");
    config.approvals.webhook = Some(WebhookConfig { url, secret: secret.to_owned().into() });
    assert!(!format!("{config:?}").contains("hidden") && !format!("{config:?}").contains(SECRET));
    (Gate::start(&config, BackendConfig::default()), receiver)
}

async fn ask(gate: &Gate) {
    let input = json!({
        "session_id": "s", "cwd": "/w", "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": { "command": "touch a" },
    });
    assert_eq!(gate.post(HOOK, &input).await.json().await, json!({}));
}

/// The messages that have come, once there are this many.
async fn received(receiver: &ScriptedUpstream, count: usize) -> Vec<Received> {
    let all = async {
        while receiver.requests().len() < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), all).await.expect("the messages come");
    receiver.requests()
}

fn header(message: &Received, name: &str) -> String {
    message.headers[name].to_str().expect("text").to_owned()
}

fn assert_signed(message: &Received, key: &[u8]) {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("a key");
    mac.update(
        format!("{}.{}.", header(message, "webhook-id"), header(message, "webhook-timestamp")).as_bytes(),
    );
    mac.update(&message.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header(message, "webhook-signature"), expected);
}

#[tokio::test]
async fn questions_and_their_outcomes_are_sent_and_signed() {
    let encoded = format!("whsec_{}", STANDARD.encode(b"binary \x00 key"));
    for (secret, key) in [(SECRET, SECRET.as_bytes()), (&encoded, b"binary \x00 key")] {
        let (gate, receiver) = start(secret).await;
        receiver.always(|_| Script::json(200, json!({})));
        ask(&gate).await;
        let mut messages = received(&receiver, 2).await;
        messages.sort_by_key(|message| message.json()["type"].as_str().map(str::to_owned));
        let kinds: Vec<Value> = messages.iter().map(|message| message.json()["type"].clone()).collect();
        assert_eq!(kinds, ["approval.asked", "approval.expired"]);
        for message in &messages {
            assert_signed(message, key);
            assert_eq!(message.json()["question"]["input"], json!({ "command": "touch a" }));
            assert!(message.path.ends_with("/path?key=hidden"));
        }
        assert_eq!(messages[1].json()["resolution"]["outcome"], "timed_out");
    }
}

#[tokio::test]
async fn a_receiver_that_fails_gets_the_message_again_and_one_that_refuses_does_not() {
    let (gate, receiver) = start(SECRET).await;
    // The answer depends on the message: the two come in any order.
    receiver.always(|request| {
        Script::json(if request.json()["type"] == "approval.asked" { 503 } else { 400 }, json!({}))
    });
    ask(&gate).await;
    let messages = received(&receiver, 3).await;
    let of_kind = |kind: &str| -> Vec<&Received> {
        messages.iter().filter(|message| message.json()["type"] == kind).collect()
    };
    let (asked, expired) = (of_kind("approval.asked"), of_kind("approval.expired"));
    assert_eq!((asked.len(), expired.len()), (2, 1));
    assert_eq!(header(asked[0], "webhook-id"), header(asked[1], "webhook-id"));
    assert_signed(asked[1], SECRET.as_bytes());
}

#[tokio::test]
async fn a_receiver_that_never_answers_delays_no_decision_and_no_shutdown() {
    let (gate, receiver) = start(SECRET).await;
    receiver.always(|_| Script::sse().stall());
    for _ in 0..3 {
        ask(&gate).await;
    }
    received(&receiver, 1).await;
    gate.running.stop().await.expect("it stops");
}
