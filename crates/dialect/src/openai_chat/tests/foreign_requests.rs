//! Requests of other dialects, written for a host of this one.

use serde_json::{Value, json};
use toolgate_model::{
    AssistantMessage, Block, CallKind, Choice, CustomTool, DialectId, Document, Extras, Fields, FunctionTool,
    Image, JsonText, Message, Opaque, Part, Reasoning, ReasoningKind, ReasoningPart, ReasoningRequest, Seal,
    Source, Text, Tool, ToolCall, ToolOutcome, ToolResult, ToolResults, TurnRequest, UserMessage,
};

use super::{DIALECT, json, no_extras};
use crate::WrittenRequest;

const OTHER: DialectId = DialectId { name: "other", provider: "other" };

fn write(request: &TurnRequest) -> (Value, WrittenRequest) {
    let written = crate::translation::written(&DIALECT, request);
    (json(&written.body), written)
}

fn user(content: Vec<Part>) -> Message {
    Message::User(UserMessage { content, extras: no_extras() })
}

fn assistant(content: Vec<Block>) -> Message {
    Message::Assistant(AssistantMessage { content, extras: no_extras() })
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        kind: CallKind::Function,
        arguments: arguments.into(),
        extras: no_extras(),
    })
}

fn result(id: &str, outcome: ToolOutcome, content: Vec<Part>) -> ToolResult {
    ToolResult { call: id.into(), kind: CallKind::Function, content, outcome, extras: no_extras() }
}

fn image() -> Part {
    let source = Source::Base64 { media_type: "image/png".into(), data: "aGk=".into() };
    Part::Image(Image::new(source))
}

fn function(name: &str, schema: Option<&str>) -> Tool {
    Tool::Function(FunctionTool {
        name: name.into(),
        description: None,
        schema: schema.map(|schema| JsonText::parse(schema).unwrap()),
        strict: None,
        extras: no_extras(),
    })
}

#[test]
fn system_text_leads_and_the_limit_suits_the_model() {
    let mut request = TurnRequest::new("llama-3", vec![user(vec![Part::text("hi")])]);
    request.system = vec![Part::text("a"), Part::text("b")];
    request.max_output = Some(9);
    request.sampling.top_k = Some(4.into());
    request.sampling.stop = (0..6).map(|at| at.to_string()).collect();
    let (body, written) = write(&request);
    assert_eq!(
        body,
        json!({"model": "llama-3", "max_tokens": 9, "stop": ["0", "1", "2", "3"], "messages": [
            {"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "hi"}]})
    );
    assert!(written.losses.contains("top_k") && written.losses.contains("stop"));
    for (model, field) in [
        ("gpt-5-mini", "max_completion_tokens"),
        ("openai/o3", "max_completion_tokens"),
        ("gpt-4o", "max_tokens"),
    ] {
        request.model = model.into();
        assert_eq!(write(&request).0[field], 9, "{model}");
    }
}

#[test]
fn effort_follows_the_budget_where_the_model_reasons() {
    let check = |model: &str, reasoning: ReasoningRequest, expect: Value| {
        let mut request = TurnRequest::new(model, vec![user(vec![Part::text("hi")])]);
        request.reasoning = Some(reasoning);
        assert_eq!(write(&request).0["reasoning_effort"], expect, "{model}");
    };
    let budget = |budget| ReasoningRequest { budget: Some(budget), ..Default::default() };
    check("o3", budget(1024), json!("low"));
    check("o3", budget(10_000), json!("medium"));
    check("gpt-oss-20b", budget(32_000), json!("high"));
    check("llama-3", budget(32_000), Value::Null);
    check("o3", ReasoningRequest { effort: Some("minimal".into()), ..budget(32_000) }, json!("low"));
    check("gpt-4o", budget(1024), Value::Null);
    check("o3", ReasoningRequest { mode: Some("disabled".into()), ..Default::default() }, json!("low"));
    check("gpt-5.1", ReasoningRequest { mode: Some("disabled".into()), ..Default::default() }, json!("none"));
}

// T25
#[test]
fn results_follow_their_calls_in_order() {
    let request = TurnRequest::new(
        "m",
        vec![
            assistant(vec![call("c1", "f", "{}"), Block::Text(Text::new("and")), call("c2", "f", "")]),
            user(vec![Part::text("meanwhile")]),
            Message::ToolResults(ToolResults {
                results: vec![
                    result("c2", ToolOutcome::Error, vec![Part::text("bad")]),
                    result("c1", ToolOutcome::Success, vec![Part::text("see"), image()]),
                ],
            }),
            user(vec![Part::text("go on")]),
        ],
    );
    let (body, written) = write(&request);
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}); // T9
    assert_eq!(
        body["messages"],
        json!([
            {"role": "assistant", "content": "and", "tool_calls": [call("c1"), call("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": "see\n[image: see the next user message]"},
            {"role": "tool", "tool_call_id": "c2", "content": "[error] bad"},
            {"role": "user", "content": [
                {"type": "text", "text": "Attached to the result of tool call c1:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
            {"role": "user", "content": "meanwhile"},
            {"role": "user", "content": "go on"},
        ])
    );
    assert!(written.losses.contains("messages[].tool_result.is_error"));
}

#[test]
fn an_empty_result_is_kept() {
    let results = ToolResults { results: vec![result("c1", ToolOutcome::Success, Vec::new())] };
    let request =
        TurnRequest::new("m", vec![assistant(vec![call("c1", "f", "{}")]), Message::ToolResults(results)]);
    assert_eq!(
        write(&request).0["messages"][1],
        json!({"role": "tool", "tool_call_id": "c1", "content": ""})
    );
}

// T27
#[test]
fn only_the_hosts_own_reasoning_returns_to_it() {
    let reasoning = |owner: DialectId, text: &str| {
        Block::Reasoning(Reasoning {
            parts: (!text.is_empty())
                .then(|| ReasoningPart { kind: ReasoningKind::Full, text: text.into() })
                .into_iter()
                .collect(),
            seal: Some(Seal::new(owner, "signature", "abc")),
            extras: no_extras(),
        })
    };
    let texts = [
        Block::Text(Text::new("one")),
        Block::Text(Text::new(" two")),
        call("c1", "f", "{}"),
        Block::Text(Text::new("three")),
    ];
    let mut content = vec![reasoning(crate::openai_chat::ID, "hm"), reasoning(OTHER, "foreign")];
    content.extend(texts);
    let (body, written) = write(&TurnRequest::new("m", vec![assistant(content)]));
    assert_eq!(body["messages"][0]["reasoning_content"], "hm");
    assert_eq!(body["messages"][0]["content"], "one two\n\nthree");
    assert!(written.losses.contains("messages[].reasoning"));
}

// T23, T24
#[test]
fn ids_and_names_fit_the_host() {
    let (long_id, name) = ("x".repeat(100), "files/read.all");
    let mut request = TurnRequest::new(
        "m",
        vec![
            assistant(vec![call(&long_id, name, "{}")]),
            Message::ToolResults(ToolResults {
                results: vec![result(&long_id, ToolOutcome::Success, vec![Part::text("1")])],
            }),
            assistant(vec![call(&long_id, name, "{}")]),
            Message::ToolResults(ToolResults {
                results: vec![result(&long_id, ToolOutcome::Success, vec![Part::text("2")])],
            }),
        ],
    );
    request.tools = vec![function(name, None)];
    request.tool_choice.choice = Some(Choice::Named(name.into(), CallKind::Function));
    let (body, written) = write(&request);
    let host_name = body["tools"][0]["function"]["name"].as_str().unwrap();
    assert!(host_name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && host_name.len() <= 64);
    assert_eq!(written.names.to_client(host_name.into()).as_str(), name);
    assert_eq!(body["tool_choice"]["function"]["name"], host_name);
    assert_eq!(body["messages"][0]["tool_calls"][0]["function"]["name"], host_name);
    let id = |message: usize| body["messages"][message]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id(0).len() <= 64 && id(2).len() <= 64);
    assert_ne!(id(0), id(2));
    assert_eq!(
        (&body["messages"][1]["tool_call_id"], &body["messages"][3]["tool_call_id"]),
        (&json!(id(0)), &json!(id(2)))
    );
}

// T24, T37
#[test]
fn schemas_get_an_object_at_their_root_and_acceptable_ones_are_kept() {
    let mut request = TurnRequest::new("m", vec![user(vec![Part::text("hi")])]);
    let exact = r#"{"z": 1,  "type":"object", "properties": {}, "a": 2}"#;
    request.tools =
        vec![function("a", None), function("b", Some(r#"{"anyOf": []}"#)), function("c", Some(exact))];
    let (body, written) = write(&request);
    assert_eq!(body["tools"][0]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    assert_eq!(body["tools"][1]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    assert!(String::from_utf8(written.body).unwrap().contains(exact));
}

#[test]
fn custom_tools_become_functions_and_documents_files() {
    let document = |source, name: Option<&str>| {
        Part::Document(Document { source, name: name.map(str::to_owned), extras: no_extras() })
    };
    let pdf = Source::Base64 { media_type: "application/pdf".into(), data: "aGk=".into() };
    let elsewhere = Source::File { provider: "other", id: "f".into() };
    let mut request = TurnRequest::new(
        "m",
        vec![user(vec![
            document(pdf, None),
            document(Source::Text("words".into()), Some("notes")),
            document(Source::Url("https://x".into()), None),
            document(elsewhere, None),
        ])],
    );
    request.tools = vec![
        Tool::Custom(CustomTool {
            name: "c".into(),
            description: None,
            format: Some(JsonText::parse(r#"{"type":"grammar","syntax":"lark","definition":"x"}"#).unwrap()),
            extras: no_extras(),
        }),
        Tool::Provider(Opaque { dialect: OTHER, kind: "search".into(), fields: Fields::new() }),
    ];
    let (body, written) = write(&request);
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,aGk="}},
            {"type": "text", "text": "notes\n\nwords"},
            {"type": "text", "text": "[document: https://x]"},
            {"type": "text", "text": "[document not available]"},
        ])
    );
    assert_eq!(body["tools"][0]["function"]["parameters"]["required"], json!(["input"]));
    for place in ["tools[search]", "tools[c].format", "messages[].document"] {
        assert!(written.losses.contains(place), "{place}: {:?}", written.losses);
    }
}

// T30, T31
#[test]
fn foreign_fields_are_reported_and_a_choice_without_tools_is_dropped() {
    let mut request = TurnRequest::new("m", vec![user(vec![Part::text("hi")])]);
    request.extras = Extras::of(OTHER, Fields::from_iter([("context_management".to_owned(), json!(1))]));
    request.tool_choice.choice = Some(Choice::Auto);
    let (body, written) = write(&request);
    assert_eq!(body, json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}));
    assert!(written.losses.contains("context_management"));
}
