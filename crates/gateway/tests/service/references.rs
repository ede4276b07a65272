//! References: a request names items of stored responses by their ids instead of repeating them.

use http::Method;
use serde_json::{Value, json};
use toolgate_backend::config::{UpstreamName, Via};
use toolgate_prompted::PromptedOptions;
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::continuing::{ask_as, gate_for_two, last_event};
use crate::gate::{Gate, backends, config, error_message, host, route};
use crate::hosts::HOSTS;
use crate::{replies, text_host};

const PATH: &str = "/v1/responses";

/// A reply of a Messages host: a signed thought, a text and a call.
fn thought_text_and_call() -> Value {
    let mut reply = replies::whole();
    reply["content"] = json!([
        { "type": "thinking", "thinking": "Ask the tool.", "signature": "c2lnbmVk" },
        { "type": "text", "text": "Let me look." },
        { "type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": { "city": "Oslo" } },
    ]);
    reply["stop_reason"] = json!("tool_use");
    reply
}

/// The same as a stream.
fn thought_text_and_call_streamed() -> Script {
    let mut script = Script::sse().frame(
        "message_start",
        json!({ "type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-host", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 7, "output_tokens": 1 },
        } }),
    );
    let blocks = [
        (
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            vec![
                json!({ "type": "thinking_delta", "thinking": "Ask the tool." }),
                json!({ "type": "signature_delta", "signature": "c2lnbmVk" }),
            ],
        ),
        (
            json!({ "type": "text", "text": "" }),
            vec![json!({ "type": "text_delta", "text": "Let me look." })],
        ),
        (
            json!({ "type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {} }),
            vec![json!({ "type": "input_json_delta", "partial_json": "{\"city\": \"Oslo\"}" })],
        ),
    ];
    for (index, (start, deltas)) in blocks.into_iter().enumerate() {
        let event = json!({ "type": "content_block_start", "index": index, "content_block": start });
        script = script.frame("content_block_start", event);
        for delta in deltas {
            let event = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            script = script.frame("content_block_delta", event);
        }
        script = script.frame("content_block_stop", json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": "tool_use", "stop_sequence": null });
    let usage = json!({ "output_tokens": 3 });
    script
        .frame("message_delta", json!({ "type": "message_delta", "delta": delta, "usage": usage }))
        .frame("message_stop", json!({ "type": "message_stop" }))
}

fn tools() -> Value {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    json!([{ "type": "function", "name": "get_weather", "parameters": schema }])
}

/// References to all items of a response.
fn references_to(response: &Value) -> Vec<Value> {
    let ids = response["output"].as_array().expect("items").iter().map(|item| &item["id"]);
    ids.map(|id| json!({ "type": "item_reference", "id": id })).collect()
}

/// A question, references, and the result of the call `toolu_1`.
fn with_result(references: Vec<Value>) -> Value {
    let mut input = vec![json!({ "role": "user", "content": "Oslo?" })];
    input.extend(references);
    input.push(json!({ "type": "function_call_output", "call_id": "toolu_1", "output": "5 C" }));
    json!(input)
}

/// The response that a client of this gateway got.
async fn first_response(gate: &Gate, upstream: &ScriptedUpstream, stream: bool) -> Value {
    upstream.on(if stream {
        thought_text_and_call_streamed()
    } else {
        Script::json(200, thought_text_and_call())
    });
    let body = json!({ "model": "claude", "input": "Oslo?", "tools": tools(), "stream": stream });
    let answer = gate.post(PATH, &body).await.text().await;
    upstream.next_request().await;
    if stream {
        last_event(&answer)["response"].clone()
    } else {
        serde_json::from_str(&answer).expect("JSON")
    }
}

#[tokio::test]
async fn references_to_items_that_the_gateway_named_bring_back_thought_text_and_call() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for stream in [false, true] {
        let first = first_response(&gate, &upstream, stream).await;
        upstream.on(Script::json(200, replies::whole()));
        let second =
            json!({ "model": "claude", "tools": tools(), "input": with_result(references_to(&first)) });
        assert_eq!(gate.post(PATH, &second).await.status(), 200, "{stream}");
        let sent = upstream.next_request().await.json();
        let assistant = json!({ "role": "assistant", "content": thought_text_and_call()["content"] });
        assert_eq!(sent["messages"][1], assistant, "{stream}");
        assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "toolu_1", "{stream}");
    }
}

#[tokio::test]
async fn references_are_resolved_for_a_host_of_another_dialect() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let first = first_response(&gate, &upstream, false).await;
    upstream.on(Script::json(200, (HOSTS[1].whole)()));
    // The type of a reference is optional.
    let mut references = references_to(&first);
    for reference in &mut references {
        reference.as_object_mut().expect("an object").remove("type");
    }
    let second =
        json!({ "model": "gpt", "tools": tools(), "input": with_result(references), "store": false });
    assert_eq!(gate.post(PATH, &second).await.status(), 200);
    let sent = upstream.next_request().await.json();
    let roles: Vec<&str> = sent["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|one| one["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    assert_eq!(sent["messages"][1]["content"], "Let me look.");
    assert_eq!(sent["messages"][1]["tool_calls"][0]["function"]["name"], "get_weather");
    assert_eq!(sent["messages"][1]["tool_calls"][0]["id"], sent["messages"][2]["tool_call_id"]);
}

#[tokio::test]
async fn a_reference_that_the_gateway_named_is_resolved_for_a_responses_host() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let first = first_response(&gate, &upstream, true).await;
    for store in [true, false] {
        upstream.on(Script::json(200, (HOSTS[2].whole)()));
        let second = json!({ "model": "resp", "input": with_result(references_to(&first)), "store": store });
        assert_eq!(gate.post(PATH, &second).await.status(), 200);
        let sent = upstream.next_request().await.json().to_string();
        assert!(sent.contains("Let me look.") && sent.contains("get_weather"), "{sent}");
        assert!(!sent.contains("item_reference"), "{sent}");
    }
}

#[tokio::test]
async fn a_reference_that_the_host_named_is_relayed_to_it() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for (stored, store) in [(true, None), (true, Some(false)), (false, None), (false, Some(false))] {
        if stored {
            upstream.on(Script::json(200, (HOSTS[2].whole)()));
            gate.post(PATH, &json!({ "model": "resp", "input": "one" })).await.text().await;
            upstream.next_request().await;
        }
        let id = if stored { "msg_1" } else { "msg_from_before" };
        let mut body = json!({ "model": "resp", "input": [{ "type": "item_reference", "id": id }, { "role": "user", "content": "two" }] });
        if let Some(store) = store {
            body["store"] = json!(store);
        }
        upstream.on(Script::json(200, (HOSTS[2].whole)()));
        assert_eq!(gate.post(PATH, &body).await.text().await, (HOSTS[2].whole)().to_string());
        assert_eq!(upstream.next_request().await.json(), body, "the host resolves its own ids");
    }
}

#[tokio::test]
async fn a_reference_that_another_host_named_is_resolved() {
    let upstream = ScriptedUpstream::start().await;
    let mut backends = backends(&upstream);
    backends.upstreams.push(host("other", "openai-responses", &upstream));
    backends.models.push(route("other", &[Via::Upstream(UpstreamName::new("other"))]));
    let gate = Gate::start(&config(), backends);
    for stream in [false, true] {
        let script = (HOSTS[2].tail)(HOSTS[2].begun());
        upstream.on(if stream { script } else { Script::json(200, (HOSTS[2].whole)()) });
        gate.post(PATH, &json!({ "model": "resp", "input": "one", "stream": stream })).await.text().await;
        upstream.next_request().await;
        upstream.on(Script::json(200, (HOSTS[2].whole)()));
        let input =
            json!([{ "type": "item_reference", "id": "msg_1" }, { "role": "user", "content": "two" }]);
        assert_eq!(gate.post(PATH, &json!({ "model": "other", "input": input })).await.status(), 200);
        let sent = upstream.next_request().await.json().to_string();
        assert!(sent.contains("hi there") && !sent.contains("item_reference"), "{sent}");
    }
}

#[tokio::test]
async fn a_response_with_resolved_references_is_continued_with_their_items() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let first = first_response(&gate, &upstream, false).await;
    upstream.on(Script::json(200, replies::whole()));
    let second = json!({ "model": "claude", "tools": tools(), "input": with_result(references_to(&first)) });
    let second = gate.post(PATH, &second).await.json().await;
    upstream.next_request().await;
    upstream.on(Script::json(200, (HOSTS[1].whole)()));
    let third = json!({ "model": "gpt", "input": "thanks", "previous_response_id": second["id"] });
    assert_eq!(gate.post(PATH, &third).await.status(), 200);
    let sent = upstream.next_request().await.json();
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(5), "{sent}");
    assert_eq!(sent["messages"][1]["content"], "Let me look.");
}

#[tokio::test]
async fn input_items_are_listed_with_ids_that_can_be_referred_to() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let first = first_response(&gate, &upstream, false).await;
    upstream.on(Script::json(200, replies::whole()));
    let second = json!({ "model": "claude", "tools": tools(), "input": with_result(references_to(&first)) });
    let second = gate.post(PATH, &second).await.json().await;
    upstream.next_request().await;
    let path = format!("{PATH}/{}/input_items", second["id"].as_str().expect("an id"));
    let list = gate.get(&format!("{path}?order=asc")).await.json().await;
    let items = list["data"].as_array().expect("items");
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "function_call", "function_call_output"]);
    assert_eq!(items[0]["content"], json!([{ "type": "input_text", "text": "Oslo?" }]));
    assert_eq!(items[3]["id"], first["output"][2]["id"], "items keep their ids");
    assert_eq!((&list["object"], &list["has_more"]), (&json!("list"), &json!(false)));
    let page = gate.get(&format!("{path}?limit=1")).await.json().await;
    assert_eq!((&page["data"][0], &page["has_more"]), (&items[4], &json!(true)), "the newest first");
    let newest = page["last_id"].as_str().expect("an id");
    let page = gate.get(&format!("{path}?after={newest}")).await.json().await;
    assert_eq!(page["data"][0], items[3]);
    assert_eq!(gate.get(&format!("{path}?order=up")).await.status(), 400);
    assert_eq!(gate.get(&format!("{PATH}/resp_nowhere/input_items")).await.status(), 404);

    let reference = |item: &Value| json!({ "type": "item_reference", "id": item["id"] });
    let all: Vec<Value> = items.iter().map(reference).collect();
    upstream.on(Script::json(200, (HOSTS[1].whole)()));
    assert_eq!(gate.post(PATH, &json!({ "model": "gpt", "input": all })).await.status(), 200);
    let sent = upstream.next_request().await.json();
    assert_eq!(sent["messages"][0]["content"], "Oslo?");
    assert_eq!(sent["messages"][2]["content"], "5 C");
}

#[tokio::test]
async fn an_unknown_reference_is_an_error_that_says_what_to_do() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    for reference in
        [json!({ "type": "item_reference", "id": "msg_nowhere" }), json!({ "id": "msg_nowhere" })]
    {
        let body = json!({ "model": "claude", "input": [reference, { "role": "user", "content": "x" }] });
        let answer = gate.post(PATH, &body).await;
        assert_eq!(answer.status(), 404);
        let error = answer.json().await;
        assert_eq!(error["error"]["type"], "invalid_request_error");
        assert_eq!(error["error"]["param"], "input");
        let message = error_message(PATH, &error);
        assert!(message.starts_with("Item with id 'msg_nowhere' not found"), "{message}");
        assert!(message.contains("Send the item itself"), "{message}");
    }
    assert!(upstream.requests().is_empty(), "no model sees a conversation with a hole in it");
}

#[tokio::test]
async fn items_of_a_response_that_is_deleted_or_not_stored_are_unknown() {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::before(&upstream);
    let deleted = first_response(&gate, &upstream, false).await;
    let path = format!("{PATH}/{}", deleted["id"].as_str().expect("an id"));
    assert_eq!(gate.send(Method::DELETE, &path, &[], "").await.status(), 200);
    upstream.on(Script::json(200, replies::whole()));
    let body = json!({ "model": "claude", "input": "hello", "store": false });
    let discarded = gate.post(PATH, &body).await.json().await;
    for response in [deleted, discarded] {
        let body = json!({ "model": "claude", "input": references_to(&response) });
        assert_eq!(gate.post(PATH, &body).await.status(), 404, "{response}");
    }
}

#[tokio::test]
async fn callers_do_not_see_each_others_items() {
    let upstream = ScriptedUpstream::start().await;
    let gate = gate_for_two(&upstream);
    upstream.on(Script::json(200, (HOSTS[2].whole)()));
    assert_eq!(ask_as("alice", &gate, &json!({ "model": "resp", "input": "one" })).await.status(), 200);
    upstream.on(Script::json(200, replies::whole()));
    let hers = ask_as("alice", &gate, &json!({ "model": "claude", "input": "one" })).await.json().await;
    let sent_before = upstream.requests().len();
    for (model, id) in [("resp", json!("msg_1")), ("claude", hers["output"][0]["id"].clone())] {
        for store in [true, false] {
            for reference in [json!({ "type": "item_reference", "id": id }), json!({ "id": id })] {
                let body = json!({ "model": model, "input": [reference], "store": store });
                assert_eq!(ask_as("bob", &gate, &body).await.status(), 404, "{body}");
            }
        }
    }
    assert_eq!(upstream.requests().len(), sent_before, "another caller's items do not reach the host");
}

#[tokio::test]
async fn references_work_for_a_prompted_model() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let answered = String::from_utf8_lossy(&received.body).contains(text_host::RESULT);
        let text = if answered { "Take an umbrella." } else { text_host::CALL };
        text_host::say(received, text, "stop")
    });
    let gate = text_host::gate(&upstream, PromptedOptions::default());
    for stream in [false, true] {
        let [_, _, (path, body)] = text_host::questions(stream);
        let answer = gate.post(path, &body).await.text().await;
        let first = if stream {
            last_event(&answer)["response"].clone()
        } else {
            serde_json::from_str(&answer).expect("JSON")
        };
        upstream.next_request().await;
        let call =
            first["output"].as_array().expect("items").iter().find(|item| item["type"] == "function_call");
        let mut input = vec![json!({ "role": "user", "content": "Weather in Paris?" })];
        input.extend(references_to(&first));
        let call_id = &call.expect("a call")["call_id"];
        input
            .push(json!({ "type": "function_call_output", "call_id": call_id, "output": text_host::RESULT }));
        let mut second = body.clone();
        second["input"] = json!(input);
        let answer = gate.post(path, &second).await.text().await;
        assert!(answer.contains("Take an umbrella."), "{answer}");
        let sent = upstream.next_request().await.json();
        let earlier = sent["messages"].to_string();
        assert!(earlier.contains("Let me look.") && earlier.contains("<invoke name="), "{earlier}");
    }
}
