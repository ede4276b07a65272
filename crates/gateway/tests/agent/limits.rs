//! Bounds: of processes, of waiting, of turns, of sizes.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says, start_message};

const WEATHER: &str = "mcp__client__get_weather";

/// More requests than may wait for a process.
const TOO_MANY: usize = 257;

fn asking(text: &str) -> Value {
    let mut client = Client::new(Api::Messages, Delivery::Streamed);
    client.push(json!({ "role": "user", "content": text }));
    client.body()
}

#[tokio::test]
async fn a_request_past_max_waits_and_is_told_when_nothing_becomes_free() {
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            (agent.pool.warm, agent.pool.max) = (0, 1);
            agent.pool.queue_wait = Duration::from_millis(200);
        })
        .await;
        stage.on(start_message().stall());
        let mut busy = stage.gate.post("/v1/messages", &asking("long")).await;
        busy.until("message_start").await;
        let answer = stage.gate.post("/v1/messages", &asking("too much")).await;
        assert_eq!(answer.status(), 529);
        let text = answer.text().await;
        assert!(text.contains("raise `max`"), "{text}");
        assert_eq!((stage.processes().len(), stage.asked().len()), (1, 1));
        drop(busy);
        stage.until_no_process_is_left().await;
    }
}

#[tokio::test]
async fn a_full_queue_refuses_one_more_and_the_agent_works_again_afterwards() {
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            (agent.pool.warm, agent.pool.max) = (0, 1);
            agent.pool.queue_wait = Duration::from_mins(10);
        })
        .await;
        stage.on(start_message().stall());
        let mut busy = stage.gate.post("/v1/messages", &asking("long")).await;
        busy.until("message_start").await;
        let requests: Vec<Value> = (0..TOO_MANY).map(|number| asking(&format!("I am {number}"))).collect();
        let mut answers: FuturesUnordered<_> =
            requests.iter().map(|body| stage.gate.post("/v1/messages", body)).collect();
        let refused = answers.next().await.expect("one is answered while the others wait");
        assert_eq!(refused.status(), 429);
        let text = refused.text().await;
        assert!(text.contains("too many requests are waiting"), "{text}");
        drop(answers);
        drop(busy);
        stage.on(says(&[Piece::Text("At last.")]));
        stage.until_no_process_is_left().await;
        assert_eq!(Client::new(Api::Chat, Delivery::Whole).say(&stage.gate, "go").await.text, "At last.");
    }
}

#[tokio::test]
async fn an_agent_that_has_used_up_its_steps_pauses_and_can_go_on() {
    // E4, M7
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            agent.max_turns = Some(1);
        })
        .await;
        let file = stage.workdir().join("note.txt");
        std::fs::write(&file, "the note says 42").expect("a file");
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let read = json!({ "file_path": file.display().to_string() });
        stage.on(says(&[Piece::Text("I read."), Piece::Call("toolu_r", "Read", read)]));
        let reply = client.say(&stage.gate, "What does it say?").await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("I read.", "pause_turn"));
        stage.on(says(&[Piece::Text("42.")]));
        let reply = client.ask_once(&stage.gate).await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("42.", "end_turn"));
        assert!(stage.heard()[2].to_string().contains("the note says 42"), "{:?}", stage.heard());
        assert_eq!(stage.asked().len(), 2);
    }
}

#[tokio::test]
async fn an_agent_that_has_spent_its_budget_ends_and_the_next_request_has_all_of_it() {
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            agent.max_budget_usd = Some(0.000_01);
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.push(json!({ "role": "user", "content": "go" }));
        let read = json!({ "file_path": stage.workdir().display().to_string() });
        stage.on(says(&[Piece::Call("toolu_r", "Read", read)]));
        let answer = stage.gate.post("/v1/messages", &client.body()).await;
        assert_eq!(answer.status(), 402);
        let text = answer.text().await;
        assert!(text.contains("billing_error") && text.contains("budget is used up"), "{text}");
        assert_eq!(stage.asked().len(), 1);

        let mut client = Client::new(Api::Messages, Delivery::Whole);
        for question in ["one", "two"] {
            stage.on(says(&[Piece::Text("Here.")]));
            assert_eq!(client.say(&stage.gate, question).await.text, "Here.");
        }
    }
}

#[tokio::test]
async fn the_clients_own_calls_do_not_use_up_an_agents_steps() {
    // M7: each request has the steps anew, whichever process serves it
    for program in programs() {
        let stage = Stage::with(&program, |agent| agent.max_turns = Some(1)).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        for number in 0..3 {
            let id = format!("toolu_{number}");
            stage.on(says(&[Piece::Call(&id, WEATHER, json!({}))]));
            let reply = if number == 0 {
                client.say(&stage.gate, "go").await
            } else {
                client.answer(&stage.gate, &[(&format!("toolu_{}", number - 1), "r")]).await
            };
            assert_eq!((reply.stop.as_str(), reply.calls.len()), ("tool_use", 1), "{reply:?}");
        }
        assert_eq!(stage.asked().len(), 3);
    }
}

#[tokio::test]
async fn five_hundred_messages_of_history_arrive_as_they_are() {
    for program in programs() {
        let stage = Stage::new(&program).await;
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
                client.said.push(message);
            }
        }
        stage.on(says(&[Piece::Text("Still here.")]));
        client.say(&stage.gate, "And now?").await;
        assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        assert_eq!(stage.asked().len(), 1);
    }
}

#[tokio::test]
async fn ten_megabytes_from_a_tool_arrive_whole() {
    // agent 12
    for program in programs() {
        let stage = Stage::new(&program).await;
        let sizes = [[1, 1, 10 * 1024 * 1024], [499_000, 1, 1], [490_000, 490_000, 490_000]];
        for (number, sizes) in sizes.into_iter().enumerate() {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            stage.forget();
            let ids = ["toolu_a", "toolu_b", "toolu_c"];
            stage.on(says(&ids.map(|id| Piece::Call(id, WEATHER, json!({})))));
            client.say(&stage.gate, &format!("go {number}")).await;
            stage.on(says(&[Piece::Text("Much.")]));
            let texts = sizes.map(|size| "x".repeat(size));
            let results = [0, 1, 2].map(|index| (ids[index], texts[index].as_str()));
            client.answer(&stage.gate, &results).await;
            let same = stage.heard() == client.said[..client.said.len() - 1];
            assert!(same, "{sizes:?} were changed: {:.600}", stage.heard()[2].to_string());
            assert_eq!(stage.asked().len(), 2);
        }
    }
}
