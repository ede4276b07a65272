//! Named sessions: the client sends only new messages, and the model still gets the whole conversation.

use serde_json::{Value, json};

use crate::client::{ALL, Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

const WEATHER: &str = "mcp__client__get_weather";

/// A client that names its session.
fn client_in(session: &str, api: Api, delivery: Delivery) -> Client {
    let mut client = Client::new(api, delivery);
    client.headers = vec![("x-session-id", session.to_owned())];
    client
}

/// What the model should have got before its last answer.
fn expected(client: &Client) -> &[Value] {
    &client.expected[..client.expected.len() - 1]
}

#[tokio::test]
async fn results_alone_continue_a_session_in_every_api() {
    // E3
    for program in programs() {
        let mut harness = Harness::new(&program).await;
        for (number, (api, delivery)) in ALL.into_iter().enumerate() {
            harness.clear_requests();
            let mut client = client_in(&format!("session-{number}"), api, delivery);
            harness.queue(message(&[
                Block::Text("Both."),
                Block::Call("toolu_a", WEATHER, json!({ "city": "Rome" })),
                Block::Call("toolu_b", WEATHER, json!({ "city": "Oslo" })),
            ]));
            client.say(&harness.gate, "Rome and Oslo?").await;
            match number {
                1 => harness.kill_all(),
                2 => harness.restart().await,
                _ => {}
            }
            client.history.clear();
            client.add_results(&[("toolu_b", "5 C"), ("toolu_a", "20 C")]);
            harness.queue(message(&[Block::Text("Warm and cold.")]));
            let reply = client.ask_once(&harness.gate).await;
            assert_eq!((reply.text.as_str(), reply.session), ("Warm and cold.", format!("session-{number}")));
            let again = client.ask_once(&harness.gate).await;
            assert_eq!(again.text, "Warm and cold.", "repeated results are a retry");
            client.add_reply(&again);
            assert_eq!(harness.model_messages(), expected(&client), "{api:?} {delivery:?}");
            client.history.clear();
            harness.queue(message(&[Block::Text("Gladly.")]));
            client.say(&harness.gate, "Thanks").await;
            assert_eq!(harness.model_messages(), expected(&client), "{api:?} {delivery:?}");
            assert_eq!(harness.model_requests().len(), 3, "one model request per turn");
        }
    }
}

#[tokio::test]
async fn results_alone_may_be_partial_but_need_their_calls() {
    // B5, E3
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = client_in("parts", Api::Messages, Delivery::Whole);
        harness.queue(message(&["toolu_a", "toolu_b"].map(|id| Block::Call(id, WEATHER, json!({})))));
        client.say(&harness.gate, "Both?").await;
        let expected_before = client.expected.clone();
        for (id, status, contains) in
            [("toolu_a", 400, "toolu_b"), ("toolu_x", 400, "toolu_x"), ("toolu_b", 200, "Done.")]
        {
            client.history.clear();
            client.expected.clone_from(&expected_before);
            client.add_results(&[(id, "r")]);
            harness.queue(message(&[Block::Text("Done.")]));
            let answer = client.send(&harness.gate).await;
            let (found, text) = (answer.status(), answer.text().await);
            assert_eq!(found, status, "{id}: {text}");
            assert!(text.contains(contains), "{id}: {text}");
        }
        let results = harness.model_messages()[2]["content"].as_array().map(Vec::len);
        assert_eq!((results, harness.model_requests().len()), (Some(2), 2));
    }
}

#[tokio::test]
async fn results_alone_for_an_unknown_session_are_a_clear_error() {
    // E7
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut known = client_in("known", Api::Messages, Delivery::Whole);
        harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({}))]));
        known.say(&harness.gate, "Go.").await;
        for (api, delivery) in ALL {
            let mut client = client_in("unknown", api, delivery);
            client.expected.clone_from(&known.expected);
            client.add_results(&[("toolu_a", "r")]);
            let answer = client.send(&harness.gate).await;
            let (status, text) = (answer.status(), answer.text().await);
            assert_eq!(status, 404, "{text}");
            for told in ["session_not_found", "unknown", "send the whole conversation"] {
                assert!(text.contains(told), "{told}: {text}");
            }
        }
        assert_eq!(harness.model_requests().len(), 1);
    }
}

#[tokio::test]
async fn a_session_id_from_a_response_can_be_used_afterwards() {
    // E3
    for program in programs() {
        let mut harness = Harness::new(&program).await;
        for (api, restarted) in [(Api::Chat, false), (Api::Messages, true)] {
            let mut client = Client::new(api, Delivery::Whole);
            harness.queue(message(&[Block::Text("Hello Ada.")]));
            let reply = client.say(&harness.gate, &format!("My name is Ada. {api:?}")).await;
            if restarted {
                harness.restart().await;
            }
            client.headers = vec![("x-session-id", reply.session.clone())];
            for text in ["What is my name?", "Sure?"] {
                client.history.clear();
                harness.queue(message(&[Block::Text("Ada.")]));
                let next = client.say(&harness.gate, text).await;
                assert_eq!(next.session, reply.session);
                assert_eq!(harness.model_messages(), expected(&client), "{api:?}");
            }
        }
    }
}

#[tokio::test]
async fn instructions_are_stored_and_other_instructions_start_another_conversation() {
    // E3, M5: a helper request uses the session id of the main conversation
    for program in programs() {
        let harness = Harness::new(&program).await;
        let system = |text: &str| json!({ "role": "system", "content": text });
        let instructions =
            || harness.model_requests().pop().expect("a question").json()["system"].to_string();
        let mut helper = client_in("one-for-all", Api::Chat, Delivery::Whole);
        helper.history.push(system("Write a title."));
        harness.queue(message(&[Block::Text("A title")]));
        helper.say(&harness.gate, "Mend it.").await;

        let mut main = client_in("one-for-all", Api::Chat, Delivery::Whole);
        main.history.push(system("You are an agent."));
        harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({}))]));
        main.say(&harness.gate, "Mend it.").await;
        assert_eq!(harness.model_messages(), expected(&main));
        assert!(instructions().contains("You are an agent."));

        helper.history = vec![system("Write a title.")];
        harness.queue(message(&[Block::Text("Another")]));
        helper.say(&harness.gate, "A better one.").await;
        assert_eq!(harness.model_messages(), expected(&helper));

        main.history = vec![system("You are an agent.")];
        harness.queue(message(&[Block::Text("Mended.")]));
        main.answer(&harness.gate, &[("toolu_a", "r")]).await;
        assert_eq!(harness.model_messages(), expected(&main));
        main.history.clear();
        harness.queue(message(&[Block::Text("Gladly.")]));
        main.say(&harness.gate, "Thanks").await;
        assert_eq!(harness.model_messages(), expected(&main));
        assert!(instructions().contains("You are an agent."), "stored instructions are used");
    }
}
