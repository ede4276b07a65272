//! What is offered to the agent: every tool from the first request on, as the client wrote it, and nothing of the host.

use serde_json::{Value, json};

use crate::client::{Api, Client, Delivery};
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
async fn files_that_instruct_a_person_s_own_agent_do_not_reach_this_one() {
    // agent 29
    for program in programs() {
        let stage = Stage::new(&program).await;
        let work = stage.workdir();
        std::fs::create_dir_all(work.join(".claude")).expect("a folder");
        let server = json!({ "mcpServers": { "leaked-marker": { "command": "false" } } }).to_string();
        let hook = json!([{ "hooks": [{ "type": "command", "command": "echo leaked-marker" }] }]);
        let settings = json!({ "hooks": { "UserPromptSubmit": hook } }).to_string();
        for (file, text) in [
            ("CLAUDE.md", "leaked-marker"),
            (".mcp.json", server.as_str()),
            (".claude/settings.json", settings.as_str()),
        ] {
            std::fs::write(work.join(file), text).expect("a file");
        }
        stage.on(says(&[Piece::Text("Yes.")]));
        Client::new(Api::Messages, Delivery::Whole).say(&stage.gate, "go").await;
        let asked = stage.asked();
        assert!(!String::from_utf8_lossy(&asked[0].body).contains("leaked-marker"));
        assert_eq!(asked.len(), 1);
    }
}
