//! Sessions by name: the client sends only what is new, and the model still hears everything.

use serde_json::{Value, json};

use crate::client::{ALL, Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

const WEATHER: &str = "mcp__client__get_weather";

/// A client that names its session.
fn client_in(session: &str, api: Api, delivery: Delivery) -> Client {
    let mut client = Client::new(api, delivery);
    client.headers = vec![("x-session-id", session.to_owned())];
    client
}

/// What the model should have heard before its last answer.
fn said(client: &Client) -> &[Value] {
    &client.said[..client.said.len() - 1]
}

#[tokio::test]
async fn results_alone_go_on_with_the_session_in_every_api() {
    // E3
    for program in programs() {
        let mut stage = Stage::new(&program).await;
        for (number, (api, delivery)) in ALL.into_iter().enumerate() {
            stage.forget();
            let mut client = client_in(&format!("session-{number}"), api, delivery);
            stage.on(says(&[
                Piece::Text("Both."),
                Piece::Call("toolu_a", WEATHER, json!({ "city": "Rome" })),
                Piece::Call("toolu_b", WEATHER, json!({ "city": "Oslo" })),
            ]));
            client.say(&stage.gate, "Rome and Oslo?").await;
            match number {
                1 => stage.kill_all(),
                2 => stage.restart().await,
                _ => {}
            }
            client.history.clear();
            client.add_results(&[("toolu_b", "5 C"), ("toolu_a", "20 C")]);
            stage.on(says(&[Piece::Text("Warm and cold.")]));
            let reply = client.ask_once(&stage.gate).await;
            assert_eq!((reply.text.as_str(), reply.session), ("Warm and cold.", format!("session-{number}")));
            let again = client.ask_once(&stage.gate).await;
            assert_eq!(again.text, "Warm and cold.", "results again are a retry");
            client.keep(&again);
            assert_eq!(stage.heard(), said(&client), "{api:?} {delivery:?}");
            client.history.clear();
            stage.on(says(&[Piece::Text("Gladly.")]));
            client.say(&stage.gate, "Thanks").await;
            assert_eq!(stage.heard(), said(&client), "{api:?} {delivery:?}");
            assert_eq!(stage.asked().len(), 3, "one model request for each turn");
        }
    }
}

#[tokio::test]
async fn results_alone_may_come_in_parts_and_never_without_their_calls() {
    // B5, E3
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = client_in("parts", Api::Messages, Delivery::Whole);
        stage.on(says(&["toolu_a", "toolu_b"].map(|id| Piece::Call(id, WEATHER, json!({})))));
        client.say(&stage.gate, "Both?").await;
        let said_before = client.said.clone();
        for (id, status, told) in
            [("toolu_a", 400, "toolu_b"), ("toolu_x", 400, "toolu_x"), ("toolu_b", 200, "Done.")]
        {
            client.history.clear();
            client.said.clone_from(&said_before);
            client.add_results(&[(id, "r")]);
            stage.on(says(&[Piece::Text("Done.")]));
            let answer = client.send(&stage.gate).await;
            let (found, text) = (answer.status(), answer.text().await);
            assert_eq!(found, status, "{id}: {text}");
            assert!(text.contains(told), "{id}: {text}");
        }
        let results = stage.heard()[2]["content"].as_array().map(Vec::len);
        assert_eq!((results, stage.asked().len()), (Some(2), 2));

        let mut stranger = client_in("nobody-knows-it", Api::Messages, Delivery::Whole);
        stranger.said.push(json!({ "role": "assistant", "content": [] }));
        stranger.add_results(&[("toolu_a", "r")]);
        let answer = stranger.send(&stage.gate).await;
        assert_eq!(answer.status(), 400);
        assert!(answer.text().await.contains("answers no tool_use"));
    }
}

#[tokio::test]
async fn the_id_in_a_response_names_the_session_from_then_on() {
    // E3
    for program in programs() {
        let mut stage = Stage::new(&program).await;
        for (api, restarted) in [(Api::Chat, false), (Api::Messages, true)] {
            let mut client = Client::new(api, Delivery::Whole);
            stage.on(says(&[Piece::Text("Hello Ada.")]));
            let reply = client.say(&stage.gate, &format!("My name is Ada. {api:?}")).await;
            if restarted {
                stage.restart().await;
            }
            client.headers = vec![("x-session-id", reply.session.clone())];
            for text in ["What is my name?", "Sure?"] {
                client.history.clear();
                stage.on(says(&[Piece::Text("Ada.")]));
                let next = client.say(&stage.gate, text).await;
                assert_eq!(next.session, reply.session);
                assert_eq!(stage.heard(), said(&client), "{api:?}");
            }
        }
    }
}

#[tokio::test]
async fn instructions_are_remembered_and_others_begin_a_conversation_of_their_own() {
    // E3, M5: a helper that names the session of the main conversation
    for program in programs() {
        let stage = Stage::new(&program).await;
        let system = |text: &str| json!({ "role": "system", "content": text });
        let instructions = || stage.asked().pop().expect("a question").json()["system"].to_string();
        let mut helper = client_in("one-for-all", Api::Chat, Delivery::Whole);
        helper.history.push(system("Write a title."));
        stage.on(says(&[Piece::Text("A title")]));
        helper.say(&stage.gate, "Mend it.").await;

        let mut main = client_in("one-for-all", Api::Chat, Delivery::Whole);
        main.history.push(system("You are an agent."));
        stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({}))]));
        main.say(&stage.gate, "Mend it.").await;
        assert_eq!(stage.heard(), said(&main));
        assert!(instructions().contains("You are an agent."));

        helper.history = vec![system("Write a title.")];
        stage.on(says(&[Piece::Text("Another")]));
        helper.say(&stage.gate, "A better one.").await;
        assert_eq!(stage.heard(), said(&helper));

        main.history = vec![system("You are an agent.")];
        stage.on(says(&[Piece::Text("Mended.")]));
        main.answer(&stage.gate, &[("toolu_a", "r")]).await;
        assert_eq!(stage.heard(), said(&main));
        main.history.clear();
        stage.on(says(&[Piece::Text("Gladly.")]));
        main.say(&stage.gate, "Thanks").await;
        assert_eq!(stage.heard(), said(&main));
        assert!(instructions().contains("You are an agent."), "instructions may be left out too");
    }
}
