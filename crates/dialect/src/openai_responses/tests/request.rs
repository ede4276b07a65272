//! Requests of this dialect, read and written back.

use serde_json::{Value, json};
use toolgate_model::{Block, CallKind, Message, Reasoning, Reply, Seal, ToolCall};

use super::{read_request, sent};
use crate::ClientDialect;
use crate::openai_responses::{DIALECT, ID};
use toolgate_conformance::equivalence::{Side, difference};

fn same(body: Value) {
    let again = sent(&read_request(&body));
    assert_eq!(difference(ID, Side::Request, body, again), None);
}

fn with_input(input: Value) -> Value {
    json!({ "model": "m", "input": input })
}

#[test]
fn every_item_round_trips_in_order() {
    let items = [
        json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "" }]),
        json!([{ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "be kind" }] },
               { "role": "user", "content": [
                   { "type": "input_text", "text": "look" },
                   { "type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low" },
                   { "type": "input_image", "file_id": "file_1", "detail": "auto" },
                   { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA==" },
                   { "type": "input_file", "file_url": "https://example.org/a.pdf" },
                   { "type": "input_audio", "input_audio": { "data": "AA==", "format": "wav" } },
                   { "type": "input_hologram", "depth": 3 }] }]),
        json!([{ "role": "user", "content": "hi" },
               { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }],
                 "encrypted_content": "secret" },
               { "type": "message", "id": "msg_1", "status": "completed", "phase": "commentary", "role": "assistant",
                 "content": [{ "type": "output_text", "text": "a", "annotations": [{ "type": "file_path" }] },
                             { "type": "refusal", "refusal": "no" }] },
               { "type": "message", "id": "msg_2", "status": "completed", "role": "assistant",
                 "content": [{ "type": "output_text", "text": "b", "annotations": [] }] },
               { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}",
                 "namespace": "n" },
               { "type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** begin" },
               { "type": "web_search_call", "id": "ws_1", "status": "completed", "action": { "type": "search" } },
               { "type": "function_call_output", "call_id": "c1", "output": "" },
               { "type": "custom_tool_call_output", "call_id": "c2",
                 "output": [{ "type": "input_text", "text": "done" },
                            { "type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto" }] }]),
        json!([{ "type": "item_reference", "id": "msg_9" }, { "id": "msg_8" },
               { "type": "function_call_output", "call_id": "stored", "output": "x" }]),
        json!([{ "type": "reasoning", "id": "rs_1", "summary": [],
                 "content": [{ "type": "reasoning_text", "text": "raw" }] },
               { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "no id" }] },
               { "role": "critic", "content": "so-so" },
               { "type": "message", "role": "assistant", "content": [] }]),
        json!("just a text"),
    ];
    for input in items {
        let body = with_input(input);
        let again = sent(&read_request(&body));
        let as_items = match body["input"].as_str() {
            Some(text) => json!([{ "role": "user", "content": text }]),
            None => body["input"].clone(),
        };
        assert_eq!(difference(ID, Side::Request, with_input(as_items), again), None);
    }
}

#[test]
fn every_setting_round_trips() {
    same(json!({
        "model": "m", "input": [{ "role": "user", "content": "hi" }], "instructions": "be brief", "stream": true,
        "tools": [
            { "type": "function", "name": "f", "description": "d", "strict": true,
              "parameters": { "z": 1, "a": { "type": "object" } }, "defer_loading": true },
            { "type": "custom", "name": "c", "format": { "type": "grammar", "syntax": "lark", "definition": "x" } },
            { "type": "web_search", "search_context_size": "low" }],
        "tool_choice": { "type": "function", "name": "f" }, "parallel_tool_calls": false,
        "max_output_tokens": 3, "temperature": 0.5, "top_p": 1, "user": "u", "store": true,
        "reasoning": { "effort": "low", "summary": "auto", "context": "auto" },
        "text": { "verbosity": "low", "format": { "type": "json_schema", "name": "n", "schema": { "b": 1, "a": 2 } } },
        "previous_response_id": "resp_1", "include": ["file_search_call.results"], "metadata": { "a": "b" },
        "truncation": "auto", "prompt_cache_key": "k",
    }));
    for choice in [
        json!("auto"),
        json!("none"),
        json!("required"),
        json!({ "type": "custom", "name": "c" }),
        json!({ "type": "allowed_tools", "mode": "auto", "tools": [] }),
    ] {
        same(json!({ "model": "m", "input": [], "tool_choice": choice }));
    }
    same(
        json!({ "model": "m", "input": [], "text": { "format": { "type": "json_object" } }, "store": false }),
    );
    same(json!({ "model": "m", "input": [], "text": { "format": { "type": "text" } } }));
}

/// T37
#[test]
fn a_schema_keeps_its_bytes() {
    let body = br#"{"model":"m","input":[],"tools":[{"type":"function","name":"f","parameters":{"z": 1.0, "a":[ ]}}]}"#;
    let request = DIALECT.read_request(body).expect("the request is valid").value;
    let written = crate::translation::written(&DIALECT, &request).body;
    let text = String::from_utf8(written).expect("the body is text");
    assert!(text.contains(r#"{"z": 1.0, "a":[ ]}"#), "{text}");
}

#[test]
fn consecutive_output_items_form_one_message() {
    let request = read_request(&with_input(json!([
        { "role": "user", "content": "hi" },
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret" },
        { "type": "function_call", "call_id": "c1", "name": "f", "arguments": { "a": 1 } },
        { "type": "function_call_output", "call_id": "c1", "output": "x" },
    ])));
    let [Message::User(_), Message::Assistant(assistant), Message::ToolResults(results)] =
        request.messages.as_slice()
    else {
        panic!("{:?}", request.messages)
    };
    let seal = Seal { id: Some("rs_1".into()), ..Seal::new(ID, "encrypted", "secret") };
    let reasoning = Block::Reasoning(Reasoning { seal: Some(seal), ..Reasoning::default() });
    // T34: the arguments are an object.
    let call = Block::ToolCall(ToolCall {
        id: "c1".into(),
        name: "f".into(),
        kind: CallKind::Function,
        arguments: "{ \"a\": 1 }".replace(' ', ""),
        extras: toolgate_model::Extras::NONE,
    });
    assert_eq!(assistant.content, [reasoning, call]);
    assert_eq!(results.results.len(), 1);
}

/// T25
#[test]
fn a_result_for_no_call_becomes_text_unless_the_host_may_know_the_call() {
    let orphan = json!([{ "type": "function_call_output", "call_id": "gone", "output": "x" }]);
    let read = DIALECT.read_request(with_input(orphan.clone()).to_string().as_bytes()).expect("valid");
    assert!(matches!(read.value.messages.as_slice(), [Message::User(_)]));
    assert!(!read.losses.is_empty());
    for (name, value) in [("previous_response_id", json!("resp_1")), ("conversation", json!("conv_1"))] {
        let mut body = with_input(orphan.clone());
        body[name] = value;
        assert!(matches!(read_request(&body).messages.as_slice(), [Message::ToolResults(_)]), "{name}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        (json!({ "input": "x" }), "model", "model: field required"),
        (
            with_input(json!([{ "type": "function_call", "call_id": "c" }])),
            "input[0].name",
            "input[0].name: field required",
        ),
        (
            json!({ "model": "m", "tool_choice": "maybe" }),
            "tool_choice",
            "tool_choice: `maybe` is unknown: use `auto`, `required`, `none` or an object",
        ),
    ];
    for (body, param, message) in cases {
        let error = DIALECT.read_request(body.to_string().as_bytes()).expect_err("the request is wrong");
        assert_eq!(
            (error.status(), error.param.as_deref(), error.message.as_str()),
            (400, Some(param), message)
        );
    }
}

#[test]
fn a_stored_reply_is_continued() {
    let first = read_request(&json!({ "model": "m", "input": "2+2?", "instructions": "be brief" }));
    let foreign =
        Seal { owner: "elsewhere".into(), kind: "signature".into(), id: None, data: "proof".into() };
    let reply = Reply {
        blocks: vec![
            Block::Reasoning(Reasoning { seal: Some(foreign.clone()), ..Reasoning::default() }),
            Block::ToolCall(ToolCall {
                id: "c1".into(),
                name: "add".into(),
                kind: CallKind::Function,
                arguments: "{}".into(),
                extras: toolgate_model::Extras::NONE,
            }),
        ],
        ..Reply::default()
    };
    let stored = DIALECT.remember(&first, &reply).expect("replies can be continued");
    let output = json!([{ "type": "function_call_output", "call_id": "c1", "output": "4" }]);
    let mut second =
        read_request(&json!({ "model": "m", "input": output, "previous_response_id": "resp_1" }));
    DIALECT.recall(&mut second, &stored).expect("it was stored by us");
    assert_eq!(second.previous, None);
    let [Message::User(_), Message::Assistant(assistant), Message::ToolResults(_)] =
        second.messages.as_slice()
    else {
        panic!("{:?}", second.messages)
    };
    // The proof of another dialect's host survives the store.
    assert!(matches!(&assistant.content[0], Block::Reasoning(reasoning) if reasoning.seal == Some(foreign)));
    assert!(DIALECT.recall(&mut second, "no JSON").is_err());
}
