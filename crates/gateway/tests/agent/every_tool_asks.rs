//! The gateway decides about every use of a built-in tool, also about those that the program itself takes for harmless.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_backend::config::Builtins;
use toolgate_model::approval::ToolUse;

use crate::approver::Approver;
use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

async fn asking(program: &Path, builtins: Builtins) -> (Harness, Approver) {
    let (approver, decider) = Approver::new();
    let harness = Harness::set(program, |config| {
        config.agent.builtins = builtins;
        config.surroundings.decider = Some(decider);
    })
    .await;
    (harness, approver)
}

fn only(tools: &[&str]) -> Builtins {
    Builtins::Only(tools.iter().map(|tool| (*tool).to_owned()).collect())
}

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "d" })
}

/// Lets the model use a tool and returns what the gateway is asked. The use is allowed unless it would need a network.
async fn use_tool(harness: &Harness, approver: &mut Approver, tool: &str, input: &Value) -> ToolUse {
    harness.queue(message(&[Block::Call("toolu_a", tool, input.clone())]));
    harness.queue(message(&[Block::Text("Done.")]));
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    let words = format!("Use {tool} with {input}.");
    let (_, asked) = tokio::join!(client.say(&harness.gate, &words), async {
        let asked = approver.next_request().await;
        let tool_use = asked.request.clone();
        if !tool_use.tool.starts_with("Web") {
            asked.allow(Vec::new());
        }
        tool_use
    });
    assert!(approver.has_no_request(), "{tool}: one question for one use");
    asked
}

#[tokio::test]
async fn every_use_of_a_builtin_tool_is_asked_about() {
    for (program, newer_tools) in programs().iter().zip([&[][..], &["Monitor"]]) {
        let tools = [
            &["Read", "Grep", "Glob", "Bash", "Write", "Edit", "NotebookEdit", "WebFetch", "WebSearch"],
            newer_tools,
        ];
        let (harness, mut approver) = asking(program, only(&tools.concat())).await;
        let workdir = harness.workdir();
        let path = |name: &str| workdir.join(name).display().to_string();
        std::fs::write(workdir.join(".env"), "SECRET=1").expect("a file");
        std::fs::create_dir(workdir.join("sub")).expect("a folder");
        let mut uses = vec![
            ("Read", json!({ "file_path": path(".env") })),
            ("Grep", json!({ "pattern": "SECRET" })),
            ("Glob", json!({ "pattern": "*" })),
            ("Bash", bash("cat .env")),
            ("Bash", bash("grep -r SECRET .")),
            ("Bash", bash("cd sub")),
            ("Bash", bash("pwd")),
            ("Write", json!({ "file_path": path("new.txt"), "content": "x" })),
            ("WebFetch", json!({ "url": "http://127.0.0.1:1/", "prompt": "p" })),
            ("WebSearch", json!({ "query": "toolgate" })),
        ];
        if !newer_tools.is_empty() {
            let monitor =
                json!({ "command": "true", "description": "d", "timeout_ms": 1000, "persistent": false });
            uses.push(("Monitor", monitor));
        }
        for (tool, input) in uses {
            let asked = use_tool(&harness, &mut approver, tool, &input).await;
            assert_eq!(asked.tool, tool, "{input}");
        }
    }
}

#[tokio::test]
async fn edits_of_files_that_the_agent_has_read_are_asked_about() {
    for program in programs() {
        let (harness, mut approver) = asking(&program, only(&["Read", "Edit", "NotebookEdit"])).await;
        let workdir = harness.workdir();
        let path = |name: &str| workdir.join(name).display().to_string();
        let cell = json!({ "cell_type": "code", "id": "a", "metadata": {}, "source": "x", "outputs": [], "execution_count": null });
        let notebook = json!({ "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
        std::fs::write(workdir.join("note.txt"), "x").expect("a file");
        std::fs::write(workdir.join("book.ipynb"), notebook.to_string()).expect("a file");
        let edit = json!({ "file_path": path("note.txt"), "old_string": "x", "new_string": "y" });
        let edit_cell = json!({ "notebook_path": path("book.ipynb"), "cell_id": "a", "new_source": "y", "edit_mode": "replace" });
        let steps = [
            ("Read", json!({ "file_path": path("note.txt") })),
            ("Edit", edit),
            ("Read", json!({ "file_path": path("book.ipynb") })),
            ("NotebookEdit", edit_cell),
        ];
        let ids = ["toolu_a", "toolu_b", "toolu_c", "toolu_d"];
        for (id, (tool, input)) in ids.iter().zip(&steps) {
            harness.queue(message(&[Block::Call(id, tool, input.clone())]));
        }
        harness.queue(message(&[Block::Text("Done.")]));
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        tokio::join!(client.say(&harness.gate, "go"), async {
            for (tool, _) in &steps {
                let asked = approver.next_request().await;
                assert_eq!(asked.request.tool, *tool);
                asked.allow(Vec::new());
            }
        });
        assert_eq!(std::fs::read_to_string(workdir.join("note.txt")).expect("a text"), "y");
    }
}

#[tokio::test]
async fn uses_by_a_sub_agent_are_asked_about() {
    for program in programs() {
        let (harness, mut approver) = asking(&program, only(&["Task", "Read", "Bash"])).await;
        std::fs::write(harness.workdir().join(".env"), "SECRET=1").expect("a file");
        let task = json!({ "description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false });
        let read = json!({ "file_path": harness.workdir().join(".env").display().to_string() });
        harness.queue(message(&[Block::Call("toolu_s", "Task", task)]));
        harness.queue(message(&[Block::Call("toolu_r", "Read", read)]));
        harness.queue(message(&[Block::Call("toolu_b", "Bash", bash("cat .env"))]));
        harness.queue(message(&[Block::Text("It says SECRET.")]));
        harness.queue(message(&[Block::Text("Done.")]));
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let (_, asked) = tokio::join!(client.say(&harness.gate, "go"), async {
            let mut asked = Vec::new();
            for _ in 0..3 {
                let next = approver.next_request().await;
                asked.push((next.request.tool.clone(), next.request.sub_agent.is_some()));
                next.allow(Vec::new());
            }
            asked
        });
        let expected = [("Agent", false), ("Read", true), ("Bash", true)];
        assert_eq!(asked, expected.map(|(tool, by_sub_agent)| (tool.to_owned(), by_sub_agent)));
    }
}

#[tokio::test]
async fn tools_that_do_nothing_here_are_not_asked_about() {
    for program in programs() {
        let (harness, mut approver) = asking(&program, Builtins::Default).await;
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        let schema = json!({ "type": "object", "properties": { "x": { "type": "number" } } });
        let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
        client.extra = json!({ "response_format": format });
        harness.queue(message(&[
            Block::Call("toolu_a", "mcp__client__get_time", json!({})),
            Block::Call("toolu_b", "mcp__client__get_weather", json!({ "city": "Paris" })),
        ]));
        assert_eq!(client.say(&harness.gate, "go").await.calls.len(), 2);
        harness.queue(message(&[Block::Call("toolu_c", "StructuredOutput", json!({ "x": 5 }))]));
        let reply = client.answer(&harness.gate, &[("toolu_a", "12:00"), ("toolu_b", "21 C")]).await;
        assert_eq!(reply.text, r#"{"x":5}"#);
        assert!(approver.has_no_request());
    }
}

#[tokio::test]
async fn every_command_starts_in_the_working_directory() {
    for program in programs() {
        let harness = Harness::with_rules(&program, &["Bash"], &["allow *"]).await;
        std::fs::create_dir(harness.workdir().join("sub")).expect("a folder");
        for (id, command) in
            [("toolu_a", "cd sub"), ("toolu_b", "pwd"), ("toolu_c", "cd sub && pwd"), ("toolu_d", "pwd")]
        {
            harness.queue(message(&[Block::Call(id, "Bash", bash(command))]));
        }
        harness.queue(message(&[Block::Text("Done.")]));
        Client::new(Api::Messages, Delivery::Whole).say(&harness.gate, "go").await;
        let messages = harness.model_messages();
        let result =
            |index: usize| messages[index]["content"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let workdir = harness.workdir().canonicalize().expect("a folder").display().to_string();
        let sub = format!("{workdir}/sub");
        assert_eq!([result(4), result(6), result(8)], [&workdir, &sub, &workdir].map(String::as_str));
    }
}
