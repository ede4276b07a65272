//! Requests of other dialects, written for a host of this one.

use serde_json::{Value, json};
use toolgate_model::{
    AssistantMessage, Block, CallKind, CustomTool, DialectId, Document, Extras, FunctionTool, Image,
    JsonText, Message, Part, Reasoning, ReasoningRequest, Seal, Source, Tool, ToolCall, ToolOutcome,
    ToolResult, ToolResults, TurnRequest, UserMessage,
};

use super::sent;
use crate::openai_responses::DIALECT;

const ELSEWHERE: DialectId = DialectId { name: "elsewhere", provider: "elsewhere" };

fn user(content: Vec<Part>) -> Message {
    Message::User(UserMessage { content, extras: Extras::NONE })
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        kind: CallKind::Function,
        arguments: arguments.into(),
        extras: Extras::NONE,
    })
}

fn assistant(content: Vec<Block>) -> Message {
    Message::Assistant(AssistantMessage { content, extras: Extras::NONE })
}

fn result(id: &str, content: Vec<Part>, outcome: ToolOutcome) -> Message {
    let result =
        ToolResult { call: id.into(), kind: CallKind::Function, content, outcome, extras: Extras::NONE };
    Message::ToolResults(ToolResults { results: vec![result] })
}

fn image() -> Part {
    let source = Source::Base64 { media_type: "image/png".into(), data: "AA==".into() };
    Part::Image(Image::new(source))
}

#[test]
fn a_translation_writes_out_the_defaults_of_other_dialects() {
    let mut request = TurnRequest::new("m", vec![user(vec![Part::text("hi")])]);
    request.reasoning =
        Some(ReasoningRequest { mode: Some("enabled".into()), budget: Some(2_000), ..Default::default() });
    request.max_output = Some(1);
    request.tools = vec![Tool::Function(FunctionTool {
        name: "f".into(),
        description: None,
        schema: None,
        strict: None,
        extras: Extras::NONE,
    })];
    let expect = json!({
        "model": "m",
        "input": [{ "type": "message", "role": "user", "content": "hi" }],
        "tools": [{ "type": "function", "name": "f", "strict": false,
                    "parameters": { "type": "object", "properties": {} } }],
        "max_output_tokens": 16,
        "reasoning": { "effort": "low", "summary": "auto" },
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    assert_eq!(sent(&request), expect);
}

/// T9 T25 T26
#[test]
fn foreign_calls_results_and_reasoning_are_written() {
    let reasoning =
        Reasoning { seal: Some(Seal::new(ELSEWHERE, "signature", "proof")), ..Reasoning::default() };
    let request = TurnRequest::new(
        "m",
        vec![
            assistant(vec![Block::Reasoning(reasoning), call("c1", "f", ""), call("c2", "f", "{}")]),
            result("c1", vec![Part::text("no such file")], ToolOutcome::Error),
            result("c2", vec![Part::text("see"), image()], ToolOutcome::Success),
        ],
    );
    let written = crate::translation::written(&DIALECT, &request);
    assert!(written.losses.contains("messages[].reasoning"));
    let body: Value = serde_json::from_slice(&written.body).expect("the body is JSON");
    let expect = json!([
        { "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}" },
        { "type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "[error] no such file" },
        { "type": "function_call_output", "call_id": "c2", "output": [
            { "type": "input_text", "text": "see" },
            { "type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto" }] },
    ]);
    assert_eq!(body["input"], expect);
}

/// T23 T24
#[test]
fn ids_and_names_fit_the_host() {
    let long = "x".repeat(80);
    let request = TurnRequest::new(
        "m",
        vec![
            assistant(vec![call(&long, "files/read", "{}")]),
            result(&long, Vec::new(), ToolOutcome::Success),
        ],
    );
    let written = crate::translation::written(&DIALECT, &request);
    let body: Value = serde_json::from_slice(&written.body).expect("the body is JSON");
    let id = body["input"][0]["call_id"].as_str().expect("a call has an id");
    assert!(id.len() <= 64);
    assert_eq!(body["input"][1]["call_id"], id);
    let name = body["input"][0]["name"].as_str().expect("a call has a name");
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
    assert_eq!(written.names.to_client(name.into()).as_str(), "files/read");
}

#[test]
fn unsupported_fields_are_reported() {
    let file = Source::File { provider: "elsewhere", id: "f".into() };
    let text =
        Document { source: Source::Text("body".into()), name: Some("title".into()), extras: Extras::NONE };
    let mut request = TurnRequest::new(
        "m",
        vec![user(vec![
            Part::Document(Document { source: file, name: None, extras: Extras::NONE }),
            Part::Document(text),
        ])],
    );
    request.sampling.stop = vec!["END".into()];
    request.sampling.top_k = Some(5.into());
    request.samples = Some(2);
    let written = crate::translation::written(&DIALECT, &request);
    for place in ["stop", "top_k", "n", "messages[].content[document]"] {
        assert!(written.losses.contains(place), "{place}: {:?}", written.losses);
    }
    let body: Value = serde_json::from_slice(&written.body).expect("the body is JSON");
    assert_eq!(body["input"][0]["content"], json!([{ "type": "input_text", "text": "title\n\nbody" }]));
}

#[test]
fn a_nested_grammar_is_written_flat() {
    let format = json!({ "type": "grammar", "grammar": { "syntax": "lark", "definition": "x" } });
    let mut request = TurnRequest::new("m", Vec::new());
    request.tools = vec![Tool::Custom(CustomTool {
        name: "c".into(),
        description: None,
        format: Some(JsonText::from_value(&format)),
        extras: Extras::NONE,
    })];
    let expect = json!({ "type": "grammar", "syntax": "lark", "definition": "x" });
    assert_eq!(sent(&request)["tools"][0]["format"], expect);
}
