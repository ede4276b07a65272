//! Built-in tools beside the client's, under the operator's rules; and an agent that uses a gateway model.

use serde_json::json;
use toolgate_backend::config::AgentModel;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

#[tokio::test]
async fn builtin_and_client_calls_of_one_message_each_run_where_they_belong() {
    // A11, agent 13
    for program in programs() {
        let harness = Harness::with_rules(&program, &["Bash"], &["allow Bash(touch:*)"]).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        let touch = json!({ "command": "touch made-by-the-agent", "description": "d" });
        harness.queue(message(&[
            Block::Text("Both."),
            Block::Call("toolu_b", "Bash", touch),
            Block::Call("toolu_t", "mcp__client__get_time", json!({})),
        ]));
        let reply = client.say(&harness.gate, "go").await;
        assert_eq!(reply.calls.len(), 1, "the client sees only its own call");
        harness.queue(message(&[Block::Text("Done.")]));
        client.answer(&harness.gate, &[("toolu_t", "12:00")]).await;
        assert!(harness.workdir().join("made-by-the-agent").exists());
        let results = &harness.model_messages()[2]["content"];
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
    }
}

#[tokio::test]
async fn a_use_that_no_rule_covers_is_denied_and_the_model_sees_the_denial() {
    // agent 22, 25
    for program in programs() {
        let harness = Harness::with_rules(&program, &["Bash"], &[]).await;
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        let touch = json!({ "command": "touch made-by-the-agent", "description": "d" });
        harness.queue(message(&[Block::Call("toolu_b", "Bash", touch)]));
        harness.queue(message(&[Block::Text("Then not.")]));
        let reply = client.say(&harness.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("Then not.", "end_turn"));
        assert!(!harness.workdir().join("made-by-the-agent").exists());
        assert!(
            harness.model_messages()[2].to_string().contains("Nobody answered"),
            "{:?}",
            harness.model_messages()[2]
        );
    }
}

#[tokio::test]
async fn a_sub_agent_cannot_call_client_tools() {
    for program in programs() {
        let harness = Harness::with_rules(&program, &["Task"], &["allow *"]).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let task = json!({ "description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false });
        harness.queue(message(&[Block::Call("toolu_s", "Task", task)]));
        harness.queue(message(&[Block::Call("toolu_t", "mcp__client__get_time", json!({}))]));
        harness.queue(message(&[Block::Text("I cannot.")]));
        harness.queue(message(&[Block::Text("Then I call it.")]));
        let reply = client.say(&harness.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("Then I call it.", 0));
        let messages = harness.model_requests()[2].json()["messages"].to_string();
        assert!(messages.contains("Only the main conversation can call this tool"), "{messages}");
        assert_eq!(harness.model_requests().len(), 4);
    }
}

#[tokio::test]
async fn an_agent_can_use_a_gateway_model() {
    // X4
    for program in programs() {
        let harness =
            Harness::with(&program, |agent| agent.model = AgentModel::Gateway("demo".to_owned())).await;
        for (api, delivery) in [(Api::Messages, Delivery::Streamed), (Api::Responses, Delivery::Whole)] {
            let mut client = Client::new(api, delivery);
            let reply =
                client.say(&harness.gate, &format!("Please call get_weather for Paris. {api:?}")).await;
            let Some((id, name, _)) = reply.calls.first() else { panic!("no call in {reply:?}") };
            assert_eq!(name, "get_weather");
            let results: Vec<(&str, &str)> =
                reply.calls.iter().map(|(id, _, _)| (id.as_str(), "21 C")).collect();
            assert!(results.iter().any(|(answered, _)| answered == id));
            let reply = client.answer(&harness.gate, &results).await;
            assert!(reply.text.contains("21 C"), "{reply:?}");
        }
        assert!(harness.model_requests().is_empty(), "the agent's default API host gets no request");
    }
}
