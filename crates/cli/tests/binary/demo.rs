//! The demo model in every dialect, whole and streamed, with and without tools.

use serde_json::{Value, json};

use crate::gateway_process::GatewayProcess;
use crate::http_client::Reply;

/// One client API: how to build a request, and where a reply has its text and calls.
struct Api {
    path: &'static str,
    ask: fn(&str) -> Value,
    with_tool: fn(Value) -> Value,
    text: fn(&Value) -> &Value,
    /// The first call's name and arguments.
    call: fn(&Value) -> (Value, Value),
    /// The last frame of a stream.
    last_frame: fn(&str, &str) -> bool,
    /// The text that a frame appends.
    text_delta: fn(&Value) -> &Value,
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

fn parsed(arguments: &Value) -> Value {
    serde_json::from_str(arguments.as_str().unwrap()).unwrap()
}

fn first_of<'v>(items: &'v Value, kind: &str) -> &'v Value {
    items.as_array().unwrap().iter().find(|item| item["type"] == kind).unwrap_or(&Value::Null)
}

const MESSAGES: Api = Api {
    path: "/v1/messages",
    ask: |text| json!({"model": "demo", "max_tokens": 500, "messages": [{"role": "user", "content": text}]}),
    with_tool: |mut body| {
        body["tools"] = json!([{"name": "get_weather", "input_schema": schema()}]);
        body
    },
    text: |reply| &reply["content"][0]["text"],
    call: |reply| {
        let call = first_of(&reply["content"], "tool_use");
        (call["name"].clone(), call["input"].clone())
    },
    last_frame: |event, _| event == "message_stop",
    text_delta: |data| &data["delta"]["text"],
};

const CHAT_COMPLETIONS: Api = Api {
    path: "/v1/chat/completions",
    ask: |text| json!({"model": "demo", "messages": [{"role": "user", "content": text}]}),
    with_tool: |mut body| {
        body["tools"] =
            json!([{"type": "function", "function": {"name": "get_weather", "parameters": schema()}}]);
        body
    },
    text: |reply| &reply["choices"][0]["message"]["content"],
    call: |reply| {
        let call = &reply["choices"][0]["message"]["tool_calls"][0]["function"];
        (call["name"].clone(), parsed(&call["arguments"]))
    },
    last_frame: |_, data| data == "[DONE]",
    text_delta: |data| &data["choices"][0]["delta"]["content"],
};

const RESPONSES: Api = Api {
    path: "/v1/responses",
    ask: |text| json!({"model": "demo", "input": text}),
    with_tool: |mut body| {
        body["tools"] = json!([{"type": "function", "name": "get_weather", "parameters": schema()}]);
        body
    },
    text: |reply| &first_of(&reply["output"], "message")["content"][0]["text"],
    call: |reply| {
        let call = first_of(&reply["output"], "function_call");
        (call["name"].clone(), parsed(&call["arguments"]))
    },
    last_frame: |event, _| event == "response.completed",
    text_delta: |data| {
        if data["type"] == "response.output_text.delta" { &data["delta"] } else { &Value::Null }
    },
};

fn ask(gateway: &GatewayProcess, api: &Api, body: &Value) -> Reply {
    let reply = gateway.post(api.path, body);
    assert_eq!(reply.status, 200, "{}: {}", api.path, reply.body);
    reply
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

#[test]
fn the_demo_model_serves_messages() {
    check(&MESSAGES);
}

#[test]
fn the_demo_model_serves_chat_completions() {
    check(&CHAT_COMPLETIONS);
}

#[test]
fn the_demo_model_serves_responses() {
    check(&RESPONSES);
}

/// Requests a greeting and a tool call, whole and streamed.
fn check(api: &Api) {
    let gateway = GatewayProcess::without_config();
    let hello = (api.ask)("Hello there");
    let whole = ask(&gateway, api, &hello).json();
    let text = (api.text)(&whole).as_str().unwrap_or_else(|| panic!("no text: {whole}"));
    assert!(!text.is_empty(), "{whole}");

    // The whole reply has the same text as the stream.
    let frames = ask(&gateway, api, &streamed(hello)).frames();
    let last = frames.last().unwrap();
    assert!((api.last_frame)(&last.event, &last.data), "{last:?}");
    let pieces = frames.iter().filter_map(|frame| serde_json::from_str::<Value>(&frame.data).ok());
    let together: String =
        pieces.filter_map(|data| (api.text_delta)(&data).as_str().map(str::to_owned)).collect();
    assert_eq!(together, text);

    let weather = (api.with_tool)((api.ask)("call get_weather for Paris"));
    let whole = ask(&gateway, api, &weather).json();
    assert_eq!((api.call)(&whole), (json!("get_weather"), json!({"city": "Paris"})), "{whole}");
    let streamed = ask(&gateway, api, &streamed(weather)).body;
    assert!(streamed.contains("get_weather"), "{streamed}");
}

#[test]
fn the_printed_curl_line_works() {
    let mut gateway = GatewayProcess::without_config();
    let line = gateway.curl_line();
    assert!(line.contains(&format!("http://{}/v1/messages", gateway.address)), "{line}");
    let body = line.split('\'').find(|part| part.starts_with('{')).unwrap();
    let reply = gateway.post("/v1/messages", &serde_json::from_str(body).unwrap());
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[test]
fn the_ready_message_shows_config_store_and_models() {
    let mut gateway = GatewayProcess::without_config();
    gateway.curl_line();
    for found in ["no file", "toolgate.db", "demo", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        assert!(gateway.greeting.contains(found), "{found} is missing:\n{}", gateway.greeting);
    }
    assert_eq!(gateway.get("/healthz").status, 200);
    let models = gateway.get("/v1/models").json();
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "demo"), "{models}");
}

#[test]
fn an_unknown_model_is_an_error_with_a_suggestion() {
    let gateway = GatewayProcess::without_config();
    let body = json!({"model": "dmeo", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    let reply = gateway.post("/v1/messages", &body);
    assert_eq!(reply.status, 404, "{}", reply.body);
    let message = reply.json()["error"]["message"].clone();
    assert!(message.as_str().unwrap().contains("did you mean demo?"), "{message}");
}
