//! Results in parts, twice, for no call, and late: each has a defined end.

use std::time::Duration;

use serde_json::json;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

const WEATHER: &str = "mcp__client__get_weather";

fn three_calls() -> [Piece<'static>; 3] {
    ["toolu_a", "toolu_b", "toolu_c"].map(|id| Piece::Call(id, WEATHER, json!({ "city": id })))
}

#[tokio::test]
async fn missing_results_are_named_and_only_the_rest_need_be_sent() {
    // B5
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (api, killed) in [(Api::Messages, false), (Api::Chat, false), (Api::Responses, true)] {
            let mut client = Client::new(api, Delivery::Whole);
            stage.on(says(&three_calls()));
            client.say(&stage.gate, &format!("go {api:?}")).await;
            stage.forget();
            let (history, said) = (client.history.clone(), client.said.clone());
            client.add_results(&[("toolu_c", "three"), ("toolu_a", "one")]);
            let answer = stage.gate.post(client.path(), &client.body()).await;
            assert_eq!(answer.status(), 400);
            let text = answer.text().await;
            let named: Vec<&str> =
                ["toolu_a", "toolu_b", "toolu_c"].into_iter().filter(|id| text.contains(id)).collect();
            assert_eq!(named, ["toolu_b"], "{text}");
            if killed {
                stage.kill_all();
            }

            (client.history, client.said) = (history, said);
            client.add_results(&[("toolu_b", "two")]);
            client.said.pop();
            let results = [("toolu_a", "one"), ("toolu_b", "two"), ("toolu_c", "three")].map(|(id, text)| {
                json!({ "type": "tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": text }] })
            });
            client.said.push(json!({ "role": "user", "content": results }));
            stage.on(says(&[Piece::Text("Done.")]));
            assert_eq!(client.ask(&stage.gate).await.text, "Done.");
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{api:?}");
            // The client's history has the rest alone, and the model still hears all of it.
            stage.on(says(&[Piece::Text("Gladly.")]));
            client.say(&stage.gate, "Thanks").await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{api:?}");
            assert_eq!(stage.asked().len(), 2, "one model request for each turn");
        }
    }
}

#[tokio::test]
async fn missing_results_may_come_together_with_those_that_were_sent() {
    // B5: the process that waits is not lost by it
    for program in programs() {
        let stage = Stage::with(&program, |agent| agent.pool.warm = 0).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        stage.on(says(&three_calls()));
        client.say(&stage.gate, "go").await;
        let (history, said) = (client.history.clone(), client.said.clone());
        let waiting = stage.processes();
        client.add_results(&[("toolu_a", "old")]);
        assert_eq!(stage.gate.post(client.path(), &client.body()).await.status(), 400);
        (client.history, client.said) = (history, said);
        stage.on(says(&[Piece::Text("Done.")]));
        client.answer(&stage.gate, &[("toolu_a", "new"), ("toolu_b", "two"), ("toolu_c", "three")]).await;
        assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        assert_eq!(stage.processes(), waiting);
        assert_eq!(stage.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_result_twice_or_for_no_call_never_reaches_the_model_as_a_result() {
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (extra, named) in [("toolu_a", "two tool_results"), ("toolu_x", "toolu_x")] {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({}))]));
            client.say(&stage.gate, &format!("go {extra}")).await;
            let (history, said) = (client.history.clone(), client.said.clone());
            client.add_results(&[("toolu_a", "one"), (extra, "more")]);
            let answer = stage.gate.post(client.path(), &client.body()).await;
            assert_eq!(answer.status(), 400);
            let text = answer.text().await;
            assert!(text.contains(named), "{text}");
            (client.history, client.said) = (history, said);
            stage.on(says(&[Piece::Text("Done.")]));
            client.answer(&stage.gate, &[("toolu_a", "one")]).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{extra}");
        }
        // Chat clients are used to leniency: the first result counts, and what answers no call is said as text.
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({}))]));
        client.say(&stage.gate, "go").await;
        client.add_results(&[("toolu_a", "one"), ("toolu_a", "again"), ("toolu_x", "more")]);
        stage.on(says(&[Piece::Text("Done.")]));
        client.ask(&stage.gate).await;
        let content = stage.heard()[2]["content"].clone();
        let kinds: Vec<&str> =
            content.as_array().expect("blocks").iter().filter_map(|block| block["type"].as_str()).collect();
        assert_eq!(kinds, ["tool_result", "text", "text"], "{content}");
        assert!(!content.to_string().contains("again"), "{content}");
    }
}

#[tokio::test]
async fn a_result_that_comes_when_its_process_sleeps_is_as_good_as_any() {
    // agent 10: `hold` passes, the process sleeps, and the result goes to another
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            agent.pool.warm = 0;
            agent.pool.hold = Duration::from_millis(1);
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&three_calls()));
        client.say(&stage.gate, "go").await;
        stage.until_no_process_is_left().await;
        stage.on(says(&[Piece::Text("Done.")]));
        client.answer(&stage.gate, &[("toolu_b", "two"), ("toolu_c", "three"), ("toolu_a", "one")]).await;
        assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        assert_eq!(stage.asked().len(), 2);
        stage.until_no_process_is_left().await;
    }
}

#[tokio::test]
async fn a_call_that_the_client_talks_past_is_told_as_not_run() {
    for program in programs() {
        let stage = Stage::new(&program).await;
        for api in [Api::Messages, Api::Chat, Api::Responses] {
            let mut client = Client::new(api, Delivery::Whole);
            stage.on(says(&[Piece::Call("toolu_a", WEATHER, json!({}))]));
            client.say(&stage.gate, &format!("go {api:?}")).await;
            stage.on(says(&[Piece::Text("Then not.")]));
            client.say(&stage.gate, "Never mind.").await;
            let content = stage.heard()[2]["content"].clone();
            assert_eq!(
                (&content[0]["tool_use_id"], &content[0]["is_error"]),
                (&json!("toolu_a"), &json!(true))
            );
            assert!(content[0].to_string().contains("did not run"), "{api:?}: {content}");
            assert_eq!(content[1]["text"], "Never mind.", "{api:?}: {content}");
        }
    }
}
