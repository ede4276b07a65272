//! The tools, model and instructions of a conversation, and changes to them between two turns.

use serde_json::{Value, json};
use toolgate_backend::config::{AgentName, Builtins, Via};

use crate::client::{Api, Client, Delivery};
use crate::gate::route;
use crate::harness::{Block, Harness, message, programs};

/// More tools than the program would load at once by default.
const MANY: usize = 40;

fn tools() -> Vec<Value> {
    let nested = json!({ "type": "object", "properties": { "where": { "type": "object", "properties": {
        "kind": { "const": "city" }, "name": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
    } } }, "required": ["where"] });
    let mut tools = vec![
        json!({ "name": "nested", "description": "d", "input_schema": nested }),
        json!({ "name": "wordy", "description": "word ".repeat(1000), "input_schema": { "type": "object" } }),
        json!({ "name": "empty", "input_schema": { "type": "object", "properties": {} } }),
        json!({ "name": "either", "description": "d", "input_schema": { "type": "object", "oneOf": [
            { "properties": { "a": { "type": "string" } } }, { "properties": { "b": { "type": "string" } } },
        ] } }),
    ];
    tools.extend((tools.len()..MANY).map(|number| {
        json!({ "name": format!("tool_{number}"), "description": "d", "input_schema": { "type": "object" } })
    }));
    tools
}

#[tokio::test]
async fn every_tool_is_offered_at_once_unchanged_and_in_a_stable_order() {
    // agent 5, 8, 9, M4, M8
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut offers: Vec<Value> = Vec::new();
        for text in ["one", "two"] {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.extra = json!({ "tools": tools() });
            harness.queue(message(&[Block::Text("Yes.")]));
            client.say(&harness.gate, text).await;
            offers.push(harness.model_requests().last().expect("a question").json()["tools"].clone());
        }
        assert_eq!(offers[0], offers[1], "another order would miss the prompt cache");
        let offered = offers[0].as_array().expect("tools");
        assert_eq!(offered.len(), MANY);
        let find = |name: &str| {
            let visible = format!("mcp__client__{name}");
            offered.iter().find(|tool| tool["name"] == visible.as_str()).expect("the tool is offered")
        };
        for tool in tools() {
            find(tool["name"].as_str().expect("a name"));
        }
        assert_eq!(find("nested")["input_schema"]["properties"], tools()[0]["input_schema"]["properties"]);
        assert!(find("wordy").to_string().matches("word ").count() >= 990, "the description is complete");
        let either = &find("either")["input_schema"]["properties"];
        assert!(either["a"].is_object() && either["b"].is_object(), "{either}");
    }
}

#[tokio::test]
async fn tools_may_change_during_a_conversation() {
    // agent 20
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[Block::Call("toolu_a", "mcp__client__get_time", json!({}))]));
        client.say(&harness.gate, "go").await;
        client.tools = vec!["get_time", "get_tide"];
        harness.queue(message(&[Block::Call("toolu_b", "mcp__client__get_tide", json!({}))]));
        let reply = client.answer(&harness.gate, &[("toolu_a", "12:00")]).await;
        assert_eq!(reply.calls.len(), 1, "the new tool can be called: {reply:?}");
        assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        client.tools = vec!["get_weather"];
        harness.queue(message(&[Block::Text("High.")]));
        client.answer(&harness.gate, &[("toolu_b", "high")]).await;
        assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1]);
        assert_eq!(harness.model_requests().len(), 3);
    }
}

#[tokio::test]
async fn the_model_may_change_during_a_conversation() {
    // agent 20: the hidden steps under the other model are kept too
    for program in programs() {
        let harness = Harness::set(&program, |config| {
            config.agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            let via = Via::Agent(AgentName::new("claude"));
            let mut large = route("agent-large", std::slice::from_ref(&via));
            large.targets[0].model = Some("the-large-one".to_owned());
            config.models.push(large);
        })
        .await;
        let note = harness.workdir().join("note.txt");
        std::fs::write(&note, "the note says 42").expect("a file");
        let read = json!({ "file_path": note.display().to_string() });
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read)]));
        harness.queue(message(&[Block::Call("toolu_a", "mcp__client__get_time", json!({}))]));
        client.say(&harness.gate, "go").await;
        client.extra = json!({ "model": "agent-large" });
        harness.queue(message(&[Block::Text("Noon.")]));
        client.answer(&harness.gate, &[("toolu_a", "12:00")]).await;
        let messages = harness.model_messages();
        let asked = harness.model_requests().pop().expect("a question").json();
        assert_eq!(asked["model"], "the-large-one");
        assert!(messages[2].to_string().contains("the note says 42"), "{messages:?}");
        assert_eq!(messages[4]["content"], client.expected[2]["content"]);
        client.extra = json!({});
        harness.queue(message(&[Block::Text("Yes.")]));
        client.say(&harness.gate, "Sure?").await;
        assert_ne!(harness.model_requests().pop().expect("a question").json()["model"], "the-large-one");
        assert_eq!(harness.model_messages()[..5], messages);
        assert_eq!(harness.model_requests().len(), 4);
    }
}

#[tokio::test]
async fn a_system_line_that_changes_with_every_request_is_ignored() {
    // T29: Claude Code as the client; the live process of the conversation is still found
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.pool.warm = 0).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let mut processes = Vec::new();
        for number in 0..2 {
            let line = format!("x-anthropic-billing-header: cc_version=1; cch=marker{number};");
            let texts = [line.as_str(), "Be brief."].map(|text| json!({ "type": "text", "text": text }));
            client.extra = json!({ "system": texts });
            harness.queue(message(&[Block::Text("Yes.")]));
            client.say(&harness.gate, "go").await;
            let system = harness.model_requests().pop().expect("a question").json()["system"].to_string();
            assert!(system.contains("Be brief.") && !system.contains("marker"), "{system}");
            processes.push(harness.processes());
        }
        assert_eq!(processes[0], processes[1]);
    }
}
