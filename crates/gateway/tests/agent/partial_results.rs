//! Results that are partial, duplicate, unknown or late: each case has a defined outcome.

use std::time::Duration;

use serde_json::json;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

const WEATHER: &str = "mcp__client__get_weather";

fn three_calls() -> [Block<'static>; 3] {
    ["toolu_a", "toolu_b", "toolu_c"].map(|id| Block::Call(id, WEATHER, json!({ "city": id })))
}

#[tokio::test]
async fn missing_results_are_named_and_only_those_need_to_be_sent() {
    // B5
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, killed) in [(Api::Messages, false), (Api::Chat, false), (Api::Responses, true)] {
            let mut client = Client::new(api, Delivery::Whole);
            harness.queue(message(&three_calls()));
            client.say(&harness.gate, &format!("go {api:?}")).await;
            harness.clear_requests();
            let (history, expected) = (client.history.clone(), client.expected.clone());
            client.add_results(&[("toolu_c", "three"), ("toolu_a", "one")]);
            let answer = harness.gate.post(client.path(), &client.body()).await;
            assert_eq!(answer.status(), 400);
            let text = answer.text().await;
            let named: Vec<&str> =
                ["toolu_a", "toolu_b", "toolu_c"].into_iter().filter(|id| text.contains(id)).collect();
            assert_eq!(named, ["toolu_b"], "{text}");
            if killed {
                harness.kill_all();
            }

            (client.history, client.expected) = (history, expected);
            client.add_results(&[("toolu_b", "two")]);
            client.expected.pop();
            let results = [("toolu_a", "one"), ("toolu_b", "two"), ("toolu_c", "three")].map(|(id, text)| {
                json!({ "type": "tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": text }] })
            });
            client.expected.push(json!({ "role": "user", "content": results }));
            harness.queue(message(&[Block::Text("Done.")]));
            assert_eq!(client.ask(&harness.gate).await.text, "Done.");
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1], "{api:?}");
            // The client's history lacks the earlier results, but the model still gets all of them.
            harness.queue(message(&[Block::Text("Gladly.")]));
            client.say(&harness.gate, "Thanks").await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1], "{api:?}");
            assert_eq!(harness.model_requests().len(), 2, "one model request per turn");
        }
    }
}

#[tokio::test]
async fn all_results_may_be_sent_again_together() {
    // B5: the waiting process survives
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.pool.warm = 0).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        harness.queue(message(&three_calls()));
        client.say(&harness.gate, "go").await;
        let (history, expected) = (client.history.clone(), client.expected.clone());
        let waiting = harness.processes();
        client.add_results(&[("toolu_a", "old")]);
        assert_eq!(harness.gate.post(client.path(), &client.body()).await.status(), 400);
        (client.history, client.expected) = (history, expected);
        harness.queue(message(&[Block::Text("Done.")]));
        client.answer(&harness.gate, &[("toolu_a", "new"), ("toolu_b", "two"), ("toolu_c", "three")]).await;
        assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        assert_eq!(harness.processes(), waiting);
        assert_eq!(harness.model_requests().len(), 2);
    }
}

#[tokio::test]
async fn duplicate_and_unknown_results_never_reach_the_model_as_results() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (extra, named) in [("toolu_a", "two tool_results"), ("toolu_x", "toolu_x")] {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({}))]));
            client.say(&harness.gate, &format!("go {extra}")).await;
            let (history, expected) = (client.history.clone(), client.expected.clone());
            client.add_results(&[("toolu_a", "one"), (extra, "more")]);
            let answer = harness.gate.post(client.path(), &client.body()).await;
            assert_eq!(answer.status(), 400);
            let text = answer.text().await;
            assert!(text.contains(named), "{text}");
            (client.history, client.expected) = (history, expected);
            harness.queue(message(&[Block::Text("Done.")]));
            client.answer(&harness.gate, &[("toolu_a", "one")]).await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1], "{extra}");
        }
        // Chat clients expect leniency: the first result counts, and unknown ones become text.
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({}))]));
        client.say(&harness.gate, "go").await;
        client.add_results(&[("toolu_a", "one"), ("toolu_a", "again"), ("toolu_x", "more")]);
        harness.queue(message(&[Block::Text("Done.")]));
        client.ask(&harness.gate).await;
        let content = harness.model_messages()[2]["content"].clone();
        let kinds: Vec<&str> =
            content.as_array().expect("blocks").iter().filter_map(|block| block["type"].as_str()).collect();
        assert_eq!(kinds, ["tool_result", "text", "text"], "{content}");
        assert!(!content.to_string().contains("again"), "{content}");
    }
}

#[tokio::test]
async fn a_result_that_comes_after_the_hold_time_still_works() {
    // agent 10: `hold` expires, the process ends, and another one gets the result
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            agent.pool.warm = 0;
            agent.pool.hold = Duration::from_millis(1);
        })
        .await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&three_calls()));
        client.say(&harness.gate, "go").await;
        harness.wait_for_no_processes().await;
        harness.queue(message(&[Block::Text("Done.")]));
        client.answer(&harness.gate, &[("toolu_b", "two"), ("toolu_c", "three"), ("toolu_a", "one")]).await;
        assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        assert_eq!(harness.model_requests().len(), 2);
        harness.wait_for_no_processes().await;
    }
}

#[tokio::test]
async fn an_abandoned_call_gets_an_error_result() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        for api in [Api::Messages, Api::Chat, Api::Responses] {
            let mut client = Client::new(api, Delivery::Whole);
            harness.queue(message(&[Block::Call("toolu_a", WEATHER, json!({}))]));
            client.say(&harness.gate, &format!("go {api:?}")).await;
            harness.queue(message(&[Block::Text("Then not.")]));
            client.say(&harness.gate, "Never mind.").await;
            let content = harness.model_messages()[2]["content"].clone();
            assert_eq!(
                (&content[0]["tool_use_id"], &content[0]["is_error"]),
                (&json!("toolu_a"), &json!(true))
            );
            assert!(content[0].to_string().contains("did not run"), "{api:?}: {content}");
            assert_eq!(content[1]["text"], "Never mind.", "{api:?}: {content}");
        }
    }
}
