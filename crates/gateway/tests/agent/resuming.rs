//! Conversations continue after processes, gateways and clients are gone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{ALL, Api, Client, Delivery};
use crate::clock::ManualClock;
use crate::harness::{Block, Harness, message, programs, start_message};

const WEATHER: &str = "mcp__client__get_weather";

#[tokio::test]
async fn a_process_killed_between_call_and_result_is_replaced_unnoticed() {
    // X2
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in ALL {
            let mut client = Client::new(api, delivery);
            harness.queue(message(&[
                Block::Call("toolu_a", "mcp__client__get_weather", json!({"city": "Rome"})),
                Block::Call("toolu_b", "mcp__client__get_weather", json!({"city": "Oslo"})),
            ]));
            client.say(&harness.gate, &format!("Both, please. {api:?} {delivery:?}")).await;
            let before = harness.model_requests().len();
            harness.kill_all();
            harness.queue(message(&[Block::Text("Done.")]));
            let reply = client.answer(&harness.gate, &[("toolu_b", "5 C"), ("toolu_a", "20 C")]).await;
            assert_eq!(reply.text, "Done.");
            assert_eq!(
                harness.model_messages(),
                client.expected[..client.expected.len() - 1],
                "{api:?} {delivery:?}"
            );
            assert_eq!(harness.model_requests().len() - before, 1);
        }
    }
}

#[tokio::test]
async fn a_restarted_gateway_continues_from_the_clients_history_hours_later() {
    // X2, E5, agent 10, 18, M9: calls and results stay calls and results and do not become text
    for program in programs() {
        for (api, delivery) in [(Api::Messages, Delivery::Whole), (Api::Responses, Delivery::Streamed)] {
            let clock = Arc::new(ManualClock::default());
            let mut harness = Harness::set(&program, |config| {
                config.surroundings.clock = Arc::clone(&clock) as _;
                config.agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            })
            .await;
            let note = harness.workdir().join("note.txt");
            std::fs::write(&note, "the note").expect("a file");
            let read = json!({ "file_path": note.display().to_string() });
            let mut client = Client::new(api, delivery);
            harness.queue(message(&[Block::Text("Hm."), Block::Call("toolu_r", "Read", read.clone())]));
            harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({"city": "Rome"}))]));
            client.say(&harness.gate, "Rome?").await;

            clock.advance(Duration::from_hours(26));
            harness.restart().await;
            harness.queue(message(&[Block::Text("Warm.")]));
            client.answer(&harness.gate, &[("toolu_a", "20 C")]).await;
            let messages = harness.model_messages();
            let own = &messages[1..3];
            assert_eq!(own[0]["content"][1]["name"], "Read", "{messages:?}");
            assert!(own[1]["content"][0].to_string().contains("the note"), "{messages:?}");
            let without_own = [&messages[..1], &messages[3..]].concat();
            assert_eq!(without_own[2..], client.expected[2..3], "{api:?} {delivery:?}");

            harness.restart_elsewhere().await;
            harness.queue(message(&[Block::Text("Yes.")]));
            client.say(&harness.gate, "Sure?").await;
            assert_eq!(
                harness.model_messages(),
                client.expected[..client.expected.len() - 1],
                "{api:?} {delivery:?}"
            );
            assert_eq!(harness.model_requests().len(), 4);
        }
    }
}

#[tokio::test]
async fn an_edited_history_is_a_branch_and_both_branches_continue() {
    // B4, agent 14, 17, M9: edit, regenerate and branch never answer from the wrong branch
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut first = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[Block::Text("One.")]));
        first.say(&harness.gate, "Count.").await;
        let mut second = Client::new(Api::Messages, Delivery::Whole);
        second.history.clone_from(&first.history);
        second.expected.clone_from(&first.expected);
        for (client, text) in [(&mut first, "A"), (&mut second, "B")] {
            harness.queue(message(&[Block::Text("Two.")]));
            client.say(&harness.gate, text).await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        }
        for (client, text) in [(&mut first, "C"), (&mut second, "D")] {
            harness.queue(message(&[Block::Text("Three.")]));
            client.say(&harness.gate, text).await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        }
    }
}

#[tokio::test]
async fn the_process_of_a_client_that_disconnects_is_ended() {
    // agent 27
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.pool.warm = 0).await;
        harness.queue(start_message().stall());
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        client.push(json!({ "role": "user", "content": "go" }));
        let mut answer = harness.gate.post("/v1/messages", &client.body()).await;
        answer.until("message_start").await;
        assert_eq!(harness.processes().len(), 1);
        drop(answer);
        harness.wait_for_no_processes().await;
    }
}

#[tokio::test]
async fn no_process_is_left_when_the_gateway_stops() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({}))]));
        client.say(&harness.gate, "go").await;
        assert!(!harness.processes().is_empty());
        let stopped = harness.stop().await;
        assert!(stopped.processes().is_empty());
    }
}

#[tokio::test]
async fn more_conversations_than_processes_all_get_their_turns() {
    // agent 27: the process idle longest is evicted, and nothing is lost with it
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            agent.pool.max = 1;
            agent.pool.warm = 1;
        })
        .await;
        let mut clients =
            [Client::new(Api::Messages, Delivery::Whole), Client::new(Api::Chat, Delivery::Whole)];
        for (number, client) in clients.iter_mut().enumerate() {
            harness.queue(message(&[Block::Call(&format!("toolu_{number}"), WEATHER, json!({}))]));
            client.say(&harness.gate, &format!("I am number {number}.")).await;
        }
        for (number, client) in clients.iter_mut().enumerate() {
            harness.queue(message(&[Block::Text("Done.")]));
            client.answer(&harness.gate, &[(&format!("toolu_{number}"), "r")]).await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        }
        assert_eq!(harness.processes().len(), 1);
    }
}
