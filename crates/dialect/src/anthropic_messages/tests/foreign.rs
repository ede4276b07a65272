//! Requests of other dialects, written for a host of this one.

use serde_json::{Number, Value, json};
use toolgate_model::{
    AssistantMessage, Audio, Block, CallKind, Choice, CustomTool, DialectId, Document, Extras, FunctionTool,
    JsonText, Message, OutputFormat, Parallel, Part, Reasoning, ReasoningKind, ReasoningPart,
    ReasoningRequest, SchemaFormat, Seal, Source, SystemMessage, SystemRole, Text, Tool, ToolCall,
    ToolChoice, ToolOutcome, ToolResult, ToolResults, TurnRequest, UserMessage,
};

use super::{request_of, write};
use crate::anthropic_messages::DIALECT;

const OTHER: DialectId = DialectId { name: "other", provider: "other" };

fn user(text: &str) -> Message {
    Message::User(UserMessage { content: vec![Part::text(text)], extras: Extras::NONE })
}

fn system(text: &str) -> Message {
    let content = vec![Part::text(text)];
    Message::System(SystemMessage { role: SystemRole::Developer, content, extras: Extras::NONE })
}

fn assistant(content: Vec<Block>) -> Message {
    Message::Assistant(AssistantMessage { content, extras: Extras::NONE })
}

fn call(id: &str, kind: CallKind, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: "f".into(),
        kind,
        arguments: arguments.into(),
        extras: Extras::NONE,
    })
}

fn results(ids: &[&str]) -> Message {
    let results = ids.iter().map(|id| ToolResult {
        call: (*id).into(),
        kind: CallKind::Function,
        content: vec![Part::text("42")],
        outcome: ToolOutcome::Success,
        extras: Extras::NONE,
    });
    Message::ToolResults(ToolResults { results: results.collect() })
}

fn function(name: &str, schema: Option<&Value>) -> Tool {
    let schema = schema.map(JsonText::from_value);
    Tool::Function(FunctionTool {
        name: name.into(),
        description: None,
        schema,
        strict: None,
        extras: Extras::NONE,
    })
}

#[test]
fn leading_system_messages_become_the_system_prompt() {
    // T29
    let (body, losses) = write(&request_of(vec![system("a"), system("b"), user("hi"), system("c")]));
    assert_eq!(body["system"], json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]));
    assert_eq!(
        body["messages"],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
            { "role": "system", "content": [{ "type": "text", "text": "c" }] },
        ])
    );
    assert_eq!(body["max_tokens"], 8192);
    assert_eq!(losses, Vec::<String>::new());
}

#[test]
fn instructions_alone_become_a_user_message() {
    let (body, losses) = write(&request_of(vec![system("a")]));
    assert_eq!(body["messages"], json!([{ "role": "user", "content": [{ "type": "text", "text": "a" }] }]));
    assert_eq!(losses, ["messages[].system"]);
}

#[test]
fn arguments_become_objects() {
    // T9 T39
    let cases = [
        (CallKind::Function, "", json!({}), 0),
        (CallKind::Function, "null", json!({}), 0),
        (CallKind::Function, r#"{"a":"é"}"#, json!({ "a": "é" }), 0),
        (CallKind::Function, r#"{"a":"#, json!({ "_raw": r#"{"a":"# }), 1),
        (CallKind::Function, "[1]", json!({ "_raw": "[1]" }), 1),
        (CallKind::Custom, "say \"hi\"", json!({ "input": "say \"hi\"" }), 0),
    ];
    for (kind, arguments, input, lost) in cases {
        let (body, losses) = write(&request_of(vec![
            user("hi"),
            assistant(vec![call("a", kind, arguments)]),
            results(&["a"]),
        ]));
        assert_eq!(
            (&body["messages"][1]["content"][0]["input"], losses.len()),
            (&input, lost),
            "{arguments}"
        );
    }
}

#[test]
fn invalid_ids_are_rewritten_alike_for_call_and_result() {
    // T23 T25
    let turn = request_of(vec![
        user("hi"),
        assistant(vec![
            call("functions.Bash:0", CallKind::Function, "{}"),
            call("call_0", CallKind::Function, "{}"),
        ]),
        results(&["call_0", "functions.Bash:0"]),
        assistant(vec![call("call_0", CallKind::Function, "{}")]),
        results(&["call_0"]),
    ]);
    let (body, _) = write(&turn);
    let id = |message: usize, block: usize, field: &str| {
        body["messages"][message]["content"][block][field].as_str().unwrap().to_owned()
    };
    let (first, second, third) = (id(1, 0, "id"), id(1, 1, "id"), id(3, 0, "id"));
    assert_eq!((second.as_str(), third.as_str()), ("call_0", "call_0_2"));
    assert!(first.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
    assert_eq!(
        [id(2, 0, "tool_use_id"), id(2, 1, "tool_use_id"), id(4, 0, "tool_use_id")],
        [first, second, third]
    );
}

#[test]
fn long_tool_names_are_renamed_everywhere() {
    // T24
    let long = format!("mcp/{}", "x".repeat(80));
    let mut turn = request_of(vec![user("hi")]);
    turn.tools = vec![function(&long, None)];
    turn.tool_choice.choice = Some(Choice::Named(long.as_str().into(), CallKind::Function));
    let written = crate::translation::written(&DIALECT, &turn);
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    let name = body["tools"][0]["name"].as_str().unwrap();
    assert!(name.len() <= 128 && !name.contains('/'));
    assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": name }));
    assert_eq!(written.names.to_client(name.into()).as_str(), long);
}

#[test]
fn schemas_get_an_object_at_their_root() {
    // T24
    let cases = [
        (None, json!({ "type": "object", "properties": {} }), 0),
        (Some(json!({ "properties": {} })), json!({ "type": "object", "properties": {} }), 0),
        (Some(json!(true)), json!({ "type": "object", "properties": {} }), 1),
        (Some(json!({ "type": ["object", "null"] })), json!({ "type": "object" }), 1),
        (
            Some(json!({ "anyOf": [
                { "properties": { "a": { "type": "string" } }, "required": ["a", "b"] },
                { "properties": { "b": {} }, "required": ["b"] },
            ] })),
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": {} }, "required": ["b"] }),
            1,
        ),
    ];
    for (schema, expected, lost) in cases {
        let mut turn = request_of(vec![user("hi")]);
        turn.tools = vec![function("f", schema.as_ref())];
        let (body, losses) = write(&turn);
        assert_eq!((&body["tools"][0]["input_schema"], losses.len()), (&expected, lost));
    }
}

#[test]
fn acceptable_schemas_are_sent_byte_for_byte() {
    // T24 T37
    let text = r#"{ "type":"object", "z": 1.0, "a": {"minLength":2} }"#;
    let mut turn = request_of(vec![user("hi")]);
    let schema = Some(JsonText::parse(text).unwrap());
    turn.tools = vec![Tool::Function(FunctionTool {
        name: "f".into(),
        description: None,
        schema,
        strict: Some(false),
        extras: Extras::NONE,
    })];
    let body = String::from_utf8(crate::translation::written(&DIALECT, &turn).body).unwrap();
    assert!(body.contains(text) && body.contains(r#""strict":false"#), "{body}");
}

#[test]
fn custom_tools_take_one_text() {
    let mut turn = request_of(vec![user("hi")]);
    turn.tools = vec![Tool::Custom(CustomTool {
        name: "shell".into(),
        description: Some("d".into()),
        format: Some(JsonText::from_value(&json!({ "type": "grammar", "syntax": "lark" }))),
        extras: Extras::NONE,
    })];
    let (body, losses) = write(&turn);
    assert_eq!(
        body["tools"],
        json!([{ "name": "shell", "description": "d", "input_schema": {
        "type": "object", "properties": { "input": { "type": "string" } }, "required": ["input"],
            "additionalProperties": false } }])
    );
    assert_eq!(losses, ["tools[shell].format"]);
}

#[test]
fn efforts_become_thinking() {
    let effort =
        |effort: &str| ReasoningRequest { effort: Some(effort.into()), ..ReasoningRequest::default() };
    let summary = ReasoningRequest { summary: Some("auto".into()), ..effort("low") };
    let cases = [
        (
            "claude-opus-5",
            effort("high"),
            None,
            json!({ "type": "adaptive", "display": "summarized" }),
            json!({ "effort": "high" }),
            8192,
        ),
        (
            "claude-opus-5",
            summary,
            None,
            json!({ "type": "adaptive", "display": "summarized" }),
            json!({ "effort": "low" }),
            8192,
        ),
        ("claude-opus-5", effort("none"), None, json!({ "type": "disabled" }), Value::Null, 8192),
        (
            "claude-haiku-4-5",
            effort("low"),
            None,
            json!({ "type": "enabled", "budget_tokens": 2048 }),
            Value::Null,
            10_240,
        ),
        (
            "kimi",
            effort("high"),
            Some(4000),
            json!({ "type": "enabled", "budget_tokens": 3000 }),
            Value::Null,
            4000,
        ),
        ("kimi", effort("high"), Some(1000), Value::Null, Value::Null, 1000),
    ];
    for (model, reasoning, limit, thinking, config, max_tokens) in cases {
        let mut turn = TurnRequest::new(model, vec![user("hi")]);
        turn.reasoning = Some(reasoning);
        turn.max_output = limit;
        let (body, losses) = write(&turn);
        assert_eq!(
            (&body["thinking"], &body["output_config"], &body["max_tokens"]),
            (&thinking, &config, &json!(max_tokens))
        );
        assert_eq!(losses.is_empty(), !thinking.is_null());
    }
}

#[test]
fn thinking_is_dropped_if_earlier_thinking_is_missing() {
    let mut turn = TurnRequest::new(
        "claude-sonnet-4-5",
        vec![user("hi"), assistant(vec![call("a", CallKind::Function, "{}")]), results(&["a"])],
    );
    turn.reasoning = Some(ReasoningRequest { effort: Some("high".into()), ..ReasoningRequest::default() });
    let (body, losses) = write(&turn);
    assert_eq!((body.get("thinking"), losses), (None, vec!["reasoning".to_owned()]));
}

#[test]
fn only_reasoning_signed_by_the_host_is_sent_back() {
    // T26 T28
    let reasoning = |seal: Option<Seal>| {
        let parts = vec![ReasoningPart { kind: ReasoningKind::Full, text: "hm".into() }];
        Block::Reasoning(Reasoning { parts, seal, extras: Extras::NONE })
    };
    let own = Seal::new(super::super::ID, "signature", "sig");
    let content = vec![
        reasoning(None),
        reasoning(Some(Seal::new(OTHER, "encrypted", "x"))),
        reasoning(Some(own)),
        Block::Text(Text::new("ok")),
    ];
    let (body, losses) = write(&request_of(vec![user("hi"), assistant(content)]));
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "hm", "signature": "sig" },
            { "type": "text", "text": "ok" },
        ])
    );
    assert_eq!(losses, ["messages[]", "thinking"]);
}

#[test]
fn a_bare_parallel_flag_forces_nothing() {
    // T31
    let mut turn = request_of(vec![user("hi")]);
    turn.tools = vec![function("f", None)];
    turn.tool_choice = ToolChoice { parallel: Some(Parallel::Forbidden), ..ToolChoice::default() };
    let (body, _) = write(&turn);
    assert_eq!(body["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
}

#[test]
fn unsupported_fields_are_reported() {
    // T30
    let mut turn = request_of(vec![user("hi"), assistant(vec![Block::Text(Text::new(""))])]);
    turn.sampling.seed = Some(Number::from(1));
    turn.sampling.temperature = Number::from_f64(1.7);
    turn.samples = Some(2);
    turn.output = OutputFormat::JsonObject;
    turn.extras.insert(OTHER, "logit_bias", json!({ "50256": -100 }));
    let audio = Part::Audio(Audio { data: "AA==".into(), format: "wav".into(), extras: Extras::NONE });
    let file = Source::File { provider: "other", id: "file-1".into() };
    let document = Part::Document(Document { source: file, name: None, extras: Extras::NONE });
    turn.messages.push(Message::User(UserMessage { content: vec![audio, document], extras: Extras::NONE }));
    let (body, losses) = write(&turn);
    assert_eq!(losses, ["temperature", "seed", "response_format", "audio", "document", "logit_bias", "n"]);
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn a_schema_for_the_answer_is_kept() {
    let mut turn = request_of(vec![user("hi")]);
    turn.output = OutputFormat::JsonSchema(SchemaFormat {
        name: Some("answer".into()),
        description: None,
        schema: JsonText::from_value(&json!({ "type": "object" })),
        strict: None,
        extras: Extras::NONE,
    });
    let (body, losses) = write(&turn);
    assert_eq!(
        body["output_config"],
        json!({ "format": { "type": "json_schema", "schema": { "type": "object", "additionalProperties": false } } })
    );
    assert_eq!(losses, Vec::<String>::new());
}
