//! Requests of this dialect, read and written back.

use serde_json::{Value, json};
use toolgate_model::{
    Block, CallKind, Choice, Delivery, ErrorKind, Message, Part, Source, SystemRole, Tool, UsageReport,
};

use super::{DIALECT, json, read_request};
use crate::ClientDialect as _;
use toolgate_conformance::equivalence::{Side, difference};

/// The request round trips without losses.
fn check(mut fields: Value) {
    for (name, default) in [("model", json!("m")), ("messages", json!([{"role": "user", "content": "hi"}]))] {
        if fields.get(name).is_none() {
            fields[name] = default;
        }
    }
    let read = DIALECT.read_request(fields.to_string().as_bytes()).unwrap();
    assert_eq!(read.losses.iter().count(), 0, "{:?}", read.losses);
    let written = crate::translation::written(&DIALECT, &read.value);
    assert_eq!(written.losses.iter().count(), 0, "{:?}", written.losses);
    let found = difference(super::super::ID, Side::Request, fields, json(&written.body));
    assert_eq!(found, None, "{}", String::from_utf8_lossy(&written.body));
}

#[test]
fn settings_keep_their_spelling() {
    check(json!({"max_tokens": 5, "stop": "a", "user": "u"}));
    check(json!({"max_completion_tokens": 5, "stop": ["a", "b"], "safety_identifier": "u"}));
    check(json!({"max_completion_tokens": 5, "max_tokens": 6, "user": "u", "safety_identifier": "s"}));
    check(
        json!({"temperature": 0.5, "top_p": 1, "top_k": 4, "frequency_penalty": 0.1, "presence_penalty": 0.2,
        "seed": 3, "n": 2, "store": true, "reasoning_effort": "high", "service_tier": "flex", "metadata": {"a": "b"},
        "logprobs": true, "top_logprobs": 2, "verbosity": "low", "prompt_cache_key": "k",
        "prompt_cache_retention": "24h"}),
    );
    check(json!({"logprobs": 3}));
    check(json!({"stream": true, "stream_options": {"include_usage": true, "include_obfuscation": false}}));
    check(json!({"stream": true, "stream_options": {"include_usage": false}}));
    check(json!({"stream": true}));
    check(json!({"response_format": {"type": "text"}}));
    check(json!({"response_format": {"type": "json_object"}}));
    check(json!({"response_format": {"type": "grammar", "grammar": "root ::= [a-z]"}}));
    check(json!({"response_format": {"type": "json_schema", "json_schema":
        {"name": "n", "description": "d", "schema": {"b": 1, "a": 2}, "strict": true, "x": 1}}}));
}

// Compatible hosts have switches of their own.
#[test]
fn reasoning_switches_are_read_and_written_back() {
    let check_read = |fields: Value, expect: [Option<&str>; 3], budget: Option<u64>| {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let reasoning = read_request(&body).reasoning.unwrap_or_default();
        let found = [&reasoning.mode, &reasoning.effort, &reasoning.summary].map(|text| text.as_deref());
        assert_eq!((found, reasoning.budget), (expect, budget), "{fields}");
        check(body);
    };
    let (on, off) = (Some("enabled"), Some("disabled"));
    check_read(json!({"reasoning_effort": "none"}), [None, Some("none"), None], None);
    check_read(json!({"reasoning": {"effort": "high"}}), [None, Some("high"), None], None);
    check_read(json!({"reasoning": {"enabled": true}}), [on, None, None], None);
    check_read(json!({"reasoning": {"enabled": false}}), [off, None, None], None);
    check_read(
        json!({"reasoning": {"max_tokens": 900, "summary": "auto"}}),
        [None, None, Some("auto")],
        Some(900),
    );
    check_read(json!({"reasoning": {"effort": "low", "exclude": true}}), [None, Some("low"), None], None);
    check_read(json!({"thinking": {"type": "disabled"}}), [off, None, None], None);
    check_read(json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}), [on, None, None], Some(2000));
    check_read(
        json!({"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        [on, Some("max"), None],
        None,
    );
    check_read(json!({"enable_thinking": false}), [off, None, None], None);
    check_read(json!({"enable_thinking": true, "thinking_budget": 500}), [on, None, None], Some(500));
    check_read(json!({"thinking_budget": 0}), [off, None, None], None);
    check_read(json!({"chat_template_kwargs": {"enable_thinking": false}}), [off, None, None], None);
    check_read(json!({"chat_template_kwargs": {"thinking": true, "x": 1}}), [on, None, None], None);
    check_read(json!({"reasoning": "yes"}), [None, None, None], None);
}

#[test]
fn tools_and_choices_round_trip() {
    let function = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"z": 1, "a": 2}, "strict": true}});
    let bare = json!({"type": "function", "function": {"name": "g"}, "cache": 1});
    let custom = json!({"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"definition": "x", "syntax": "lark"}}}});
    let other = json!({"type": "browser", "depth": 3});
    check(json!({"tools": [function, bare, custom, other], "parallel_tool_calls": false}));
    for choice in [
        json!("none"),
        json!("auto"),
        json!("required"),
        json!({"type": "function", "function": {"name": "f"}}),
        json!({"type": "custom", "custom": {"name": "c"}}),
        json!("any"),
        json!({"type": "tool", "name": "f"}),
        json!({"type": "function", "name": "f"}),
        json!({"type": "any"}),
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}}),
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
            {"type": "custom", "custom": {"name": "c"}}, {"type": "browser", "depth": 3}]}}),
    ] {
        check(json!({"tools": [function], "tool_choice": choice}));
    }
    check(
        json!({"functions": [{"name": "f", "parameters": {"type": "object"}}], "function_call": {"name": "f"}}),
    );
    check(json!({"functions": [{"name": "f"}], "function_call": "none"}));
}

#[test]
fn every_kind_of_message_round_trips() {
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": \"ä\"}"}});
    let custom = json!({"id": "c2", "type": "custom", "custom": {"name": "g", "input": "free text"}});
    check(json!({"messages": [
        {"role": "system", "content": "a", "name": "n"},
        {"role": "developer", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
        {"role": "user", "name": "u", "content": [
            {"type": "text", "text": "look", "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "image_url", "image_url": "https://x/y.png"},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "hologram", "depth": 3}]},
        {"role": "assistant", "content": null, "tool_calls": [call, custom], "reasoning_content": "hm"},
        {"role": "tool", "content": ""},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}], "reasoning": "hm"},
        {"role": "assistant", "content": "b", "reasoning": "same", "reasoning_content": "same", "audio": {"id": "a1"}},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "a"}]},
        {"role": "assistant", "refusal": "I will not"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "prefill"}
    ]}));
    check(json!({"functions": [{"name": "f"}], "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "2"}
    ]}));
}

#[test]
fn typed_fields_are_read() {
    let request = read_request(&json!({
        "model": "m", "stream": true, "parallel_tool_calls": false,
        "functions": [{"name": "f"}],
        "messages": [
            {"role": "developer", "content": "a"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}}]},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "lost", "content": "three"}
        ]
    }));
    assert_eq!(request.delivery, Delivery::Stream(UsageReport::Default));
    assert_eq!(request.tool_choice.choice, None::<Choice>); // T31
    assert!(matches!(&request.tools[..], [Tool::Function(tool)] if tool.name.as_str() == "f"));
    let [
        Message::System(system),
        Message::Assistant(assistant),
        Message::ToolResults(results),
        Message::User(orphan),
    ] = &request.messages[..]
    else {
        panic!("{:?}", request.messages)
    };
    assert_eq!(system.role, SystemRole::Developer);
    let calls: Vec<_> = assistant
        .content
        .iter()
        .map(|block| {
            let Block::ToolCall(call) = block else { panic!("{block:?}") };
            (call.kind, call.arguments.as_str())
        })
        .collect();
    assert_eq!(calls, [(CallKind::Function, r#"{"a":1}"#), (CallKind::Custom, "x")]); // T34
    assert_eq!(results.results[0].kind, CallKind::Custom);
    assert_eq!(orphan.content[1], Part::text("three")); // T25
}

#[test]
fn a_file_by_id_belongs_to_its_provider() {
    let part = json!({"type": "file", "file": {"file_id": "file-1"}});
    let request = read_request(&json!({"model": "m", "messages": [{"role": "user", "content": [part]}]}));
    let Message::User(user) = &request.messages[0] else { panic!("no user") };
    let Part::Document(document) = &user.content[0] else { panic!("no document") };
    assert_eq!(document.source, Source::File { provider: "openai", id: "file-1".into() });
}

#[test]
fn an_invalid_request_is_rejected_with_the_path() {
    let check = |body: &str, param: Option<&str>, words: &str| {
        let error = DIALECT.read_request(body.as_bytes()).unwrap_err();
        assert_eq!((error.kind, error.param.as_deref()), (ErrorKind::InvalidRequest, param), "{error}");
        assert!(error.message.contains(words), "{error}");
    };
    check("{", None, "not valid JSON");
    check("[]", None, "cannot be read");
    check(r#"{"messages": []}"#, None, "model");
    check(r#"{"model": "m", "messages": []}"#, Some("messages"), "at least one");
    check(
        r#"{"model": "m", "messages": [{"role": "wizard"}]}"#,
        Some("messages[0]"),
        "unknown role `wizard`",
    );
    check(
        r#"{"model": "m", "messages": [{"role": "user", "content": 3}]}"#,
        Some("messages[0].content"),
        "string or an array",
    );
    check(
        r#"{"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": "a"}"#,
        Some("max_tokens"),
        "expected a number",
    );
    check(
        r#"{"model": "m", "messages": [{"role": "user", "content": "x"}], "tool_choice": "maybe"}"#,
        Some("tool_choice"),
        "maybe",
    );
}
