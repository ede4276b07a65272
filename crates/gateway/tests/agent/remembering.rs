//! What is remembered: a retry is answered and not run again, and what the agent did by itself is not forgotten.

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says, start_message};

#[tokio::test]
async fn the_same_request_again_is_answered_from_the_record() {
    // B7, agent 19, M9
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (api, delivery) in [(Api::Messages, Delivery::Whole), (Api::Chat, Delivery::Streamed)] {
            let mut client = Client::new(api, delivery);
            client.push(json!({ "role": "user", "content": format!("go {api:?}") }));
            stage.on(says(&[
                Piece::Text("Once."),
                Piece::Call("toolu_1", "mcp__client__get_time", json!({})),
            ]));
            let first = client.ask_once(&stage.gate).await;
            let asked = stage.asked().len();
            let second = client.ask_once(&stage.gate).await;
            assert_eq!(first, second);
            assert_eq!(stage.asked().len(), asked, "nothing runs twice");
            client.keep(&second);
            stage.on(says(&[Piece::Text("Noon.")]));
            assert_eq!(client.answer(&stage.gate, &[("toolu_1", "12:00")]).await.text, "Noon.");
        }
    }
}

#[tokio::test]
async fn what_the_agent_did_by_itself_is_told_to_its_successor() {
    // A11, B6
    for program in programs() {
        let stage =
            Stage::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()])).await;
        let file = stage.workdir().join("note.txt");
        std::fs::write(&file, "the note says 42").expect("a file");
        let read = json!({ "file_path": file.display().to_string() });
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[Piece::Text("I read."), Piece::Call("toolu_r", "Read", read)]));
        stage.on(says(&[Piece::Call("toolu_t", "mcp__client__get_time", json!({}))]));
        let reply = client.say(&stage.gate, "What does the note say?").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("I read.", 1));
        stage.kill_all();
        stage.on(says(&[Piece::Text("42, at noon.")]));
        client.answer(&stage.gate, &[("toolu_t", "12:00")]).await;
        let heard = stage.heard();
        let kinds: Vec<String> = heard
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
        assert_eq!(kinds, expected, "{heard:?}");
        assert!(heard[2].to_string().contains("the note says 42"), "{heard:?}");
    }
}

#[tokio::test]
async fn a_turn_that_was_cut_short_does_not_run_its_tools_again() {
    // B7
    for program in programs() {
        let stage =
            Stage::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()])).await;
        let file = stage.workdir().join("note.txt");
        std::fs::write(&file, "the note").expect("a file");
        let read = json!({ "file_path": file.display().to_string() });
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        stage.on(says(&[Piece::Text("I read."), Piece::Call("toolu_r", "Read", read)]));
        stage.on(start_message().stall());
        let mut answer = stage.gate.post("/v1/messages", &client.body()).await;
        answer.until("I read.").await;
        while stage.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
        // The client asks again at once, before anybody could have noticed that it left.
        drop(answer);
        stage.on(says(&[Piece::Text("Done.")]));
        let reply = client.ask(&stage.gate).await;
        assert_eq!(reply.text, "I read.Done.");
        assert_eq!(stage.asked().len(), 3);
        let heard = stage.heard();
        assert_eq!(heard.len(), 3, "{heard:?}");
        assert!(heard[2].to_string().contains("the note"), "{heard:?}");
    }
}

#[tokio::test]
async fn two_of_the_same_at_once_run_once() {
    // B7, agent 19: a client that has lost its patience while the first try still runs
    for program in programs() {
        let stage = Stage::new(&program).await;
        stage.on(says(&[Piece::Text("Once.")]));
        let ask = async || {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.push(json!({ "role": "user", "content": "go" }));
            client.ask(&stage.gate).await.text
        };
        let both = tokio::join!(ask(), ask());
        assert_eq!(both, ("Once.".to_owned(), "Once.".to_owned()));
        assert_eq!(stage.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_named_session_may_be_sent_only_what_is_new() {
    // E3
    for program in programs() {
        let stage = Stage::new(&program).await;
        let ask = async |text: &str, answer: &str| {
            stage.on(says(&[Piece::Text(answer)]));
            let mut client = Client::new(Api::Chat, Delivery::Whole);
            client.push(json!({ "role": "user", "content": text }));
            let headers = [("content-type", "application/json"), ("x-session-id", "my-session")];
            let body = client.body().to_string();
            let reply = stage.gate.send(http::Method::POST, client.path(), &headers, body).await;
            assert_eq!((reply.status(), reply.header("x-session-id")), (200, "my-session"));
            reply.text().await
        };
        ask("My name is Ada.", "Hello Ada.").await;
        ask("What is my name?", "Ada.").await;
        let text =
            |role: &str, text: &str| json!({ "role": role, "content": [{ "type": "text", "text": text }] });
        let said = [
            text("user", "My name is Ada."),
            text("assistant", "Hello Ada."),
            text("user", "What is my name?"),
        ];
        assert_eq!(stage.heard(), said);
        stage.kill_all();
        ask("Sure?", "Yes.").await;
        assert_eq!(stage.heard().len(), 5);
    }
}
