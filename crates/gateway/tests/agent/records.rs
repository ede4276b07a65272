//! Records: hidden steps survive the process, and nothing runs twice.

use serde_json::json;
use toolgate_backend::config::Builtins;
use toolgate_state::{AgentTurnRecord, CallerScope, SessionId};

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs, start_message};

#[tokio::test]
async fn hidden_steps_are_passed_to_the_next_process() {
    // A11, B6
    for program in programs() {
        let harness =
            Harness::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()])).await;
        let file = harness.workdir().join("note.txt");
        std::fs::write(&file, "the note says 42").expect("a file");
        let read = json!({ "file_path": file.display().to_string() });
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read)]));
        harness.queue(message(&[Block::Call("toolu_t", "mcp__client__get_time", json!({}))]));
        let reply = client.say(&harness.gate, "What does the note say?").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("I read.", 1));
        harness.kill_all();
        harness.queue(message(&[Block::Text("42, at noon.")]));
        client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
        let messages = harness.model_messages();
        let kinds: Vec<String> = messages
            .iter()
            .flat_map(|message| message["content"].as_array().expect("blocks"))
            .map(|block| {
                format!(
                    "{}{}",
                    block["type"].as_str().unwrap_or_default(),
                    block["name"].as_str().unwrap_or_default()
                )
            })
            .collect();
        let expected = ["text", "text", "tool_useRead", "tool_result", "tool_useget_time", "tool_result"];
        assert_eq!(kinds, expected, "{messages:?}");
        assert!(messages[2].to_string().contains("the note says 42"), "{messages:?}");
    }
}

#[tokio::test]
async fn an_interrupted_turn_does_not_run_its_tools_again() {
    // B7
    for program in programs() {
        let harness =
            Harness::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()])).await;
        let file = harness.workdir().join("note.txt");
        std::fs::write(&file, "the note").expect("a file");
        let read = json!({ "file_path": file.display().to_string() });
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        harness.queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read)]));
        harness.queue(start_message().stall());
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("I read.").await;
        while harness.model_requests().len() < 2 {
            tokio::task::yield_now().await;
        }
        // The client retries at once, before its disconnect can be noticed.
        drop(answer);
        harness.queue(message(&[Block::Text("Done.")]));
        let reply = client.ask(&harness.gate).await;
        assert_eq!(reply.text, "I read.Done.");
        assert_eq!(harness.model_requests().len(), 3);
        let messages = harness.model_messages();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[2].to_string().contains("the note"), "{messages:?}");
    }
}

#[tokio::test]
async fn equal_concurrent_requests_run_once() {
    // B7, agent 19: an impatient client repeats its request while the first run is active
    for program in programs() {
        let harness = Harness::new(&program).await;
        harness.queue(message(&[Block::Text("Once.")]));
        let ask = async || {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.push(json!({ "role": "user", "content": "go" }));
            client.ask(&harness.gate).await.text
        };
        let both = tokio::join!(ask(), ask());
        assert_eq!(both, ("Once.".to_owned(), "Once.".to_owned()));
        assert_eq!(harness.model_requests().len(), 1);
    }
}

#[tokio::test]
async fn a_named_session_needs_only_new_messages() {
    // E3
    for program in programs() {
        let harness = Harness::new(&program).await;
        let ask = async |text: &str, answer: &str| {
            harness.queue(message(&[Block::Text(answer)]));
            let mut client = Client::new(Api::Chat, Delivery::Whole);
            client.push(json!({ "role": "user", "content": text }));
            let headers = [("content-type", "application/json"), ("x-session-id", "my-session")];
            let body = client.body().to_string();
            let reply = harness.gate.send(http::Method::POST, client.path(), &headers, body).await;
            assert_eq!((reply.status(), reply.header("x-session-id")), (200, "my-session"));
            reply.text().await
        };
        ask("My name is Ada.", "Hello Ada.").await;
        ask("What is my name?", "Ada.").await;
        let text =
            |role: &str, text: &str| json!({ "role": role, "content": [{ "type": "text", "text": text }] });
        let expected = [
            text("user", "My name is Ada."),
            text("assistant", "Hello Ada."),
            text("user", "What is my name?"),
        ];
        assert_eq!(harness.model_messages(), expected);
        harness.kill_all();
        ask("Sure?", "Yes.").await;
        assert_eq!(harness.model_messages().len(), 5);
    }
}

#[tokio::test]
async fn each_turn_of_a_session_stores_only_its_own_messages() {
    // E3
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        let mut session = String::new();
        for (text, answer) in [("One", "First."), ("Two", "Second."), ("Three", "Third.")] {
            harness.queue(message(&[Block::Text(answer)]));
            session = client.say(&harness.gate, text).await.session;
        }
        let (caller, session) = (CallerScope::new("local"), SessionId::parse(&session).expect("a session"));
        let page = harness.gate.store.session_turns(&caller, &session, None, 10).await.expect("the turns");
        let texts = |turn: &AgentTurnRecord| {
            let part = turn.thread.as_ref().expect("a part of the transcript").messages.to_value();
            let messages = part["messages"]["messages"].as_array().expect("messages").clone();
            messages.iter().map(|message| message["content"][0]["text"].clone()).collect::<Vec<_>>()
        };
        let stored: Vec<_> = page.turns.iter().map(texts).collect();
        assert_eq!(stored, [[json!("One")], [json!("Two")], [json!("Three")]]);
        let thread = page.turns[0].thread.as_ref().expect("a part").thread;
        let whole = harness.gate.store.turns_of_session(&caller, &session, thread).await.expect("the turns");
        assert_eq!(whole, page.turns);
    }
}
