//! What is offered to the agent: every tool from the first request on, as the client wrote it, and what it changes in the middle.

use serde_json::{Value, json};
use toolgate_backend::config::{AgentName, Builtins, Via};

use crate::client::{Api, Client, Delivery};
use crate::gate::route;
use crate::stage::{Piece, Stage, programs, says};

/// More than the program would show at once if it were left to choose.
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
async fn every_tool_is_there_at_once_as_it_was_written_and_always_in_the_same_order() {
    // agent 5, 8, 9, M4, M8
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut offers: Vec<Value> = Vec::new();
        for text in ["one", "two"] {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            client.extra = json!({ "tools": tools() });
            stage.on(says(&[Piece::Text("Yes.")]));
            client.say(&stage.gate, text).await;
            offers.push(stage.asked().last().expect("a question").json()["tools"].clone());
        }
        assert_eq!(offers[0], offers[1], "another order would cost the prompt cache");
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
        assert!(find("wordy").to_string().matches("word ").count() >= 990, "the description is whole");
        let either = &find("either")["input_schema"]["properties"];
        assert!(either["a"].is_object() && either["b"].is_object(), "{either}");
    }
}

#[tokio::test]
async fn tools_may_change_in_the_middle_and_nothing_said_is_lost() {
    // agent 20
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[Piece::Call("toolu_a", "mcp__client__get_time", json!({}))]));
        client.say(&stage.gate, "go").await;
        client.tools = vec!["get_time", "get_tide"];
        stage.on(says(&[Piece::Call("toolu_b", "mcp__client__get_tide", json!({}))]));
        let reply = client.answer(&stage.gate, &[("toolu_a", "12:00")]).await;
        assert_eq!(reply.calls.len(), 1, "the new tool can be called: {reply:?}");
        assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        client.tools = vec!["get_weather"];
        stage.on(says(&[Piece::Text("High.")]));
        client.answer(&stage.gate, &[("toolu_b", "high")]).await;
        assert_eq!(stage.heard(), client.said[..client.said.len() - 1]);
        assert_eq!(stage.asked().len(), 3);
    }
}

#[tokio::test]
async fn the_model_may_change_in_the_middle_and_nothing_is_lost() {
    // agent 20: not even what the agent did by itself under the other model
    for program in programs() {
        let stage = Stage::set(&program, |setting| {
            setting.agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
            let via = Via::Agent(AgentName::new("claude"));
            let mut large = route("agent-large", std::slice::from_ref(&via));
            large.targets[0].model = Some("the-large-one".to_owned());
            setting.models.push(large);
        })
        .await;
        let note = stage.workdir().join("note.txt");
        std::fs::write(&note, "the note says 42").expect("a file");
        let read = json!({ "file_path": note.display().to_string() });
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[Piece::Text("I read."), Piece::Call("toolu_r", "Read", read)]));
        stage.on(says(&[Piece::Call("toolu_a", "mcp__client__get_time", json!({}))]));
        client.say(&stage.gate, "go").await;
        client.extra = json!({ "model": "agent-large" });
        stage.on(says(&[Piece::Text("Noon.")]));
        client.answer(&stage.gate, &[("toolu_a", "12:00")]).await;
        let heard = stage.heard();
        let asked = stage.asked().pop().expect("a question").json();
        assert_eq!(asked["model"], "the-large-one");
        assert!(heard[2].to_string().contains("the note says 42"), "{heard:?}");
        assert_eq!(heard[4]["content"], client.said[2]["content"]);
        client.extra = json!({});
        stage.on(says(&[Piece::Text("Yes.")]));
        client.say(&stage.gate, "Sure?").await;
        assert_ne!(stage.asked().pop().expect("a question").json()["model"], "the-large-one");
        assert_eq!(stage.heard()[..5], heard);
        assert_eq!(stage.asked().len(), 4);
    }
}

#[tokio::test]
async fn a_line_that_is_different_in_every_request_of_a_client_is_no_instruction() {
    // T29: Claude Code as the client; the process that knows the conversation is still found
    for program in programs() {
        let stage = Stage::with(&program, |agent| agent.pool.warm = 0).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let mut processes = Vec::new();
        for number in 0..2 {
            let line = format!("x-anthropic-billing-header: cc_version=1; cch=marker{number};");
            let texts = [line.as_str(), "Be brief."].map(|text| json!({ "type": "text", "text": text }));
            client.extra = json!({ "system": texts });
            stage.on(says(&[Piece::Text("Yes.")]));
            client.say(&stage.gate, "go").await;
            let system = stage.asked().pop().expect("a question").json()["system"].to_string();
            assert!(system.contains("Be brief.") && !system.contains("marker"), "{system}");
            processes.push(stage.processes());
        }
        assert_eq!(processes[0], processes[1]);
    }
}
