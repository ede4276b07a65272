//! The loss header: no false alarms, and what matters first.

use serde_json::{Value, json};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::{Gate, ask, backends, config};
use crate::hosts::HOSTS;
use crate::replies;

const LOSS: &str = "x-toolgate-loss";

/// A gateway whose hosts have models of well-known families.
fn gate(upstream: &ScriptedUpstream) -> Gate {
    let mut backends = backends(upstream);
    for (name, host_model) in [("claude", "claude-sonnet-4-5"), ("gpt", "gpt-4o-mini"), ("resp", "gpt-4.1")] {
        let route = backends.models.iter_mut().find(|route| route.pattern.as_str() == name).expect("a route");
        route.targets[0].model = Some(host_model.into());
    }
    Gate::start(&config(), backends)
}

/// What clients of each API send with every request.
fn ordinary_requests(model: &str, stream: bool) -> [(&'static str, Value); 3] {
    let schema =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let [(messages, mut first), (chat, mut second), (responses, mut third)] = ask(model, stream);
    first["system"] = json!("Be brief.");
    first["temperature"] = json!(0.5);
    first["tools"] = json!([{ "name": "get_weather", "description": "Weather.", "input_schema": schema }]);
    first["tool_choice"] = json!({ "type": "auto" });
    let function = json!({ "name": "get_weather", "description": "Weather.", "parameters": schema });
    second["max_tokens"] = json!(100);
    second["temperature"] = json!(0.5);
    second["tools"] = json!([{ "type": "function", "function": function }]);
    second["tool_choice"] = json!("auto");
    if stream {
        second["stream_options"] = json!({ "include_usage": true });
    }
    third["instructions"] = json!("Be brief.");
    third["max_output_tokens"] = json!(100);
    third["include"] = json!([]);
    third["metadata"] = json!({});
    third["parallel_tool_calls"] = json!(true);
    third["temperature"] = json!(0.5);
    third["tools"] = json!([
        { "type": "function", "name": "get_weather", "description": "Weather.", "parameters": schema, "strict": false }
    ]);
    [(messages, first), (chat, second), (responses, third)]
}

/// The hosts' replies with the fields that they really send.
fn ordinary_replies() -> [Value; 3] {
    let mut messages = replies::whole();
    messages.as_object_mut().expect("an object").remove("a_field_of_tomorrow");
    messages["usage"] = json!({
        "input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 3,
        "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0 },
        "service_tier": "standard",
    });
    let mut chat = (HOSTS[1].whole)();
    chat["choices"][0]["logprobs"] = Value::Null;
    chat["choices"][0]["message"]["refusal"] = Value::Null;
    chat["choices"][0]["message"]["annotations"] = json!([]);
    chat["system_fingerprint"] = json!("fp_1");
    chat["service_tier"] = json!("default");
    chat["usage"]["prompt_tokens_details"] = json!({ "cached_tokens": 0, "audio_tokens": 0 });
    chat["usage"]["completion_tokens_details"] = json!({
        "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
    });
    let mut responses = (HOSTS[2].whole)();
    for (field, value) in [
        ("background", json!(false)),
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("previous_response_id", Value::Null),
        ("reasoning", json!({ "effort": null, "summary": null })),
        ("service_tier", json!("default")),
        ("store", json!(true)),
        ("text", json!({ "format": { "type": "text" }, "verbosity": "medium" })),
        ("top_logprobs", json!(0)),
        ("truncation", json!("disabled")),
        ("user", Value::Null),
    ] {
        responses[field] = value;
    }
    responses["output"][0]["content"][0]["logprobs"] = json!([]);
    [messages, chat, responses]
}

#[tokio::test]
async fn an_ordinary_request_to_an_ordinary_host_has_no_loss_header() {
    let upstream = ScriptedUpstream::start().await;
    let gate = gate(&upstream);
    for (host, reply) in HOSTS.iter().zip(ordinary_replies()) {
        for stream in [false, true] {
            for (path, body) in ordinary_requests(host.model, stream) {
                upstream.on(if stream {
                    (host.tail)(host.begun())
                } else {
                    Script::json(200, reply.clone())
                });
                let answer = gate.post(path, &body).await;
                let seen = (answer.status(), answer.header(LOSS));
                assert_eq!(seen, (200, ""), "{path} → {}, stream: {stream}", host.model);
                answer.text().await;
            }
        }
    }
}

#[tokio::test]
async fn real_losses_come_before_routine_ones() {
    let upstream = ScriptedUpstream::start().await;
    let gate = gate(&upstream);
    upstream.on(Script::json(200, (HOSTS[1].whole)()));
    let [(path, mut body), ..] = ask("gpt", false);
    body["system"] =
        json!([{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }]);
    body["top_k"] = json!(5);
    assert_eq!(gate.post(path, &body).await.header(LOSS), "top_k, system.cache_control");
}

#[tokio::test]
async fn the_billing_line_of_claude_code_is_dropped_without_a_loss() {
    let upstream = ScriptedUpstream::start().await;
    let gate = gate(&upstream);
    for host in &HOSTS[1..] {
        upstream.on(Script::json(200, (host.whole)()));
        let [(path, mut body), ..] = ask(host.model, false);
        let line =
            json!({ "type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=00000;" });
        body["system"] = json!([line, { "type": "text", "text": "Be brief." }]);
        assert_eq!(gate.post(path, &body).await.header(LOSS), "", "{}", host.model);
        let sent = upstream.next_request().await.json().to_string();
        assert!(sent.contains("Be brief.") && !sent.contains("cc_version"), "{sent}");
    }
}

#[tokio::test]
async fn relayed_bytes_lose_nothing() {
    let upstream = ScriptedUpstream::start().await;
    upstream.accept_anything();
    let gate = gate(&upstream);
    // A result without a call: translated, it would be sent as user text.
    let orphan = json!([{ "type": "function_call_output", "call_id": "nobody", "output": "5 C" }]);
    for store in [true, false] {
        upstream.on(Script::json(200, (HOSTS[2].whole)()));
        let mut body = json!({ "model": "resp", "input": orphan, "store": store, "unknown": { "a": 1 } });
        assert_eq!(gate.post("/v1/responses", &body).await.header(LOSS), "", "{store}");
        body["model"] = json!("gpt-4.1");
        assert_eq!(upstream.next_request().await.json(), body);
    }
}
