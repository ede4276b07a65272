//! A request that may be relayed unread is one that the reader would take as it is: held against the reader on good
//! requests and on what becomes of them when anything in them is changed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use toolgate_dialect::conformance::wrongly_unread;
use toolgate_dialect::registry::{self, Dialect};

/// Requests as clients usually send them; together they have all that the tables know.
fn usual() -> Vec<(&'static str, Value)> {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let plain_chat =
        json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "unknown": {"a": [1, 2.5e3]}});
    let chat_with_tools = json!({
        "messages": [
            {"role": "system", "content": "Be short."},
            {"content": [{"text": "be kind", "type": "text"}], "role": "developer", "name": "n"},
            {"role": "user", "content": [
                {"type": "text", "text": "look \u{1F600}"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            ]},
            {"role": "assistant", "content": null, "refusal": null, "function_call": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"city\":\"Paris\"}"}},
                {"id": "b", "type": "function", "function": {"name": "g"}, "index": 1},
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "rain"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "sun"}]},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
            ]},
            {"role": "tool", "tool_call_id": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}], "reasoning_content": "so", "reasoning": "so"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "f", "description": "d", "parameters": schema, "strict": true,
        }}],
        "model": "some-model", "tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 9,
        "max_completion_tokens": 10, "temperature": 0.7, "top_p": 1, "top_k": null, "frequency_penalty": -1,
        "presence_penalty": 0, "seed": 7, "stop": ["x", "y"], "reasoning_effort": "low", "stream": false,
        "stream_options": null, "n": 2, "user": "u", "safety_identifier": "s", "store": true,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
    });
    let other_chat = json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [], "functions": null,
        "tool_choice": {"type": "function", "function": {"name": "f"}}, "stop": "x",
        "response_format": {"type": "json_object"},
    });
    let plain_messages =
        json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]});
    let messages_with_tools = json!({
        "model": "some-model", "max_tokens": 1024, "system": [{"type": "text", "text": "Be short."}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}, "title": "t"},
            ]},
            {"content": [
                {"type": "thinking", "thinking": "so", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "text", "text": "I call."},
                {"id": "a", "type": "tool_use", "name": "f", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "b", "name": "g", "input": {}},
            ], "role": "assistant"},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "rain", "is_error": true},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "sun"}]},
            ]},
            {"role": "assistant", "content": "so it "},
        ],
        "tools": [
            {"name": "f", "description": "d", "input_schema": schema, "strict": false},
            {"type": "custom", "name": "g", "input_schema": {"type": "object"}},
        ],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
        "stop_sequences": ["x"], "stream": null, "temperature": 0.5, "top_p": 0.9, "top_k": 40,
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "low"},
        "metadata": {"user_id": "u"}, "service_tier": "auto",
    });
    let other_messages = json!({
        "model": "m", "max_tokens": 5, "system": "Be short.", "tool_choice": {"type": "any"},
        "messages": [{"role": "user", "content": "hi"}],
    });
    vec![
        ("openai-chat", plain_chat),
        ("openai-chat", chat_with_tools),
        ("openai-chat", other_chat),
        ("anthropic-messages", plain_messages),
        ("anthropic-messages", messages_with_tools),
        ("anthropic-messages", other_messages),
    ]
}

fn dialect(name: &str) -> &'static Dialect {
    registry::find(name).unwrap()
}

fn model<'b>(name: &str, body: &'b str) -> Option<&'b str> {
    dialect(name).client.skim_request(body.as_bytes())
}

#[track_caller]
fn check(name: &str, body: &[u8]) {
    assert_eq!(wrongly_unread(dialect(name), body), None, "{}", String::from_utf8_lossy(body));
}

#[test]
fn usual_requests_are_not_left_to_the_reader() {
    for (name, request) in usual() {
        for body in [request.to_string(), format!("\n{request:#}\n")] {
            assert_eq!(model(name, &body), request["model"].as_str(), "{body}");
            check(name, body.as_bytes());
        }
    }
}

#[test]
fn what_must_be_read_is_left_to_the_reader() {
    let check = |name: &str, change: fn(&mut Value)| {
        for (_, mut request) in usual().into_iter().filter(|(of, _)| *of == name) {
            change(&mut request);
            assert_eq!(model(name, &request.to_string()), None, "{request}");
        }
    };
    for name in ["openai-chat", "anthropic-messages"] {
        check(name, |request| request["stream"] = json!(true));
        check(name, |request| request["model"] = json!("m\n"));
        check(name, |request| request["messages"] = json!([]));
        check(name, |request| request["messages"][0]["role"] = json!("friend"));
        check(name, |request| request["temperature"] = json!("warm"));
    }
    check("openai-chat", |request| request["functions"] = json!([]));
    check("openai-chat", |request| {
        request["messages"] = json!([{"role": "tool", "tool_call_id": "nobody", "content": "x"}]);
    });
    check("anthropic-messages", |request| request["max_tokens"] = Value::Null);
    check("anthropic-messages", |request| request["tools"] = json!([{"type": "web_search", "name": "w"}]));
    for blank in ["", " ", "\n\t"] {
        let late = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"stream"{blank}:{blank}true}}"#
        );
        assert_eq!(model("openai-chat", &late), None, "{late}");
        let whole = late.replace("true", "false");
        assert_eq!(model("openai-chat", &whole), Some("m"), "{whole}");
    }
    let call = json!({"type": "function", "id": "same", "function": {"name": "f"}});
    let twice = json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": [call, call]}]});
    assert_eq!(model("openai-chat", &twice.to_string()), None);
}

/// Somebody may send as many calls as fit into a body.
#[test]
fn many_open_calls_are_left_to_the_reader() {
    let calls = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|at| json!({"type": "function", "id": at.to_string(), "function": {"name": "f"}}))
            .collect()
    };
    let skims = |count: usize| {
        let request = json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": calls(count)}]});
        model("openai-chat", &request.to_string()).is_some()
    };
    assert!(skims(64));
    assert!(!skims(65));
}

/// Something done to one value of a request.
enum Change {
    Replace(&'static str),
    Remove,
    /// Put before, with the same name or as an element.
    Repeat(&'static str),
    Rename(&'static str),
}

const VALUES: [&str; 32] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "01",
    "1e999",
    "1e99",
    "12345678901",
    "1234567890123456789012",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"text\"",
    "\"user\"",
    "\"tool\"",
    "\"assistant\"",
    "\"system\"",
    "\"none\"",
    r#""\n""#,
    r#""\ud83d""#,
    r#""\ude00\ud83d""#,
    r#""\ud83d\ude00""#,
    "[]",
    "{}",
    "[null]",
    r#"["a"]"#,
    r#"{"type":"text"}"#,
    r#"{"type":"text","text":"t"}"#,
    r#"[{"role":"user"}]"#,
    r#"{"role":"user","content":"hi","extra":1}"#,
];

const NAMES: [&str; 16] = [
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "tool_call_id",
    "id",
    "function_call",
    "function",
    "name",
    "tool_use_id",
    "functions",
    "stream",
    r"ro\u006ce",
    "thinking",
    "other",
];

fn changes() -> impl Iterator<Item = Change> {
    let values = VALUES.into_iter().flat_map(|value| [Change::Replace(value), Change::Repeat(value)]);
    values.chain(NAMES.into_iter().map(Change::Rename)).chain([Change::Remove])
}

/// Writes a value, with the change made to the value of that number.
fn write(value: &Value, left: &mut usize, change: &Change, out: &mut String) {
    let list = |out: &mut String, written: Vec<String>, ends: [char; 2]| {
        out.push(ends[0]);
        out.push_str(&written.join(","));
        out.push(ends[1]);
    };
    match value {
        Value::Array(elements) => {
            let written = elements.iter().flat_map(|element| member(None, element, left, change));
            list(out, written.collect(), ['[', ']']);
        }
        Value::Object(fields) => {
            let written = fields.iter().flat_map(|(name, value)| member(Some(name), value, left, change));
            list(out, written.collect(), ['{', '}']);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// An element or a field, as it stands or changed.
fn member(name: Option<&str>, value: &Value, left: &mut usize, change: &Change) -> Vec<String> {
    let with_name = |name: Option<&str>, value: &str| match name {
        Some(name) => format!("\"{name}\":{value}"),
        None => value.to_owned(),
    };
    let here = *left == 0;
    *left = left.wrapping_sub(1);
    let mut same = String::new();
    write(value, left, change, &mut same);
    if !here {
        return vec![with_name(name, &same)];
    }
    match change {
        Change::Replace(other) => vec![with_name(name, other)],
        Change::Remove => Vec::new(),
        Change::Repeat(other) => vec![with_name(name, other), with_name(name, &same)],
        Change::Rename(other) => vec![with_name(name.map(|_| *other), &same)],
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(|element| 1 + count(element)).sum(),
        Value::Object(fields) => fields.values().map(|value| 1 + count(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[test]
fn whatever_is_changed_the_reader_agrees() {
    for (name, request) in usual() {
        for (place, change) in
            (0..count(&request)).flat_map(|place| changes().map(move |change| (place, change)))
        {
            let mut body = String::new();
            write(&request, &mut { place }, &change, &mut body);
            check(name, body.as_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_damaged_the_reader_agrees(
        (name, request) in select(usual()), place in any::<Index>(), byte in any::<u8>()
    ) {
        let mut body = request.to_string().into_bytes();
        let at = place.index(body.len());
        body[at] = byte;
        check(name, &body);
        body.truncate(at);
        check(name, &body);
    }
}
