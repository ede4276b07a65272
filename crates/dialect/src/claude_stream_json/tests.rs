//! The codec against lines recorded from both supported versions of the program, and against edge cases.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use toolgate_model::ToolOutcome;

use super::*;

const OLD: &str = include_str!("tests/fixtures/2.1.197.jsonl");
const NEW: &str = include_str!("tests/fixtures/2.1.325.jsonl");

/// Counts the lines of a recording by a short description of each.
fn summarize(recording: &str) -> String {
    let words = recording.lines().map(|line| match AgentLine::read(line).expect("a recorded line") {
        AgentLine::Init { version } => format!("init {version}"),
        AgentLine::Event { event, .. } => {
            let event: Value = serde_json::from_str(event).expect("an event");
            event["type"].as_str().expect("a type").to_owned()
        }
        AgentLine::Assistant { message, .. } => format!("assistant {}", message["content"][0]["type"]),
        AgentLine::User { message, .. } => format!("user {}", message["content"][0]["tool_use_id"]),
        AgentLine::Result(outcome) => format!("result {} {:?}", outcome.subtype, outcome.structured),
        AgentLine::Request { request: ControlRequest::ToolServer { message, .. }, .. } => {
            format!("mcp {}", message["method"])
        }
        AgentLine::Request { request: ControlRequest::Permission(request), .. } => {
            format!("permission {} {} {}", request.tool, request.input["command"], request.suggestions.len())
        }
        AgentLine::Request { request, .. } => format!("{request:?}"),
        AgentLine::Response { outcome, .. } => format!("response {}", outcome.is_ok()),
        AgentLine::Withdrawn(_) => "withdrawn".to_owned(),
        AgentLine::Progress(progress) => format!("progress {}", progress.call),
        AgentLine::Other => "other".to_owned(),
    });
    let mut counted: Vec<(String, usize)> = Vec::new();
    for word in words {
        match counted.last_mut() {
            Some((last, times)) if *last == word => *times += 1,
            _ => counted.push((word, 1)),
        }
    }
    let shown =
        counted.into_iter().map(|(word, times)| if times > 1 { format!("{word} ×{times}") } else { word });
    shown.collect::<Vec<_>>().join("\n")
}

#[expect(clippy::needless_pass_by_value, reason = "that is how `expect!` is used")]
fn check(recording: &str, expect: Expect) {
    expect.assert_eq(&summarize(recording));
}

#[test]
fn every_line_of_the_older_program_is_read() {
    // B1
    check(
        OLD,
        expect![[r#"
        response true
        mcp "initialize"
        mcp "notifications/initialized"
        mcp "tools/list"
        init 2.1.197
        other
        message_start
        content_block_start
        content_block_delta
        assistant "text"
        content_block_stop
        content_block_start
        content_block_delta
        assistant "tool_use"
        permission Bash "touch /tmp/zz" 3
        content_block_stop
        content_block_start
        content_block_delta
        assistant "tool_use"
        content_block_stop
        message_delta
        message_stop
        mcp "tools/call"
        user "toolu_b"
        user "toolu_w"
        other
        message_start
        content_block_start
        content_block_delta
        assistant "tool_use"
        content_block_stop
        user "toolu_s"
        message_delta
        message_stop
        result success Some(Object {"x": Number(5)})"#]],
    );
}

#[test]
fn every_line_of_the_newer_program_is_read() {
    check(
        NEW,
        expect![[r#"
        mcp "initialize"
        response true
        mcp "notifications/initialized"
        other
        mcp "tools/list"
        other
        init 2.1.325
        other
        message_start
        content_block_start
        content_block_delta
        assistant "text"
        content_block_stop
        content_block_start
        content_block_delta
        assistant "tool_use"
        content_block_stop
        content_block_start
        permission Bash "touch /tmp/zz" 3
        content_block_delta
        assistant "tool_use"
        content_block_stop
        message_delta
        message_stop
        user "toolu_b"
        mcp "tools/call"
        user "toolu_w"
        other
        message_start
        content_block_start
        content_block_delta
        assistant "tool_use"
        content_block_stop
        message_delta
        user "toolu_s"
        message_stop
        result success Some(Object {"x": Number(5)})"#]],
    );
}

#[test]
fn unknown_lines_are_ignored_and_invalid_ones_are_errors() {
    for line in [
        "Debugger attached.",
        r#"{"type":"keep_alive"}"#,
        r#"{"type":"system","subtype":"brand_new"}"#,
        r#"{"type":"stream_event"}"#,
        "{}",
    ] {
        assert!(matches!(AgentLine::read(line), Ok(AgentLine::Other)), "{line}");
    }
    let error = AgentLine::read(r#"{"type":"result""#).unwrap_err().to_string();
    assert!(error.contains(r#"{"type":"result""#), "{error}");
    let newer = r#"{"type":"control_request","request_id":"r","request":{"subtype":"brand_new"}}"#;
    assert!(
        matches!(AgentLine::read(newer), Ok(AgentLine::Request { request: ControlRequest::Unknown(name), .. }) if name == "brand_new")
    );
}

fn tools(list: Value, enabled: &[&str]) -> AgentTools {
    let Value::Array(list) = list else { panic!("a list of tools") };
    let enabled: Vec<String> = enabled.iter().map(|name| (*name).to_owned()).collect();
    AgentTools::new(&list, &enabled).value
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "d", "input_schema": { "type": "object" } })
}

#[test]
fn names_map_both_ways_without_collisions() {
    let long = "x".repeat(80);
    let names = ["get_weather", "mcp__client__get_weather", "a.b", "a_b", "a b", "Bash", &long];
    let known = tools(names.map(tool).to_vec().into(), &["Read"]);
    let mut seen = std::collections::HashSet::new();
    for name in names {
        let visible = known.visible_name(name);
        assert!(visible.starts_with(PREFIX) && visible.len() <= 64, "{visible}");
        assert_eq!(known.client_name(&visible), Some(name), "{visible}");
        assert!(seen.insert(visible));
    }
    assert_eq!(known.client_name("Bash"), Some("Bash"), "the model may use the bare name");
    assert_eq!(known.client_name("Read"), None);
    assert_eq!(known.visible_name("gone"), "mcp__client__gone");
}

#[test]
fn a_tool_that_the_operator_enabled_is_the_built_in_one() {
    // A4
    let known = tools(json!([tool("Bash"), tool("look")]), &["Bash"]);
    assert_eq!((known.builtins.as_slice(), known.served().len()), (&["Bash".to_owned()][..], 1));
    assert_eq!(known.client_name("Bash"), None);
}

#[test]
fn the_order_is_stable_and_a_long_description_is_complete() {
    let mut long = tool("b");
    let said = "ä".repeat(5000);
    long["description"] = json!(said);
    let known = tools(json!([long, tool("a")]), &[]);
    let [first, second] = known.served() else { panic!("two tools") };
    assert_eq!(first.entry()["name"], "a");
    let shown = second.entry()["description"].as_str().unwrap();
    assert!(shown.chars().count() <= 2048);
    let rest = second.entry()["inputSchema"]["description"].as_str().unwrap();
    let chars = shown.matches('ä').count() + rest.matches('ä').count();
    assert_eq!(chars, said.chars().count());
}

#[test]
fn a_provider_tool_is_a_reported_loss() {
    let list = [json!({ "type": "web_search_20250305", "name": "web_search" })];
    let made = AgentTools::new(&list, &[]);
    assert!(made.losses.contains("tools[web_search]"));
    assert!(made.value.served().is_empty());
}

#[test]
fn the_tool_server_answers_every_method() {
    let server = ToolServer::new(&tools(json!([tool("f")]), &[]));
    let now = |message: Value| match server.answer(&message) {
        ServerAnswer::Now(answer) => answer,
        ServerAnswer::Held(call) => panic!("{call:?}"),
    };
    let opened = now(json!({ "id": 0, "method": "initialize", "params": { "protocolVersion": "x" } }));
    assert_eq!(opened["result"]["protocolVersion"], "x");
    let listed = now(json!({ "id": 1, "method": "tools/list" }));
    assert_eq!(listed["result"]["tools"][0]["annotations"]["readOnlyHint"], true);
    assert_eq!(now(json!({ "id": 2, "method": "ping" }))["result"], json!({}));
    assert_eq!(now(json!({ "method": "notifications/initialized" }))["result"], json!({}));
    assert_eq!(now(json!({ "id": 3, "method": "resources/list" }))["error"]["code"], -32601);
    assert_eq!(now(json!({ "id": 4, "method": "tools/call", "params": {} }))["error"]["code"], -32602);
    let meta = json!({ "claudecode/toolUseId": "toolu_A" });
    let call = json!({ "id": 7, "method": "tools/call", "params": { "name": "f", "_meta": meta } });
    let ServerAnswer::Held(held) = server.answer(&call) else { panic!("a held call") };
    assert_eq!(held.call, "toolu_A");
    let answer = call_answer(&held, &json!([{ "type": "text", "text": "ok" }]), ToolOutcome::Success);
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(7), &json!(false)));
}

#[test]
fn results_become_mcp_content_only_if_that_is_exact() {
    let text = json!([{ "type": "text", "text": "t" }]);
    let image =
        json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA" } }]);
    let linked = json!([{ "type": "image", "source": { "type": "url", "url": "https://x" } }]);
    assert_eq!(result_content(&json!({ "content": "t" })), Some(text.clone()));
    assert_eq!(result_content(&json!({ "content": text, "is_error": true })), Some(text));
    let said = json!([{ "type": "image", "data": "AA", "mimeType": "image/png" }]);
    assert_eq!(result_content(&json!({ "content": image })), Some(said));
    for inexact in [
        json!({ "content": image, "is_error": true }),
        json!({ "content": linked }),
        json!({ "content": [] }),
    ] {
        assert_eq!(result_content(&inexact), None, "{inexact}");
    }
}

#[test]
fn a_conversation_becomes_lines() {
    let known = tools(json!([tool("f")]), &[]);
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "/help", "cache_control": {} }] },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "c1", "name": "f", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1", "content": "r" }] },
        { "role": "user", "content": "and now?" },
    ]);
    let Value::Array(messages) = messages else { panic!() };
    let made = script(messages, &known, HiddenSteps::default()).unwrap();
    assert!(made.losses.is_empty());
    let expected = HistoryScript {
        history: vec![
            HistoryLine::User(json!([{ "type": "text", "text": "/help" }, { "type": "text", "text": "" }])),
            HistoryLine::Assistant(
                json!([{ "type": "tool_use", "id": "c1", "name": "mcp__client__f", "input": {} }]),
            ),
        ],
        last: json!([
            { "type": "tool_result", "tool_use_id": "c1", "content": "r" },
            { "type": "text", "text": "and now?" },
        ]),
    };
    assert_eq!(made.value, expected);
}

fn calls_then(content: &Value) -> Result<HistoryScript, String> {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} });
    let messages = vec![
        json!({ "role": "user", "content": "go" }),
        json!({ "role": "assistant", "content": [call("a"), call("b")] }),
        json!({ "role": "user", "content": content }),
    ];
    script(messages, &AgentTools::default(), HiddenSteps::default())
        .map(|made| made.value)
        .map_err(|error| error.message)
}

#[test]
fn partial_results_are_an_error_that_names_the_missing_calls() {
    // B5
    let error =
        calls_then(&json!([{ "type": "tool_result", "tool_use_id": "a", "content": "r" }])).unwrap_err();
    assert!(error.contains("calls b:"), "{error}");
}

#[test]
fn abandoned_calls_get_an_error_result() {
    let made = calls_then(&json!("forget it")).unwrap();
    let ids: Vec<&Value> = made.last.as_array().unwrap().iter().map(|block| &block["tool_use_id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &Value::Null]);
}

#[test]
fn an_agent_cannot_continue_an_assistant_message() {
    let messages =
        vec![json!({ "role": "user", "content": "x" }), json!({ "role": "assistant", "content": "y" })];
    assert!(script(messages, &AgentTools::default(), HiddenSteps::default()).is_err());
}

#[test]
fn hidden_steps_replace_the_message_that_the_client_saw() {
    // B6
    let own = json!({ "type": "tool_use", "id": "b", "name": "Bash", "input": {} });
    let done = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "ok" });
    let steps = vec![
        json!({ "role": "assistant", "content": [own] }),
        json!({ "role": "user", "content": [done("b")] }),
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "Done." }] }),
    ];
    let messages = vec![
        json!({ "role": "user", "content": "go" }),
        json!({ "role": "assistant", "content": "Done." }),
        json!({ "role": "user", "content": "again" }),
    ];
    let unfinished = vec![
        json!({ "role": "assistant", "content": [own] }),
        json!({ "role": "user", "content": [done("b")] }),
    ];
    let by_reply = std::iter::once((0, steps)).collect();
    let made = script(messages, &AgentTools::default(), HiddenSteps { by_reply, unfinished }).unwrap().value;
    assert_eq!(made.history.len(), 6);
    assert_eq!(made.history[1], HistoryLine::Assistant(json!([own])));
    assert_eq!(made.last, json!([done("b")]));
}

#[test]
fn every_line_is_one_complete_json_object() {
    let id = RequestId::new("r1");
    let opening = write::AgentOpening {
        system: write::SystemPrompt::Replace(Vec::new()),
        aliases: vec!["f".into()],
        schema: Some(json!({ "type": "object" })),
    };
    let line: Value = serde_json::from_str(&write::initialize(&id, &opening)).unwrap();
    assert_eq!(line["request"]["systemPrompt"], json!([""]));
    assert_eq!(line["request"]["toolAliases"], json!({ "f": "mcp__client__f" }));
    let quiet = write::quiet_user("u-1", &json!("line\nbreak\u{2028}"));
    assert!(!quiet.contains('\n'));
    assert_eq!(serde_json::from_str::<Value>(&quiet).unwrap()["shouldQuery"], false);
    let said: Value = serde_json::from_str(&write::assistant("a-b", "m", &json!([]))).unwrap();
    assert_eq!(said["message"]["id"], "msg_ab");
}
