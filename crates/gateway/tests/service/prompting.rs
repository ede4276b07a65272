//! Tools for a model that only knows text, in every API: the host sees no tools, the client sees calls.

use serde_json::{Value, json};
use toolgate_backend::config::{BackendConfig, Tools, TriggerSecret, UpstreamName, Via};
use toolgate_prompted::Options;
use toolgate_testkit::{Received, Script, ScriptedUpstream};

use crate::gate::{Gate, config, host, route};

/// Stands for the trigger in what the host says.
const MARK: &str = "§";

pub(crate) const CALL: &str = "Let me look.\n§\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n\
                    <parameter name=\"days\">3</parameter>\n</invoke>\n";

pub(crate) const RESULT: &str = "18 degrees and rain";

pub(crate) fn gate(upstream: &ScriptedUpstream, options: Options) -> Gate {
    gate_before(upstream, "openai-chat", options)
}

/// A gateway in front of a text-only host that speaks this dialect.
pub(crate) fn gate_before(upstream: &ScriptedUpstream, dialect: &'static str, options: Options) -> Gate {
    let mut model = route("text", &[Via::Upstream(UpstreamName::new("gpt"))]);
    model.tools = Tools::Prompted(options);
    let backends = BackendConfig {
        agents: Vec::new(),
        upstreams: vec![host("gpt", dialect, upstream)],
        models: vec![model],
        trigger_secret: Some(TriggerSecret::new([7; 32])),
    };
    Gate::start(&config(), backends)
}

/// The trigger that the host was taught.
pub(crate) fn trigger_in(received: &Received) -> String {
    let body = String::from_utf8(received.body.to_vec()).expect("text");
    let start = body.find("<<CALL_").unwrap_or_else(|| panic!("no trigger in {body}"));
    let end = start + body[start..].find(">>").expect("the trigger's end") + 2;
    body[start..end].to_owned()
}

/// The host says this text, as a stream of small pieces or whole, as it was asked.
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
    let letters: Vec<char> = text.chars().collect();
    let script = letters.chunks(5).fold(Script::sse(), |script, piece| {
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

/// The data of a stream's frames.
pub(crate) fn frames(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// The arguments in a stream, put together.
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

/// The next request of a conversation: the call and its result.
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

/// Nothing of the tools reaches the host but as text.
fn assert_text_only(received: &Received) {
    let body = received.json();
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
    for message in body["messages"].as_array().expect("messages") {
        assert!(message.get("tool_calls").is_none() && message["role"] != "tool", "{message}");
    }
}

#[tokio::test]
async fn a_whole_reply_of_text_becomes_a_call_and_its_result_becomes_text() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let answered = String::from_utf8_lossy(&received.body).contains(RESULT);
        say(received, if answered { "Take an umbrella." } else { CALL }, "stop")
    });
    let gate = gate(&upstream, Options::default());
    for (path, body) in questions(false) {
        let reply = gate.post(path, &body).await.json().await;
        let (id, name, arguments) = call_in(path, &reply);
        assert_eq!(
            (name.as_str(), arguments),
            ("get_weather", json!({ "city": "Paris", "days": 3 })),
            "{path}"
        );
        let first = upstream.next_request().await;
        assert_text_only(&first);

        let reply = gate.post(path, &with_result(path, body, &id)).await.text().await;
        assert!(reply.contains("Take an umbrella."), "{path}: {reply}");
        let second = upstream.next_request().await;
        assert_text_only(&second);
        assert_eq!(trigger_in(&second), trigger_in(&first), "{path}: the host's cache keeps the prompt");
    }
}

#[tokio::test]
async fn a_stream_of_text_becomes_a_streamed_call() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| say(received, CALL, "stop"));
    let gate = gate(&upstream, Options::default());
    for (path, body) in questions(true) {
        let stream = gate.post(path, &body).await.text().await;
        assert_eq!(streamed_arguments(path, &stream), json!({ "city": "Paris", "days": 3 }), "{path}");
        assert!(!stream.contains("<<CALL_") && !stream.contains("<invoke"), "{path}: {stream}");
        assert!(stream.contains("Let m"), "{path}: {stream}");
        assert_text_only(&upstream.next_request().await);
        if path == "/v1/messages" {
            assert!(stream.contains(r#""output_tokens":9"#), "the host's counts are kept: {stream}");
        }
    }
}

#[tokio::test]
async fn text_and_arguments_leave_while_the_host_still_writes() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, CALL, "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        // The end of the call is among the frames held back.
        let (begun, rest) = steps.split_at(steps.len() - 8);
        let held = begun.iter().cloned().fold(Script::sse(), Script::step).gate("rest");
        rest.iter().cloned().fold(held, Script::step)
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let mut answer = gate.post(path, &body).await;
    let before = answer.until("aris").await;
    assert!(before.contains("Let m") && before.contains("get_weather"), "{before}");
    assert!(!before.contains("message_stop"), "{before}");
    upstream.open("rest");
    assert!(answer.text().await.contains("message_stop"));
}

#[tokio::test]
async fn a_host_that_breaks_off_is_an_error_and_no_finished_call() {
    // T17
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, CALL, "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        steps[..steps.len() - 6].iter().cloned().fold(Script::sse(), Script::step).cut()
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(stream.contains("event: error") && !stream.contains("message_stop"), "{stream}");
}

#[tokio::test]
async fn a_host_that_talks_on_after_its_calls_is_left() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let script = say(received, &format!("{CALL}\nResult: sunny, as I made up."), "stop");
        let steps: Vec<_> = script.steps().cloned().collect();
        // Everything but the finish and the end, and then silence.
        let said = steps[..steps.len() - 3].iter().cloned();
        said.fold(Script::sse(), Script::step).stall()
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(stream.contains("message_stop") && stream.contains("tool_use"), "{stream}");
    assert!(!stream.contains("made up"), "{stream}");
    upstream.disconnected().await;
}

#[tokio::test]
async fn a_value_that_a_call_lacks_is_asked_for_once() {
    // P26
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let is_question = String::from_utf8_lossy(&received.body).contains("lacks its required parameter");
        let lacking = "§\n<invoke name=\"get_weather\">\n<parameter name=\"days\">3</parameter>\n</invoke>\n";
        say(received, if is_question { "Paris" } else { lacking }, "stop")
    });
    let gate = gate(&upstream, Options::default());
    for stream in [false, true] {
        let [(path, body), ..] = questions(stream);
        let answer = gate.post(path, &body).await.text().await;
        let arguments = if stream {
            streamed_arguments(path, &answer)
        } else {
            call_in(path, &serde_json::from_str(&answer).expect("JSON")).2
        };
        assert_eq!(arguments, json!({ "days": 3, "city": "Paris" }));
    }
    assert_eq!(upstream.requests().len(), 4);
}

#[tokio::test]
async fn only_one_value_a_turn_is_asked_for() {
    // P26
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let is_question = String::from_utf8_lossy(&received.body).contains("lacks its required parameter");
        let lacking = "<invoke name=\"get_weather\">\n<parameter name=\"days\">3</parameter>\n</invoke>\n";
        if is_question {
            say(received, "Paris", "stop")
        } else {
            say(received, &format!("§\n{lacking}{lacking}"), "stop")
        }
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(false);
    let reply = gate.post(path, &body).await.json().await;
    let inputs: Vec<&Value> =
        reply["content"].as_array().expect("blocks").iter().map(|call| &call["input"]).collect();
    assert_eq!(inputs, [&json!({ "days": 3, "city": "Paris" }), &json!({ "days": 3 })]);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_call_that_was_cut_goes_on() {
    // P28
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let (start, rest) = CALL.split_at(CALL.find("ris<").expect("a place to cut"));
        if String::from_utf8_lossy(&received.body).contains("Your answer was cut off") {
            say(received, rest, "stop")
        } else {
            say(received, start, "length")
        }
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert_eq!(streamed_arguments(path, &stream), json!({ "city": "Paris", "days": 3 }));
    assert!(stream.contains("\"tool_use\""), "{stream}");
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_continuation_that_fails_leaves_the_reply_as_it_is() {
    // P28
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        if String::from_utf8_lossy(&received.body).contains("Your answer was cut off") {
            return Script::json(
                400,
                json!({ "error": { "message": "no", "type": "invalid_request_error" } }),
            );
        }
        say(received, &CALL[..CALL.find("ris<").expect("a place to cut")], "length")
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let stream = gate.post(path, &body).await.text().await;
    assert!(stream.contains("\"max_tokens\"") && stream.contains("message_stop"), "{stream}");
}

#[tokio::test]
async fn a_model_that_must_call_and_does_not_is_told_once() {
    // P32
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|received| {
        let told = String::from_utf8_lossy(&received.body).contains("You announced no call");
        say(received, if told { CALL } else { "I would rather not." }, "stop")
    });
    let gate = gate(&upstream, Options::default());
    let [(path, mut body), ..] = questions(false);
    body["tool_choice"] = json!({ "type": "any" });
    let reply = gate.post(path, &body).await.json().await;
    assert_eq!(call_in(path, &reply).1, "get_weather");
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_request_without_tools_is_relayed_byte_for_byte() {
    const REPLY: &str = r#"{"id":"c1", "object":"chat.completion","created":1,"model":"m","odd":1.50,"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
    let upstream = ScriptedUpstream::start().await;
    upstream.on(Script::json(200, REPLY));
    let gate = gate(&upstream, Options::default());
    let body = json!({ "model": "text", "messages": [{ "role": "user", "content": "hello" }], "odd": 1.50 });
    assert_eq!(gate.post("/v1/chat/completions", &body).await.text().await, REPLY);
    assert_eq!(upstream.next_request().await.body, body.to_string());
}

#[tokio::test]
async fn an_error_of_the_host_is_told_as_ever() {
    let upstream = ScriptedUpstream::start().await;
    upstream.always(|_| {
        Script::json(400, json!({ "error": { "message": "too long", "type": "invalid_request_error" } }))
    });
    let gate = gate(&upstream, Options::default());
    let [(path, body), ..] = questions(true);
    let answer = gate.post(path, &body).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json().await["error"]["message"], "too long");
}
