//! What goes wrong, and what the client is told.

use serde_json::json;
use toolgate_backend::config::AgentConfig;
use toolgate_testkit::Script;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says, start_message};

#[tokio::test]
async fn failures_of_the_models_host_keep_their_status() {
    // agent 28
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (status, kind) in
            [(401, "authentication_error"), (429, "rate_limit_error"), (529, "overloaded_error")]
        {
            let error = json!({ "type": "error", "error": { "type": kind, "message": "not today" } });
            stage.on(Script::json(status, error));
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.push(json!({ "role": "user", "content": format!("go {status}") }));
            let answer = stage.gate.post("/v1/messages", &client.body()).await;
            assert_eq!(answer.status(), status);
            assert!(answer.text().await.contains("not today"));
        }
    }
}

#[tokio::test]
async fn a_failure_after_a_tool_call_keeps_its_status_and_the_result_is_not_lost() {
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
        let stage = Stage::new(&program).await;
        for (status, kind, message, api, killed) in FAILURES {
            let mut client = Client::new(api, Delivery::Streamed);
            stage.on(says(&[Piece::Call("toolu_1", "mcp__client__get_time", json!({}))]));
            client.say(&stage.gate, &format!("go {status} {api:?}")).await;
            if killed {
                stage.kill_all();
            }
            client.add_results(&[("toolu_1", "12:00")]);
            let error = json!({ "type": "error", "error": { "type": kind, "message": message } });
            stage.on(Script::json(status, error));
            let answer = client.send(&stage.gate).await;
            let (found, text) = (answer.status(), answer.text().await);
            assert_eq!(found, status, "{api:?}: {text}");
            assert!(text.to_lowercase().contains(message.split(':').next().expect("words")), "{text}");
            stage.on(says(&[Piece::Text("Noon.")]));
            assert_eq!(client.ask(&stage.gate).await.text, "Noon.", "{status} {api:?}");
            assert_eq!(stage.heard(), client.said[..3]);
        }
    }
}

#[tokio::test]
async fn a_broken_stream_ends_in_an_error_and_the_next_request_goes_on() {
    // M10
    for program in programs() {
        let stage = Stage::new(&program).await;
        stage.on(start_message().cut());
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        let text = stage.gate.post("/v1/messages", &client.body()).await.text().await;
        assert!(text.contains("error"), "{text}");
        stage.on(says(&[Piece::Text("Here again.")]));
        let reply = client.ask(&stage.gate).await;
        assert_eq!(reply.text, "Here again.");
    }
}

async fn told(change: impl FnOnce(&mut AgentConfig)) -> (u16, String) {
    let program = programs().swap_remove(0);
    let stage = Stage::with(&program, change).await;
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.push(json!({ "role": "user", "content": "go" }));
    let answer = stage.gate.post("/v1/messages", &client.body()).await;
    (answer.status(), answer.text().await)
}

#[tokio::test]
async fn a_missing_program_says_what_to_install() {
    let (status, text) = told(|agent| agent.program = "/no/such/claude".into()).await;
    assert_eq!(status, 503);
    assert!(text.contains("install Claude Code"), "{text}");
}

#[tokio::test]
async fn a_program_that_is_another_one_is_given_up_soon() {
    let (_, text) = told(|agent| agent.program = "/bin/false".into()).await;
    assert!(text.contains("exited"), "{text}");
    let (_, text) = told(|agent| agent.program = "/bin/ls".into()).await;
    assert!(text.contains("stderr"), "{text}");
}
