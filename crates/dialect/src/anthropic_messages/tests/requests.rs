//! Requests of this dialect, read and written back.

use serde_json::{Value, json};
use toolgate_model::{
    Choice, Delivery, Message, OutputFormat, Parallel, Part, Source, SystemRole, ToolOutcome, UsageReport,
};

use super::{read, refusal, write_back};
use crate::anthropic_messages::{read_count_request, write_count};

/// The request round trips without losses.
fn check_round_trip(request: &Value) {
    let (written, losses) = write_back(&read(request));
    assert_eq!(&written, request);
    assert_eq!(losses, Vec::<String>::new());
}

fn user(content: &Value) -> Value {
    json!({ "role": "user", "content": content })
}

fn with(field: &str, value: Value) -> Value {
    let mut request = json!({
        "model": "claude-opus-5", "max_tokens": 10, "stream": false,
        "messages": [user(&json!([{ "type": "text", "text": "hi" }]))],
    });
    request[field] = value;
    request
}

fn messages(messages: &Value) -> Value {
    with("messages", messages.clone())
}

#[test]
fn every_field_survives() {
    let tool = json!({ "name": "f", "description": "d", "input_schema": { "type": "object", "z": 1, "a": 2 }, "strict": true,
        "cache_control": { "type": "ephemeral" }, "defer_loading": true });
    let fields = [
        ("system", json!([{ "type": "text", "text": "be brief", "cache_control": { "type": "ephemeral" } }])),
        ("system", json!([{ "type": "text", "text": "x-anthropic-billing-header: cc_version=1;" }])), // T29
        ("stop_sequences", json!(["END"])),
        ("temperature", json!(0.5)),
        ("top_p", json!(0.9)),
        ("top_k", json!(40)),
        ("stream", json!(true)),
        ("metadata", json!({ "user_id": "u", "other": 1 })),
        ("thinking", json!({ "type": "enabled", "budget_tokens": 2000 })),
        ("thinking", json!({ "type": "disabled" })),
        ("thinking", json!({ "type": "adaptive", "display": "summarized" })),
        ("output_config", json!({ "effort": "xhigh" })),
        ("output_config", json!({ "effort": "low", "task_budget": { "type": "tokens", "total": 5 } })),
        ("output_config", json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } })),
        ("output_config", json!({ "format": { "type": "regex", "pattern": "a+" } })),
        ("output_format", json!({ "type": "json_schema", "schema": { "type": "object" } })),
        ("output_format", json!({ "type": "regex", "pattern": "a+" })),
        ("service_tier", json!("auto")),
        ("cache_control", json!({ "type": "ephemeral" })),
        ("context_management", json!({ "edits": [{ "type": "clear_tool_uses_20250919" }] })), // T30
        ("tools", json!([tool, { "type": "web_search_20250305", "name": "web_search", "max_uses": 2 }])),
    ];
    for (field, value) in fields {
        check_round_trip(&with(field, value));
    }
}

#[test]
fn every_tool_choice_survives() {
    // T31
    let choices = [
        json!({ "type": "auto" }),
        json!({ "type": "auto", "disable_parallel_tool_use": true }),
        json!({ "type": "any", "disable_parallel_tool_use": false }),
        json!({ "type": "none" }),
        json!({ "type": "tool", "name": "f", "disable_parallel_tool_use": true }),
        json!({ "type": "something_new", "x": 1, "disable_parallel_tool_use": true }),
    ];
    for choice in choices {
        let mut request = with("tools", json!([{ "name": "f", "input_schema": { "type": "object" } }]));
        request["tool_choice"] = choice;
        check_round_trip(&request);
    }
}

#[test]
fn every_block_survives() {
    let given = [
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } }),
        json!({ "type": "image", "source": { "type": "url", "url": "https://x/y.png" }, "transformations": { "a": 1 } }),
        json!({ "type": "image", "source": { "type": "file", "file_id": "file_1" } }),
        json!({ "type": "document", "source": { "type": "base64", "media_type": "application/pdf", "data": "AA==" },
            "title": "t", "citations": { "enabled": true } }),
        json!({ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": "abc" } }),
        json!({ "type": "document", "source": { "type": "url", "url": "https://x/y.pdf" } }),
        json!({ "type": "document", "source": { "type": "content", "content": "abc" }, "title": "t" }),
        json!({ "type": "document", "source": { "type": "content", "content": [
            { "type": "text", "text": "a" }, { "type": "image", "source": { "type": "url", "url": "https://x/y.png" } }] } }),
        json!({ "type": "search_result", "title": "t", "source": "https://x", "content": [{ "type": "text", "text": "a" }],
            "citations": { "enabled": true }, "cache_control": { "type": "ephemeral" } }),
        json!({ "type": "search_result" }),
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==", "new": 1 } }),
        json!({ "type": "container_upload", "file_id": "file_1" }),
        json!({ "type": "text", "text": "é", "cache_control": { "type": "ephemeral", "ttl": "1h" } }),
    ];
    for block in given {
        check_round_trip(&messages(&json!([user(&json!([block]))])));
    }
    let said = json!([
        { "type": "thinking", "thinking": "hm", "signature": "sig" },
        { "type": "redacted_thinking", "data": "xyz" },
        { "type": "text", "text": "ok", "citations": [{ "type": "char_location" }] },
        { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "q": "a" } },
        { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] },
        { "type": "thinking", "thinking": "", "signature": "sig2" }, // T28
        { "type": "tool_use", "id": "toolu_1", "name": "f", "input": { "b": 1, "a": "é" }, "caller": { "type": "direct" } },
    ]);
    check_round_trip(&messages(
        &json!([user(&json!([{ "type": "text", "text": "hi" }])), { "role": "assistant", "content": said }]),
    ));
}

#[test]
fn system_messages_stay_in_place() {
    // T29
    let request = messages(&json!([
        user(&json!([{ "type": "text", "text": "hi" }])),
        { "role": "system", "content": [{ "type": "text", "text": "now be brief" }, { "type": "tool_addition", "tool": {} }] },
    ]));
    check_round_trip(&request);
    let Message::System(system) = &read(&request).messages[1] else { panic!("no system message") };
    assert_eq!((system.role, system.content.len()), (SystemRole::System, 2));
}

#[test]
fn the_billing_header_is_sent_to_anthropic_only() {
    // T29
    let turn = read(&with(
        "system",
        json!([
            { "type": "text", "text": "x-anthropic-billing-header: cc_version=1;" },
            { "type": "text", "text": "You are Claude." },
        ]),
    ));
    assert!(matches!(turn.system[0], Part::Opaque(_)));
    assert_eq!(turn.system[1], Part::text("You are Claude."));
}

#[test]
fn typed_fields_are_read() {
    let mut request = with("tool_choice", json!({ "type": "auto", "disable_parallel_tool_use": true }));
    request["stream"] = json!(true);
    request["metadata"] = json!({ "user_id": "u" });
    request["thinking"] = json!({ "type": "enabled", "budget_tokens": 2000, "display": null });
    request["output_config"] = json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } });
    let turn = read(&request);
    assert_eq!(turn.tool_choice.choice, Some(Choice::Auto));
    assert_eq!(turn.tool_choice.parallel, Some(Parallel::Forbidden));
    assert_eq!(turn.delivery, Delivery::Stream(UsageReport::Default));
    assert_eq!(turn.user.as_deref(), Some("u"));
    assert!(matches!(turn.output, OutputFormat::JsonSchema(_)));
    let older = with("output_format", json!({ "type": "json_schema", "schema": { "type": "object" } }));
    assert!(matches!(read(&older).output, OutputFormat::JsonSchema(_)));
    let unknown_choice =
        with("tool_choice", json!({ "type": "something_new", "disable_parallel_tool_use": true }));
    assert_eq!(read(&unknown_choice).tool_choice.parallel, Some(Parallel::Forbidden));
    let reasoning = turn.reasoning.unwrap();
    assert_eq!((reasoning.mode.as_deref(), reasoning.budget), (Some("enabled"), Some(2000)));
    assert!(reasoning.extras.is_empty() && turn.extras.is_empty());
}

fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "f", "input": {} })
}

fn result(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": "42", "is_error": false })
}

#[test]
fn results_and_text_of_one_turn_are_split_and_joined_again() {
    // T25
    let request = messages(&json!([
        user(&json!("go")),
        { "role": "assistant", "content": [call("a"), call("b"), call("c")] },
        user(&json!([
            { "type": "text", "text": "first" },
            { "type": "tool_result", "tool_use_id": "c", "is_error": true },
            { "type": "tool_result", "tool_use_id": "a", "content": "" },
            { "type": "tool_result", "tool_use_id": "b", "content": [
                { "type": "image", "source": { "type": "url", "url": "https://x/y.png" } }] },
            { "type": "text", "text": "last" },
        ])),
    ]));
    let turn = read(&request);
    assert_eq!(turn.messages.len(), 5);
    let Message::ToolResults(results) = &turn.messages[3] else { panic!("no results") };
    assert_eq!(results.results[0].outcome, ToolOutcome::Error);
    assert!(
        matches!(&results.results[2].content[0], Part::Image(image) if image.source == Source::Url("https://x/y.png".into()))
    );
    let (written, losses) = write_back(&turn);
    assert_eq!(
        written["messages"][2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "a", "is_error": false },
            { "type": "tool_result", "tool_use_id": "b", "is_error": false, "content": [
                { "type": "image", "source": { "type": "url", "url": "https://x/y.png" } }] },
            { "type": "tool_result", "tool_use_id": "c", "is_error": true },
            { "type": "text", "text": "first" },
            { "type": "text", "text": "last" },
        ])
    );
    assert_eq!(losses, Vec::<String>::new());
}

#[test]
fn invalid_requests_are_rejected_with_the_path() {
    // D1 D2
    let hello = user(&json!("hi"));
    let cases = [
        (json!({ "model": "m", "messages": [] }), "max_tokens: field required"),
        (with("messages", json!("hi")), "messages: invalid type"),
        (with("max_tokens", json!("ten")), "max_tokens: invalid type"),
        (messages(&json!([{ "role": "robot", "content": "" }])), "messages[0].role: unknown variant"),
        (messages(&json!([{ "role": "user", "content": 5 }])), "a string or an array of content blocks"),
        (messages(&json!([{ "role": "user", "content": [{ "text": "hi" }] }])), "needs a `type`"),
        (messages(&json!([{ "role": "user", "content": [{ "type": "text" }] }])), "messages[0].content[0]"),
        (
            messages(&json!([{ "role": "user", "content": [call("a")] }])),
            "messages[0].content[0]: a tool_use belongs in an assistant",
        ),
        (
            messages(&json!([hello, { "role": "assistant", "content": [result("a")] }])),
            "messages[1].content[0]: a tool_result belongs in a user",
        ),
        (messages(&json!([user(&json!([result("nobody")]))])), "nobody"),
        (
            messages(
                &json!([hello, { "role": "assistant", "content": [call("a")] }, user(&json!([result("a"), result("a")]))]),
            ),
            "two tool_results",
        ),
        (with("system", json!([call("a")])), "system[0]: a tool_use is not allowed here"),
        (with("tool_choice", json!({})), "tool_choice needs a `type`"),
    ];
    for (request, expected) in cases {
        let error = refusal(&request);
        assert_eq!(error.status(), 400);
        assert!(error.message.contains(expected), "{request}: {}", error.message);
    }
}

#[test]
fn forms_that_only_some_hosts_accept_are_read() {
    let check = |quirk: Value, regular: Value| {
        let conversation = |said: &Value| messages(&json!([{ "role": "assistant", "content": said }]));
        assert_eq!(read(&conversation(&quirk)), read(&conversation(&regular)));
    };
    check(Value::Null, json!([]));
    check(
        json!([{ "type": "tool_use", "id": "a", "name": "f", "input": r#"{"n":1}"# }]), // T34
        json!([{ "type": "tool_use", "id": "a", "name": "f", "input": { "n": 1 } }]),
    );
    check(
        json!([{ "type": "thinking", "signature": "s" }]),
        json!([{ "type": "thinking", "thinking": "", "signature": "s" }]),
    );
}

#[test]
fn at_most_four_cache_marks_are_sent() {
    // T36
    let marked =
        |text: &str| json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } });
    let mut request = messages(&json!([user(&json!([marked("1"), marked("2"), marked("3"), marked("4")]))]));
    check_round_trip(&request);
    request["system"] = json!([marked("s")]);
    let (written, losses) = write_back(&read(&request));
    let kept: Vec<bool> = written["messages"][0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block.get("cache_control").is_some())
        .collect();
    assert_eq!(kept, [false, true, true, true]);
    assert!(written["system"][0].get("cache_control").is_some());
    assert_eq!(losses, ["cache_control"]);
}

#[test]
fn a_count_request_needs_no_limit() {
    // T35
    let mut request = with("temperature", json!(0.5));
    request.as_object_mut().unwrap().remove("max_tokens");
    let turn = read_count_request(request.to_string().as_bytes()).unwrap().value;
    assert_eq!((turn.max_output, turn.messages.len()), (None, 1));
    assert_eq!(write_count(7), br#"{"input_tokens":7}"#);
}
