//! The demo model through all three APIs.

use crate::gate::{Gate, ask, backends, config};
use serde_json::json;
use toolgate_testkit::ScriptedUpstream;

#[tokio::test]
async fn it_greets_in_every_api_whole_and_streamed() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&config(), backends(&upstream));
    for stream in [false, true] {
        for (path, body) in ask("demo", stream) {
            let answer = gate.post(path, &body).await;
            assert_eq!(answer.status(), 200, "{path}");
            assert_eq!(answer.header("x-toolgate-upstream"), "demo");
            let text = answer.text().await;
            assert!(text.contains("Hello!"), "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn it_calls_a_tool_when_asked() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&config(), backends(&upstream));
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let body = json!({
        "model": "demo", "max_tokens": 100,
        "tools": [{ "name": "get_weather", "input_schema": schema }],
        "messages": [{ "role": "user", "content": "call get_weather for Paris" }]
    });
    let reply = gate.post("/v1/messages", &body).await.json().await;
    assert_eq!(reply["stop_reason"], "tool_use");
    assert_eq!(reply["content"][1]["input"], json!({ "city": "Paris" }));
}

#[tokio::test]
async fn tokens_are_estimated_where_no_host_can_count_and_the_reply_says_so() {
    // T35
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&config(), backends(&upstream));
    let body = json!({ "model": "demo", "messages": [{ "role": "user", "content": "hello" }] });
    let answer = gate.post("/v1/messages/count_tokens", &body).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-count")), (200, "estimate"));
    assert!(answer.json().await["input_tokens"].as_u64().expect("a count") > 0);
}

#[tokio::test]
async fn tokens_are_counted_by_a_host_that_can() {
    let upstream = ScriptedUpstream::start().await;
    upstream.on(toolgate_testkit::Script::json(200, json!({ "input_tokens": 42 })));
    let gate = Gate::start(&config(), backends(&upstream));
    let body = json!({ "model": "claude", "messages": [{ "role": "user", "content": "hello" }] });
    let answer = gate.post("/v1/messages/count_tokens", &body).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-count")), (200, "host"));
    assert_eq!(answer.json().await["input_tokens"], 42);
    assert_eq!(upstream.next_request().await.path, "/v1/messages/count_tokens");
}

#[tokio::test]
async fn several_answers_are_several_turns_joined_in_one_reply() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&config(), backends(&upstream));
    let mut body = ask("demo", false)[1].1.clone();
    body["n"] = json!(3);
    let whole = gate.post("/v1/chat/completions", &body).await.json().await;
    let indices: Vec<_> =
        whole["choices"].as_array().expect("choices").iter().map(|choice| &choice["index"]).collect();
    assert_eq!(indices, [0, 1, 2]);

    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let stream = gate.post("/v1/chat/completions", &body).await.text().await;
    for choice in 0..3 {
        assert!(stream.contains(&format!(r#""index":{choice}"#)), "{stream}");
    }
    assert_eq!(stream.matches(r#""finish_reason":"stop""#).count(), 3, "{stream}");
    assert_eq!(stream.matches("[DONE]").count(), 1, "{stream}");
    assert!(stream.trim_end().ends_with("[DONE]") && stream.contains(r#""usage":{"#), "{stream}");

    body["n"] = json!(1000);
    assert_eq!(gate.post("/v1/chat/completions", &body).await.status(), 400);
}
