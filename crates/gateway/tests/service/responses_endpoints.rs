//! Parts of the Responses API beside turns: conversations, token counts, compaction; and requests that only their host
//! can read.

use serde_json::{Value, json};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::continuing::{ask_as, gate_for_two};
use crate::gate::{Gate, error_message};
use crate::hosts::HOSTS;
use crate::replies;

const PATH: &str = "/v1/responses";
const COUNT: &str = "/v1/responses/input_tokens";
const COMPACT: &str = "/v1/responses/compact";

#[tokio::test]
async fn a_conversation_that_only_a_host_could_know_is_an_error_at_other_hosts() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for conversation in [json!("conv_1"), json!({ "id": "conv_1" })] {
        let body = json!({ "model": "claude", "input": "hello", "conversation": conversation });
        let answer = gate.post(PATH, &body).await;
        assert_eq!(answer.status(), 400);
        let error = answer.json().await;
        assert_eq!(error["error"]["param"], "conversation");
        let message = error_message(PATH, &error);
        assert!(message.contains("`conv_1`") && message.contains("previous_response_id"), "{message}");
    }
    assert!(upstream.requests().is_empty(), "no model sees a conversation without its beginning");

    let body = json!({ "model": "resp", "input": "hello", "conversation": "conv_1" });
    upstream.on(Script::json(200, (HOSTS[2].whole)()));
    assert_eq!(gate.post(PATH, &body).await.status(), 200);
    assert_eq!(upstream.next_request().await.json(), body, "a host of the same dialect may know it");
    assert_eq!(gate.get("/v1/responses/resp_1").await.status(), 404, "it cannot be continued from here");
}

#[tokio::test]
async fn callers_do_not_see_each_others_conversations() {
    let upstream = ScriptedUpstream::start().await;
    let gate = gate_for_two(&upstream);
    for store in [true, false] {
        let body = json!({ "model": "resp", "input": "hello", "conversation": "conv_1", "store": store });
        assert_eq!(ask_as("bob", &gate, &body).await.status(), 400);
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_null_conversation_is_none() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let body = json!({ "model": "demo", "input": "hello", "conversation": null });
    assert_eq!(gate.post(PATH, &body).await.status(), 200);
}

#[tokio::test]
async fn input_tokens_are_counted_by_a_responses_host() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let counted = json!({ "object": "response.input_tokens", "input_tokens": 42 });
    for input in [json!("hello"), json!([{ "type": "item_reference", "id": "msg_at_the_host" }])] {
        upstream.on(Script::json(200, counted.clone()));
        let body = json!({ "model": "resp", "input": input });
        let answer = gate.post(COUNT, &body).await;
        assert_eq!((answer.status(), answer.header("x-toolgate-count")), (200, "host"));
        assert_eq!(answer.json().await, counted);
        let asked = upstream.next_request().await;
        assert_eq!((asked.path.as_str(), asked.json()), (COUNT, body));
    }
}

#[tokio::test]
async fn input_tokens_are_estimated_where_no_host_can_count() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let count = async |body: Value| {
        let answer = gate.post(COUNT, &body).await;
        assert_eq!((answer.status(), answer.header("x-toolgate-count")), (200, "estimate"), "{body}");
        let count = answer.json().await;
        assert_eq!(count["object"], "response.input_tokens");
        count["input_tokens"].as_u64().expect("a count")
    };
    let short = count(json!({ "model": "gpt", "input": "hello" })).await;
    assert!(short > 0);
    // A stored conversation counts, whether it is continued or referred to.
    upstream.on(Script::json(200, replies::whole()));
    let stored = json!({ "model": "claude", "input": "a long question ".repeat(50) });
    let stored = gate.post(PATH, &stored).await.json().await;
    let continued = json!({ "model": "gpt", "input": "hello", "previous_response_id": stored["id"] });
    assert!(count(continued).await > short + 50);
    let reference = json!({ "type": "item_reference", "id": stored["output"][0]["id"] });
    let input = json!([reference, { "role": "user", "content": "hello" }]);
    assert!(count(json!({ "model": "gpt", "input": input })).await > short);
}

#[tokio::test]
async fn input_tokens_of_an_unknown_conversation_are_an_error() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for (field, status) in [("previous_response_id", 404), ("conversation", 400)] {
        let body = json!({ "model": "gpt", "input": "hello", field: "elsewhere" });
        assert_eq!(gate.post(COUNT, &body).await.status(), status, "{field}");
    }
    let answer = gate.post(COUNT, &json!({ "input": "hello" })).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(error_message(COUNT, &answer.json().await), "model: field required");
}

#[tokio::test]
async fn a_responses_host_compacts_a_conversation() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let compacted = json!({
        "id": "resp_9", "object": "response.compaction", "created_at": 1,
        "output": [{ "type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0" }],
        "usage": { "input_tokens": 70, "output_tokens": 3, "total_tokens": 73 },
    });
    upstream.on(Script::json(200, compacted.clone()));
    let body = json!({ "model": "resp", "input": [{ "role": "user", "content": "hello" }] });
    let answer = gate.post(COMPACT, &body).await;
    assert_eq!((answer.status(), answer.header("x-toolgate-upstream")), (200, "resp"));
    assert_eq!(answer.json().await, compacted);
    let asked = upstream.next_request().await;
    assert_eq!((asked.path.as_str(), asked.json()), (COMPACT, body));
}

#[tokio::test]
async fn compaction_is_refused_in_words_where_no_host_can_do_it() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for model in ["claude", "gpt", "demo"] {
        let answer = gate.post(COMPACT, &json!({ "model": model, "input": "hello" })).await;
        // A status that clients do not retry.
        assert_eq!(answer.status(), 400, "{model}");
        let error = answer.json().await;
        assert_eq!(error["error"]["type"], "invalid_request_error");
        assert_eq!(error["error"]["code"], "unsupported_endpoint");
        assert!(error_message(COMPACT, &error).contains("cannot be compacted"), "{error}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_request_that_only_its_host_can_read_is_relayed() {
    let upstream = ScriptedUpstream::start().await;
    upstream.accept_anything();
    let gate = Gate::before(&upstream);
    for quirk in [
        json!({ "input": [{ "type": "function_call", "call_id": "c" }] }),
        json!({ "input": "x", "tools": [{ "type": "function" }] }),
        json!({ "input": "x", "tool_choice": "maybe" }),
        json!({ "input": "x", "temperature": "warm" }),
    ] {
        let mut body = quirk.clone();
        body["model"] = json!("resp");
        upstream.on(Script::json(200, (HOSTS[2].whole)()));
        let answer = gate.post(PATH, &body).await;
        assert_eq!((answer.status(), answer.header("x-toolgate-loss")), (200, ""), "{body}");
        assert_eq!(upstream.next_request().await.json(), body);
        body["model"] = json!("claude");
        assert_eq!(gate.post(PATH, &body).await.status(), 400, "{body}");
    }
}
