//! Limits of processes, queues, turns and sizes.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs, start_message};

const WEATHER: &str = "mcp__client__get_weather";

/// One request more than may wait for a process.
const TOO_MANY: usize = 257;

fn asking(text: &str) -> Value {
    let mut client = Client::new(Api::Messages, Delivery::Streamed);
    client.push(json!({ "role": "user", "content": text }));
    client.body()
}

#[tokio::test]
async fn a_request_beyond_max_waits_and_fails_after_queue_wait() {
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            (agent.pool.warm, agent.pool.max) = (0, 1);
            agent.pool.queue_wait = Duration::from_millis(200);
        })
        .await;
        harness.queue(start_message().stall());
        let mut busy = harness.gate.post("/v1/messages", &asking("long")).await;
        busy.until("message_start").await;
        let answer = harness.gate.post("/v1/messages", &asking("too much")).await;
        assert_eq!(answer.status(), 529);
        let text = answer.text().await;
        assert!(text.contains("raise `max`"), "{text}");
        assert_eq!((harness.processes().len(), harness.model_requests().len()), (1, 1));
        drop(busy);
        harness.wait_for_no_processes().await;
    }
}

#[tokio::test]
async fn a_full_queue_rejects_a_request_and_the_agent_works_afterwards() {
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            (agent.pool.warm, agent.pool.max) = (0, 1);
            agent.pool.queue_wait = Duration::from_mins(10);
        })
        .await;
        harness.queue(start_message().stall());
        let mut busy = harness.gate.post("/v1/messages", &asking("long")).await;
        busy.until("message_start").await;
        let requests: Vec<Value> = (0..TOO_MANY).map(|number| asking(&format!("I am {number}"))).collect();
        let mut answers: FuturesUnordered<_> =
            requests.iter().map(|body| harness.gate.post("/v1/messages", body)).collect();
        let refused = answers.next().await.expect("one is rejected while the others wait");
        assert_eq!(refused.status(), 429);
        let text = refused.text().await;
        assert!(text.contains("too many requests are waiting"), "{text}");
        drop(answers);
        drop(busy);
        harness.queue(message(&[Block::Text("At last.")]));
        harness.wait_for_no_processes().await;
        assert_eq!(Client::new(Api::Chat, Delivery::Whole).say(&harness.gate, "go").await.text, "At last.");
    }
}

#[tokio::test]
async fn an_agent_that_reaches_max_turns_pauses_and_can_continue() {
    // E4, M7
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            agent.max_turns = Some(1);
        })
        .await;
        let file = harness.workdir().join("note.txt");
        std::fs::write(&file, "the note says 42").expect("a file");
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let read = json!({ "file_path": file.display().to_string() });
        harness.queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read)]));
        let reply = client.say(&harness.gate, "What does it say?").await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("I read.", "pause_turn"));
        harness.queue(message(&[Block::Text("42.")]));
        let reply = client.ask_once(&harness.gate).await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("42.", "end_turn"));
        assert!(
            harness.model_messages()[2].to_string().contains("the note says 42"),
            "{:?}",
            harness.model_messages()
        );
        assert_eq!(harness.model_requests().len(), 2);
    }
}

#[tokio::test]
async fn a_turn_that_exceeds_its_budget_fails_and_the_next_request_has_the_full_budget() {
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            agent.max_budget_usd = Some(0.000_01);
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.push(json!({ "role": "user", "content": "go" }));
        let read = json!({ "file_path": harness.workdir().display().to_string() });
        harness.queue(message(&[Block::Call("toolu_r", "Read", read)]));
        let answer = harness.gate.post("/v1/messages", &client.body()).await;
        assert_eq!(answer.status(), 402);
        let text = answer.text().await;
        assert!(text.contains("billing_error") && text.contains("budget is used up"), "{text}");
        assert_eq!(harness.model_requests().len(), 1);

        let mut client = Client::new(Api::Messages, Delivery::Whole);
        for question in ["one", "two"] {
            harness.queue(message(&[Block::Text("Here.")]));
            assert_eq!(client.say(&harness.gate, question).await.text, "Here.");
        }
    }
}

#[tokio::test]
async fn client_calls_do_not_count_towards_max_turns() {
    // M7: each request has the full limit, whichever process serves it
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.max_turns = Some(1)).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        for number in 0..3 {
            let id = format!("toolu_{number}");
            harness.queue(message(&[Block::Call(&id, WEATHER, json!({}))]));
            let reply = if number == 0 {
                client.say(&harness.gate, "go").await
            } else {
                client.answer(&harness.gate, &[(&format!("toolu_{}", number - 1), "r")]).await
            };
            assert_eq!((reply.stop.as_str(), reply.calls.len()), ("tool_use", 1), "{reply:?}");
        }
        assert_eq!(harness.model_requests().len(), 3);
    }
}

#[tokio::test]
async fn a_history_of_five_hundred_messages_arrives_unchanged() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        for number in 0..125 {
            let id = format!("toolu_{number}");
            let call =
                json!({ "type": "tool_use", "id": id, "name": "get_weather", "input": { "city": id } });
            let result = json!([{ "type": "text", "text": format!("{number} C") }]);
            let messages = [
                ("user", json!([{ "type": "text", "text": format!("question {number}") }])),
                ("assistant", json!([call])),
                ("user", json!([{ "type": "tool_result", "tool_use_id": id, "content": result }])),
                ("assistant", json!([{ "type": "text", "text": format!("answer {number}") }])),
            ];
            for (role, content) in messages {
                let message = json!({ "role": role, "content": content });
                client.history.push(message.clone());
                client.expected.push(message);
            }
        }
        harness.queue(message(&[Block::Text("Still here.")]));
        client.say(&harness.gate, "And now?").await;
        assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        assert_eq!(harness.model_requests().len(), 1);
    }
}

#[tokio::test]
async fn a_tool_result_of_ten_megabytes_arrives_complete() {
    // agent 12
    for program in programs() {
        let harness = Harness::new(&program).await;
        let sizes = [[1, 1, 10 * 1024 * 1024], [499_000, 1, 1], [490_000, 490_000, 490_000]];
        for (number, sizes) in sizes.into_iter().enumerate() {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            harness.clear_requests();
            let ids = ["toolu_a", "toolu_b", "toolu_c"];
            harness.queue(message(&ids.map(|id| Block::Call(id, WEATHER, json!({})))));
            client.say(&harness.gate, &format!("go {number}")).await;
            harness.queue(message(&[Block::Text("Much.")]));
            let texts = sizes.map(|size| "x".repeat(size));
            let results = [0, 1, 2].map(|index| (ids[index], texts[index].as_str()));
            client.answer(&harness.gate, &results).await;
            let same = harness.model_messages() == client.expected[..client.expected.len() - 1];
            assert!(same, "{sizes:?} were changed: {:.600}", harness.model_messages()[2].to_string());
            assert_eq!(harness.model_requests().len(), 2);
        }
    }
}
