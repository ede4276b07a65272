//! Conversations that begin alike are still two.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::clock::StandingClock;
use crate::stage::{Piece, Stage, programs, says, start_message};

const WEATHER: &str = "mcp__client__get_weather";

#[tokio::test]
async fn the_same_first_words_begin_two_conversations_that_never_mix() {
    // B4, agent 14, 17: both wait for a call at the same time, and each gets its own result
    for program in programs() {
        let clock = Arc::new(StandingClock::default());
        let stage =
            Stage::set(&program, |setting| setting.surroundings.clock = Arc::clone(&clock) as _).await;
        let mut clients = [Api::Messages, Api::Chat].map(|api| Client::new(api, Delivery::Whole));
        for (number, client) in clients.iter_mut().enumerate() {
            stage.on(says(&[Piece::Call(&format!("toolu_{number}"), WEATHER, json!({ "city": number }))]));
            let reply = client.say(&stage.gate, "The weather?").await;
            assert_eq!(
                reply.calls[0].0,
                format!("toolu_{number}"),
                "later than a retry comes, it is asked anew"
            );
            clock.forward(Duration::from_mins(11));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            stage.on(says(&[Piece::Text("So.")]));
            client.answer(&stage.gate, &[(&format!("toolu_{number}"), &format!("{number} C"))]).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        }
        for client in &mut clients {
            stage.on(says(&[Piece::Text("Gladly.")]));
            client.say(&stage.gate, "Thanks").await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        }
        assert_eq!(stage.asked().len(), 6);
    }
}

#[tokio::test]
async fn sessions_that_read_alike_do_not_learn_what_the_others_agent_did() {
    // agent 14: all that is said is equal, and what the agent did by itself is not
    for program in programs() {
        let stage =
            Stage::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()])).await;
        let file = stage.workdir().join("note.txt");
        let read = json!({ "file_path": file.display().to_string() });
        let mut clients = ["note-of-the-first", "note-of-the-second"].map(|note| {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.headers = vec![("x-session-id", format!("session-{note}"))];
            (client, note)
        });
        for (client, note) in &mut clients {
            std::fs::write(&file, *note).expect("a file");
            stage.on(says(&[Piece::Text("I read."), Piece::Call("toolu_r", "Read", read.clone())]));
            stage.on(says(&[Piece::Text("Read.")]));
            client.say(&stage.gate, "Read the note.").await;
        }
        for killed in [false, true] {
            for (client, note) in &mut clients {
                if killed {
                    stage.kill_all();
                }
                stage.on(says(&[Piece::Text("So it says.")]));
                client.say(&stage.gate, "And?").await;
                let heard = stage.heard()[2].to_string();
                assert!(heard.contains(*note), "killed: {killed}, {note}: {heard}");
            }
        }
    }
}

#[tokio::test]
async fn a_clients_helper_has_a_conversation_of_its_own_and_waits_for_nobody() {
    // M5: the same words with other instructions or tools, while the main turn runs and while it waits for a result
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut main = Client::new(Api::Messages, Delivery::Streamed);
        main.extra = json!({ "system": "You are an agent." });
        main.push(json!({ "role": "user", "content": "Mend it." }));
        stage.on(start_message().gate("main").cut());
        let mut busy = main.send(&stage.gate).await;
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
            stage.on(says(&[Piece::Text(&format!("Help {number}."))]));
            assert_eq!(helper.say(&stage.gate, "Mend it.").await.text, format!("Help {number}."));
            let asked = stage.asked().pop().expect("a question").json();
            assert!(asked["system"].to_string().contains(extra["system"].as_str().expect("a text")));
            let offered = asked["tools"].as_array().map_or(0, Vec::len);
            assert_eq!(offered, if extra["tools"].is_array() { 0 } else { 2 }, "{extra}");
        }
        drop(busy);

        let mut main = Client::new(Api::Messages, Delivery::Streamed);
        main.extra = json!({ "system": "You are an agent." });
        stage.on(says(&[Piece::Call("toolu_m", WEATHER, json!({}))]));
        main.say(&stage.gate, "Mend the other.").await;
        stage.on(says(&[Piece::Text("Title.")]));
        assert_eq!(helper(helpers[0].clone()).say(&stage.gate, "Mend the other.").await.text, "Title.");
        stage.on(says(&[Piece::Text("Mended.")]));
        assert_eq!(main.answer(&stage.gate, &[("toolu_m", "r")]).await.text, "Mended.");
        assert_eq!(stage.heard(), main.said[..3]);
    }
}
