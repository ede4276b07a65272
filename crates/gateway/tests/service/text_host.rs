//! A scripted text-only host, requests to it in every API, and helpers that find the calls in the replies.

use serde_json::{Value, json};
use toolgate_backend::config::{BackendConfig, Tools, TriggerSecret, UpstreamName, Via};
use toolgate_prompted::PromptedOptions;
use toolgate_testkit::{Received, Script, ScriptedUpstream};

use crate::gate::{Gate, config, host, route};

/// Stands for the trigger in the host's text.
const MARK: &str = "§";

pub(crate) const CALL: &str = "Let me look.\n§\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n\
                    <parameter name=\"days\">3</parameter>\n</invoke>\n";

pub(crate) const RESULT: &str = "18 degrees and rain";

pub(crate) fn gate(upstream: &ScriptedUpstream, options: PromptedOptions) -> Gate {
    gate_before(upstream, "openai-chat", options)
}

/// A gateway in front of a text-only host with this dialect.
pub(crate) fn gate_before(
    upstream: &ScriptedUpstream,
    dialect: &'static str,
    options: PromptedOptions,
) -> Gate {
    let mut model = route("text", &[Via::Upstream(UpstreamName::new("gpt"))]);
    model.tools = Tools::Prompted(options);
    let backends = BackendConfig {
        upstreams: vec![host("gpt", dialect, upstream)],
        models: vec![model],
        trigger_secret: Some(TriggerSecret::new([7; 32])),
        ..BackendConfig::default()
    };
    Gate::start(&config(), backends)
}

/// The trigger in the prompt that the host received.
pub(crate) fn trigger_in(received: &Received) -> String {
    let body = String::from_utf8(received.body.to_vec()).expect("text");
    let start = body.find("<<CALL_").unwrap_or_else(|| panic!("no trigger in {body}"));
    let end = start + body[start..].find(">>").expect("the trigger's end") + 2;
    body[start..end].to_owned()
}

/// A reply of the host with this text, streamed in small chunks or whole, as requested.
pub(crate) fn say(received: &Received, text: &str, finish: &str) -> Script {
    let text = if text.contains(MARK) { text.replace(MARK, &trigger_in(received)) } else { text.to_owned() };
    let usage = json!({ "prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49 });
    if received.json()["stream"] != true {
        let message = json!({ "role": "assistant", "content": text });
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
        return Script::json(
            200,
            json!({ "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage }),
        );
    }
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] })
    };
    let characters: Vec<char> = text.chars().collect();
    let script = characters.chunks(5).fold(Script::sse(), |script, piece| {
        let piece: String = piece.iter().collect();
        script.frame("", chunk(json!({ "content": piece }), Value::Null))
    });
    let counts = json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage });
    script.frame("", chunk(json!({}), json!(finish))).frame("", counts).frame("", "[DONE]")
}

/// The same question with the same tool in each API: (path, body).
pub(crate) fn questions(stream: bool) -> [(&'static str, Value); 3] {
    let schema = json!({
        "type": "object", "required": ["city"],
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } }
    });
    let asked = json!([{ "role": "user", "content": "Weather in Paris?" }]);
    let messages_tool = json!({ "name": "get_weather", "description": "Weather.", "input_schema": schema });
    let function = json!({ "name": "get_weather", "description": "Weather.", "parameters": schema });
    let chat_tool = json!({ "type": "function", "function": function });
    let responses_tool =
        json!({ "type": "function", "name": "get_weather", "parameters": schema, "strict": false });
    [
        (
            "/v1/messages",
            json!({ "model": "text", "max_tokens": 500, "messages": asked, "tools": [messages_tool], "stream": stream }),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "text", "messages": asked, "tools": [chat_tool], "stream": stream }),
        ),
        (
            "/v1/responses",
            json!({ "model": "text", "input": asked, "tools": [responses_tool], "stream": stream }),
        ),
    ]
}

/// The call in a whole reply: (id, name, arguments).
pub(crate) fn call_in(path: &str, reply: &Value) -> (String, String, Value) {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no call in {reply}")).to_owned();
    let parsed = |value: &Value| serde_json::from_str(&text(value)).expect("JSON arguments");
    let typed = |list: &Value, kind: &str| {
        let items = list.as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {reply}"))
    };
    match path {
        "/v1/messages" => {
            assert_eq!(reply["stop_reason"], "tool_use");
            let call = typed(&reply["content"], "tool_use");
            (text(&call["id"]), text(&call["name"]), call["input"].clone())
        }
        "/v1/chat/completions" => {
            assert_eq!(reply["choices"][0]["finish_reason"], "tool_calls");
            let call = &reply["choices"][0]["message"]["tool_calls"][0];
            let function = &call["function"];
            (text(&call["id"]), text(&function["name"]), parsed(&function["arguments"]))
        }
        _ => {
            let call = typed(&reply["output"], "function_call");
            (text(&call["call_id"]), text(&call["name"]), parsed(&call["arguments"]))
        }
    }
}

/// The data of all SSE frames.
pub(crate) fn frames(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// The concatenated arguments of a streamed call.
pub(crate) fn streamed_arguments(path: &str, stream: &str) -> Value {
    let pieces = frames(stream).into_iter().filter_map(|frame| {
        let piece = match path {
            "/v1/messages" => &frame["delta"]["partial_json"],
            "/v1/chat/completions" => &frame["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"],
            _ if frame["type"] == "response.function_call_arguments.delta" => &frame["delta"],
            _ => &Value::Null,
        };
        piece.as_str().map(str::to_owned)
    });
    let joined: String = pieces.collect();
    serde_json::from_str(&joined).unwrap_or_else(|error| panic!("{error}: {joined} in {stream}"))
}

/// The next request of the conversation, with the call and its result.
pub(crate) fn with_result(path: &str, mut body: Value, id: &str) -> Value {
    let arguments = r#"{"city":"Paris","days":3}"#;
    let (list, said) = match path {
        "/v1/messages" => {
            let input = json!({ "city": "Paris", "days": 3 });
            let call = json!({ "type": "tool_use", "id": id, "name": "get_weather", "input": input });
            let result = json!({ "type": "tool_result", "tool_use_id": id, "content": RESULT });
            (
                "messages",
                [
                    json!({ "role": "assistant", "content": [call] }),
                    json!({ "role": "user", "content": [result] }),
                ],
            )
        }
        "/v1/chat/completions" => {
            let function = json!({ "name": "get_weather", "arguments": arguments });
            let call = json!({ "id": id, "type": "function", "function": function });
            let result = json!({ "role": "tool", "tool_call_id": id, "content": RESULT });
            ("messages", [json!({ "role": "assistant", "content": null, "tool_calls": [call] }), result])
        }
        _ => {
            let call = json!({ "type": "function_call", "call_id": id, "name": "get_weather", "arguments": arguments });
            ("input", [call, json!({ "type": "function_call_output", "call_id": id, "output": RESULT })])
        }
    };
    body[list].as_array_mut().expect("a list").extend(said);
    body
}

/// Asserts that the host received no tools, calls or results except as text.
pub(crate) fn assert_text_only(received: &Received) {
    let body = received.json();
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
    for message in body["messages"].as_array().expect("messages") {
        assert!(message.get("tool_calls").is_none() && message["role"] != "tool", "{message}");
    }
}

/// Makes the host omit the city in its call and supply it when requested.
pub(crate) fn omit_the_city(upstream: &ScriptedUpstream) {
    upstream.always(|received| {
        let is_side_request =
            String::from_utf8_lossy(&received.body).contains("is missing the required parameter");
        let incomplete =
            "§\n<invoke name=\"get_weather\">\n<parameter name=\"days\">3</parameter>\n</invoke>\n";
        say(received, if is_side_request { "Paris" } else { incomplete }, "stop")
    });
}
