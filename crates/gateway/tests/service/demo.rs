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
