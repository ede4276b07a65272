//! The shapes that clients rely on. The official SDKs check the rest from outside.

use http::HeaderMap;

use super::*;
use crate::Step;

fn request(path: &str, body: &Value) -> Received {
    Received {
        version: http::Version::HTTP_11,
        method: Method::POST,
        path: format!("/v1{path}"),
        headers: HeaderMap::new(),
        body: body.to_string().into_bytes().into(),
    }
}

fn answered(request: &Received) -> Script {
    answer(request, &Plays::default())
}

fn sent(script: &Script) -> String {
    let steps = script.steps();
    steps
        .filter_map(|step| match step {
            Step::Send(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Step::Gate(_) | Step::Stall | Step::Cut => None,
        })
        .collect()
}

fn whole(path: &str, body: &Value) -> Value {
    serde_json::from_str(&sent(&answered(&request(path, body)))).unwrap()
}

/// The `type` of each event, repeated deltas once.
fn event_kinds(path: &str, model: &str) -> Vec<String> {
    let text = sent(&answered(&request(path, &json!({"model": model, "stream": true}))));
    let mut kinds: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect();
    kinds.dedup();
    kinds
}

#[test]
fn messages_streams_follow_the_official_order() {
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let mut expect =
        vec!["message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop"];
    expect.extend(block.repeat(2));
    expect.extend(["message_delta", "message_stop"]);
    assert_eq!(event_kinds("/messages", "x/parallel"), expect);
}

#[test]
fn responses_streams_follow_the_official_order() {
    let kinds = event_kinds("/responses", "reasoning");
    let expect = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds, expect.map(|kind| format!("response.{kind}")));
}

#[test]
fn chat_streams_begin_with_the_role_and_end_with_done() {
    let body = json!({"model": "text-2", "stream": true, "stream_options": {"include_usage": true}});
    let text = sent(&answered(&request("/chat/completions", &body)));
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let chunk = |n: usize| serde_json::from_str::<Value>(data[n]).unwrap();
    assert_eq!(data.len(), 6);
    assert_eq!(chunk(0)["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunk(2)["choices"][0]["delta"]["content"], " word1");
    assert_eq!(chunk(3)["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunk(4)["usage"]["total_tokens"], 27);
    assert_eq!(data[5], "[DONE]");
}

#[test]
fn results_are_repeated_in_all_dialects() {
    let results = json!([
        {"type": "tool_result", "tool_use_id": "a", "content": "18C"},
        {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [{"type": "text", "text": "boom"}]},
    ]);
    let body = json!({"model": "parallel", "messages": [{"role": "user", "content": results}]});
    assert_eq!(whole("/messages", &body)["content"][0]["text"], "18C\nerror: boom");

    let messages = json!([
        {"role": "assistant", "tool_calls": []},
        {"role": "tool", "tool_call_id": "a", "content": "18C"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "21C"}]},
        {"role": "user", "content": "and now?"},
    ]);
    let body = json!({"model": "parallel", "messages": messages});
    assert_eq!(whole("/chat/completions", &body)["choices"][0]["message"]["content"], "18C\n21C");

    let input = json!([
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "18C"},
    ]);
    let body = json!({"model": "parallel", "input": input});
    assert_eq!(whole("/responses", &body)["output"][0]["content"][0]["text"], "18C");
}

#[test]
fn echo_describes_its_request() {
    let body = json!({
        "model": "echo", "system": "be brief", "tools": [{"name": "f"}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hi"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        ]}],
    });
    let text = text_of_first_block(&whole("/messages", &body));
    let expect = json!({
        "messages": [
            {"role": "system", "parts": [{"kind": "text", "text": "be brief"}]},
            {"role": "user", "parts": [{"kind": "text", "text": "hi"}, {"kind": "image", "media_type": "image/png"}]},
        ],
        "tools": ["f"],
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expect);
}

fn text_of_first_block(message: &Value) -> String {
    message["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_reached_token_limit_is_reported_in_each_dialect() {
    let body = json!({"model": "length"});
    assert_eq!(whole("/messages", &body)["stop_reason"], "max_tokens");
    assert_eq!(whole("/chat/completions", &body)["choices"][0]["finish_reason"], "length");
    assert_eq!(whole("/responses", &body)["incomplete_details"]["reason"], "max_output_tokens");
}

#[test]
fn errors_have_the_envelope_of_their_dialect() {
    assert_eq!(whole("/messages", &json!({"model": "error-529"}))["error"]["type"], "overloaded_error");
    assert_eq!(whole("/responses", &json!({"model": "error-429"}))["error"]["code"], "rate_limit_exceeded");
    assert_eq!(whole("/chat/completions", &json!({"model": "nobody"}))["error"]["code"], "model_not_found");
}

#[test]
fn cut_never_finishes() {
    for path in ["/messages", "/chat/completions", "/responses"] {
        let script = answered(&request(path, &json!({"model": "cut", "stream": true})));
        assert_eq!(script.steps().last(), Some(&Step::Cut), "{path}");
        let text = sent(&script);
        assert!(text.contains("word5") && !text.contains("word39"), "{path}: {text}");
    }
}

#[test]
fn a_play_replies_turn_by_turn_with_the_trigger_of_the_request() {
    let plays = Plays::default();
    let turns = json!({"turns": [
        {"text": "\u{E000}\n<invoke>"}, {"text": "dört", "pieces": 1, "end": "length"}, {"text": "abcdefgh", "pieces": [3, 7]},
    ]});
    let mut put = request("/plays/tale", &turns);
    put.method = Method::PUT;
    assert_eq!(sent(&answer(&put, &plays)), "{}");

    let mut messages = vec![json!({"role": "user", "content": "calls begin with <<CALL_abcdefgh>>"})];
    let mut said = Vec::new();
    for _ in 0..4 {
        let body = json!({"model": "x/tale", "messages": messages, "stream": true});
        let text = sent(&answer(&request("/chat/completions", &body), &plays));
        let chunks = text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
        let deltas = chunks.filter_map(|chunk: Value| {
            chunk["choices"][0]["delta"]["content"]
                .as_str()
                .filter(|delta| !delta.is_empty())
                .map(str::to_owned)
        });
        let deltas: Vec<String> = deltas.collect();
        messages.push(json!({"role": "assistant", "content": deltas.concat()}));
        said.push(deltas);
    }
    assert_eq!(said[0], ["<<CALL_abcdefgh>>\n<invoke>"]);
    assert_eq!(said[1], ["d", "ö", "r", "t"]);
    assert_eq!(said[2].concat(), "abcdefgh");
    assert!(said[2].len() > 2, "{said:?}");
    assert_eq!(said[3], ["The play is over."]);

    let mut get = request("/plays/tale", &json!({}));
    get.method = Method::GET;
    let requests: Value = serde_json::from_str(&sent(&answer(&get, &plays))).unwrap();
    assert_eq!(requests.as_array().unwrap().len(), 4);
    assert_eq!(requests[1]["messages"][1]["role"], "assistant");
}

#[test]
fn an_invalid_play_is_rejected() {
    for (play, complaint) in [
        (json!({}), "`turns`"),
        (json!({"turns": [{}]}), "`text`"),
        (json!({"turns": [{"text": "", "pieces": "x"}]}), "length"),
        (json!({"turns": [{"text": "", "end": "x"}]}), "stop, length or cut"),
    ] {
        let mut put = request("/plays/tale", &play);
        put.method = Method::PUT;
        let said = sent(&answered(&put));
        assert!(said.contains(complaint), "{said}");
    }
}
