//! Conversations with equal beginnings stay separate.

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs, start_message};

const WEATHER: &str = "mcp__client__get_weather";

#[tokio::test]
async fn conversations_with_the_same_first_message_never_mix() {
    // B4, agent 14, 17: both wait for a call at the same time, and each gets its own result
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut clients = [Api::Messages, Api::Chat].map(|api| Client::new(api, Delivery::Whole));
        for (number, client) in clients.iter_mut().enumerate() {
            harness.queue(message(&[Block::Call(
                &format!("toolu_{number}"),
                WEATHER,
                json!({ "city": number }),
            )]));
            let reply = client.say(&harness.gate, "The weather?").await;
            assert_eq!(reply.calls[0].0, format!("toolu_{number}"));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            harness.queue(message(&[Block::Text("So.")]));
            client.answer(&harness.gate, &[(&format!("toolu_{number}"), &format!("{number} C"))]).await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        }
        for client in &mut clients {
            harness.queue(message(&[Block::Text("Gladly.")]));
            client.say(&harness.gate, "Thanks").await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        }
        assert_eq!(harness.model_requests().len(), 6);
    }
}

#[tokio::test]
async fn sessions_with_equal_messages_do_not_share_hidden_steps() {
    // agent 14: all messages are equal, only the built-in results differ
    for program in programs() {
        let harness =
            Harness::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()])).await;
        let file = harness.workdir().join("note.txt");
        let read = json!({ "file_path": file.display().to_string() });
        let mut clients = ["note-of-the-first", "note-of-the-second"].map(|note| {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.headers = vec![("x-session-id", format!("session-{note}"))];
            (client, note)
        });
        for (client, note) in &mut clients {
            std::fs::write(&file, *note).expect("a file");
            harness.queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read.clone())]));
            harness.queue(message(&[Block::Text("Read.")]));
            client.say(&harness.gate, "Read the note.").await;
        }
        for killed in [false, true] {
            for (client, note) in &mut clients {
                if killed {
                    harness.kill_all();
                }
                harness.queue(message(&[Block::Text("So it says.")]));
                client.say(&harness.gate, "And?").await;
                let messages = harness.model_messages()[2].to_string();
                assert!(messages.contains(*note), "killed: {killed}, {note}: {messages}");
            }
        }
    }
}

#[tokio::test]
async fn a_helper_request_has_its_own_conversation_and_waits_for_nothing() {
    // M5: the same messages with other instructions or tools, while the main turn runs and while it waits for a result
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut main = Client::new(Api::Messages, Delivery::Streamed);
        main.extra = json!({ "system": "You are an agent." });
        main.push(json!({ "role": "user", "content": "Mend it." }));
        harness.queue(start_message().gate("main").cut());
        let mut busy = main.send(&harness.gate).await;
        busy.until("message_start").await;
        let helper = |extra: serde_json::Value| {
            let mut helper = Client::new(Api::Messages, Delivery::Whole);
            helper.extra = extra;
            helper
        };
        let helpers = [
            json!({ "system": "Write a title.", "tools": [] }),
            json!({ "system": "You are an agent.", "tools": [] }),
            json!({ "system": "Write a summary." }),
        ];
        for (number, extra) in helpers.iter().enumerate() {
            let mut helper = helper(extra.clone());
            harness.queue(message(&[Block::Text(&format!("Help {number}."))]));
            assert_eq!(helper.say(&harness.gate, "Mend it.").await.text, format!("Help {number}."));
            let asked = harness.model_requests().pop().expect("a question").json();
            assert!(asked["system"].to_string().contains(extra["system"].as_str().expect("a text")));
            let offered = asked["tools"].as_array().map_or(0, Vec::len);
            assert_eq!(offered, if extra["tools"].is_array() { 0 } else { 2 }, "{extra}");
        }
        drop(busy);

        let mut main = Client::new(Api::Messages, Delivery::Streamed);
        main.extra = json!({ "system": "You are an agent." });
        harness.queue(message(&[Block::Call("toolu_m", WEATHER, json!({}))]));
        main.say(&harness.gate, "Mend the other.").await;
        harness.queue(message(&[Block::Text("Title.")]));
        assert_eq!(helper(helpers[0].clone()).say(&harness.gate, "Mend the other.").await.text, "Title.");
        harness.queue(message(&[Block::Text("Mended.")]));
        assert_eq!(main.answer(&harness.gate, &[("toolu_m", "r")]).await.text, "Mended.");
        assert_eq!(harness.model_messages(), main.expected[..3]);
    }
}
