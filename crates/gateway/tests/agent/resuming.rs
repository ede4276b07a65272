//! Whatever dies, the conversation goes on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{ALL, Api, Client, Delivery};
use crate::clock::StandingClock;
use crate::stage::{Piece, Stage, programs, says, start_message};

const WEATHER: &str = "mcp__client__get_weather";

#[tokio::test]
async fn a_killed_process_between_call_and_result_is_not_noticed() {
    // X2
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (api, delivery) in ALL {
            let mut client = Client::new(api, delivery);
            stage.on(says(&[
                Piece::Call("toolu_a", "mcp__client__get_weather", json!({"city": "Rome"})),
                Piece::Call("toolu_b", "mcp__client__get_weather", json!({"city": "Oslo"})),
            ]));
            client.say(&stage.gate, &format!("Both, please. {api:?} {delivery:?}")).await;
            let before = stage.asked().len();
            stage.kill_all();
            stage.on(says(&[Piece::Text("Done.")]));
            let reply = client.answer(&stage.gate, &[("toolu_b", "5 C"), ("toolu_a", "20 C")]).await;
            assert_eq!(reply.text, "Done.");
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{api:?} {delivery:?}");
            assert_eq!(stage.asked().len() - before, 1);
        }
    }
}

#[tokio::test]
async fn a_restarted_gateway_goes_on_from_the_clients_history_hours_later() {
    // X2, E5, agent 10, 18, M9: calls and results are still calls and results, and nothing is told as text
    for program in programs() {
        for (api, delivery) in [(Api::Messages, Delivery::Whole), (Api::Responses, Delivery::Streamed)] {
            let clock = Arc::new(StandingClock::default());
            let mut stage = Stage::set(&program, |setting| {
                setting.surroundings.clock = Arc::clone(&clock) as _;
                setting.agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            })
            .await;
            let note = stage.workdir().join("note.txt");
            std::fs::write(&note, "the note").expect("a file");
            let read = json!({ "file_path": note.display().to_string() });
            let mut client = Client::new(api, delivery);
            stage.on(says(&[Piece::Text("Hm."), Piece::Call("toolu_r", "Read", read.clone())]));
            stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({"city": "Rome"}))]));
            client.say(&stage.gate, "Rome?").await;

            clock.forward(Duration::from_hours(26));
            stage.restart().await;
            stage.on(says(&[Piece::Text("Warm.")]));
            client.answer(&stage.gate, &[("toolu_a", "20 C")]).await;
            let heard = stage.heard();
            let own = &heard[1..3];
            assert_eq!(own[0]["content"][1]["name"], "Read", "{heard:?}");
            assert!(own[1]["content"][0].to_string().contains("the note"), "{heard:?}");
            let without_own = [&heard[..1], &heard[3..]].concat();
            assert_eq!(without_own[2..], client.said[2..3], "{api:?} {delivery:?}");

            stage.restart_elsewhere().await;
            stage.on(says(&[Piece::Text("Yes.")]));
            client.say(&stage.gate, "Sure?").await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{api:?} {delivery:?}");
            assert_eq!(stage.asked().len(), 4);
        }
    }
}

#[tokio::test]
async fn an_edited_history_is_a_branch_and_both_branches_go_on() {
    // B4, agent 14, 17, M9: edit, regenerate and branch never answer from the wrong branch
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut first = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[Piece::Text("One.")]));
        first.say(&stage.gate, "Count.").await;
        let mut second = Client::new(Api::Messages, Delivery::Whole);
        second.history.clone_from(&first.history);
        second.said.clone_from(&first.said);
        for (client, text) in [(&mut first, "A"), (&mut second, "B")] {
            stage.on(says(&[Piece::Text("Two.")]));
            client.say(&stage.gate, text).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        }
        for (client, text) in [(&mut first, "C"), (&mut second, "D")] {
            stage.on(says(&[Piece::Text("Three.")]));
            client.say(&stage.gate, text).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_process_with_it() {
    // agent 27
    for program in programs() {
        let stage = Stage::with(&program, |agent| agent.pool.warm = 0).await;
        stage.on(start_message().stall());
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        let mut answer = stage.gate.post("/v1/messages", &client.body()).await;
        answer.until("message_start").await;
        assert_eq!(stage.processes().len(), 1);
        drop(answer);
        stage.until_no_process_is_left().await;
    }
}

#[tokio::test]
async fn nothing_is_left_when_the_gateway_stops() {
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({}))]));
        client.say(&stage.gate, "go").await;
        assert!(!stage.processes().is_empty());
        let stopped = stage.stop().await;
        assert!(stopped.processes().is_empty());
    }
}

#[tokio::test]
async fn more_conversations_than_processes_all_get_their_turns() {
    // agent 27: the one idle for longest makes room, and nothing is lost by it.
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            agent.pool.max = 1;
            agent.pool.warm = 1;
        })
        .await;
        let mut clients =
            [Client::new(Api::Messages, Delivery::Whole), Client::new(Api::Chat, Delivery::Whole)];
        for (number, client) in clients.iter_mut().enumerate() {
            stage.on(says(&[Piece::Call(&format!("toolu_{number}"), WEATHER, json!({}))]));
            client.say(&stage.gate, &format!("I am number {number}.")).await;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            stage.on(says(&[Piece::Text("Done.")]));
            client.answer(&stage.gate, &[(&format!("toolu_{number}"), "r")]).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        }
        assert_eq!(stage.processes().len(), 1);
    }
}
