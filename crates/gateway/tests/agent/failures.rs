//! Failures, and the errors that clients get.

use serde_json::json;
use toolgate_backend::config::AgentConfig;
use toolgate_testkit::Script;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs, start_message};

#[tokio::test]
async fn api_errors_keep_their_status() {
    // agent 28
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (status, kind) in
            [(401, "authentication_error"), (429, "rate_limit_error"), (529, "overloaded_error")]
        {
            let error = json!({ "type": "error", "error": { "type": kind, "message": "not today" } });
            harness.queue(Script::json(status, error));
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.push(json!({ "role": "user", "content": format!("go {status}") }));
            let answer = harness.gate.post("/v1/messages", &client.body()).await;
            assert_eq!(answer.status(), status);
            assert!(answer.text().await.contains("not today"));
        }
    }
}

#[tokio::test]
async fn an_error_after_a_tool_call_keeps_its_status_and_the_result_is_not_lost() {
    // agent 28
    const TOO_LONG: &str = "prompt is too long: 250000 tokens > 200000 maximum";
    const FAILURES: [(u16, &str, &str, Api, bool); 5] = [
        (429, "rate_limit_error", "not today", Api::Messages, false),
        (529, "overloaded_error", "too much", Api::Chat, true),
        (400, "invalid_request_error", TOO_LONG, Api::Responses, false),
        (400, "invalid_request_error", TOO_LONG, Api::Messages, true),
        (500, "api_error", "it broke", Api::Chat, false),
    ];
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (status, kind, reason, api, killed) in FAILURES {
            let mut client = Client::new(api, Delivery::Streamed);
            harness.queue(message(&[Block::Call("toolu_1", "mcp__client__get_time", json!({}))]));
            client.say(&harness.gate, &format!("go {status} {api:?}")).await;
            if killed {
                harness.kill_all();
            }
            client.add_results(&[("toolu_1", "12:00")]);
            let error = json!({ "type": "error", "error": { "type": kind, "message": reason } });
            harness.queue(Script::json(status, error));
            let answer = client.send(&harness.gate).await;
            let (found, text) = (answer.status(), answer.text().await);
            assert_eq!(found, status, "{api:?}: {text}");
            assert!(text.to_lowercase().contains(reason.split(':').next().expect("words")), "{text}");
            harness.queue(message(&[Block::Text("Noon.")]));
            assert_eq!(client.ask(&harness.gate).await.text, "Noon.", "{status} {api:?}");
            assert_eq!(harness.model_messages(), client.expected[..3]);
        }
    }
}

#[tokio::test]
async fn a_broken_stream_ends_in_an_error_and_the_next_request_works() {
    // M10
    for program in programs() {
        let harness = Harness::new(&program).await;
        harness.queue(start_message().cut());
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        let text = harness.gate.post("/v1/messages", &client.body()).await.text().await;
        assert!(text.contains("error"), "{text}");
        harness.queue(message(&[Block::Text("Here again.")]));
        let reply = client.ask(&harness.gate).await;
        assert_eq!(reply.text, "Here again.");
    }
}

async fn error_with(change: impl FnOnce(&mut AgentConfig)) -> (u16, String) {
    let program = programs().swap_remove(0);
    let harness = Harness::with(&program, change).await;
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.push(json!({ "role": "user", "content": "go" }));
    let answer = harness.gate.post("/v1/messages", &client.body()).await;
    (answer.status(), answer.text().await)
}

#[tokio::test]
async fn a_missing_program_is_an_error_that_says_what_to_install() {
    let (status, text) = error_with(|agent| agent.program = "/no/such/claude".into()).await;
    assert_eq!(status, 503);
    assert!(text.contains("install Claude Code") && !text.contains("/no/such"), "{text}");
}

#[tokio::test]
async fn a_different_program_fails_quickly() {
    let (_, text) = error_with(|agent| agent.program = "/bin/false".into()).await;
    assert!(text.contains("exited"), "{text}");
    let (_, text) = error_with(|agent| agent.program = "/bin/ls".into()).await;
    assert!(text.contains("exited") && !text.contains("/bin/ls"), "{text}");
}
