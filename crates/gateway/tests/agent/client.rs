//! A client of each API that keeps its own history: it sends everything every time and knows no session.

use serde_json::{Value, json};

use crate::gate::{Answer, Gate};

/// The API that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Messages,
    Chat,
    Responses,
}

/// How it wants its replies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delivery {
    Whole,
    Streamed,
}

/// Every kind of client.
pub(crate) const ALL: [(Api, Delivery); 6] = [
    (Api::Messages, Delivery::Whole),
    (Api::Messages, Delivery::Streamed),
    (Api::Chat, Delivery::Whole),
    (Api::Chat, Delivery::Streamed),
    (Api::Responses, Delivery::Whole),
    (Api::Responses, Delivery::Streamed),
];

/// A conversation as the client keeps it.
pub(crate) struct Client {
    pub(crate) api: Api,
    pub(crate) delivery: Delivery,
    /// In the form of its API.
    pub(crate) history: Vec<Value>,
    /// The messages that the model should get, as Messages API JSON.
    pub(crate) expected: Vec<Value>,
    pub(crate) tools: Vec<&'static str>,
    pub(crate) extra: Value,
    /// Further headers, such as a key or a session.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What a client reads from a reply.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// Id, name, arguments.
    pub(crate) calls: Vec<(String, String, Value)>,
    pub(crate) stop: String,
    /// Input tokens as this API counts them, and output tokens.
    pub(crate) usage: (u64, u64),
    /// In dollars.
    pub(crate) cost: Option<f64>,
    pub(crate) session: String,
    /// Whether it is the reply of an earlier turn.
    pub(crate) replayed: bool,
}

impl Client {
    pub(crate) fn new(api: Api, delivery: Delivery) -> Self {
        Self {
            api,
            delivery,
            history: Vec::new(),
            expected: Vec::new(),
            tools: vec!["get_weather", "get_time"],
            extra: json!({}),
            headers: Vec::new(),
        }
    }

    /// Adds a user message and sends the conversation.
    pub(crate) async fn say(&mut self, gate: &Gate, text: &str) -> Reply {
        self.history.push(json!({ "role": "user", "content": text }));
        self.expect_user_content(json!([{ "type": "text", "text": text }]));
        self.ask(gate).await
    }

    /// Adds a message as Messages API JSON, which the model should get unchanged.
    pub(crate) fn push(&mut self, message: Value) {
        let content = match message["content"].as_str() {
            Some(text) => json!([{ "type": "text", "text": text }]),
            None => message["content"].clone(),
        };
        self.history.push(message);
        self.expect_user_content(content);
    }

    /// Adds results, each an id and a text, and sends the conversation.
    pub(crate) async fn answer(&mut self, gate: &Gate, results: &[(&str, &str)]) -> Reply {
        self.add_results(results);
        self.ask(gate).await
    }

    pub(crate) fn add_results(&mut self, results: &[(&str, &str)]) {
        let block = |(id, text): &(&str, &str)| {
            let content = json!([{ "type": "text", "text": text }]);
            json!({ "type": "tool_result", "tool_use_id": id, "content": content })
        };
        let blocks: Vec<Value> = results.iter().map(block).collect();
        match self.api {
            Api::Messages => self.history.push(json!({ "role": "user", "content": blocks })),
            Api::Chat => self.history.extend(
                results
                    .iter()
                    .map(|(id, text)| json!({ "role": "tool", "tool_call_id": id, "content": text })),
            ),
            Api::Responses => {
                let output = |(id, text): &(&str, &str)| json!({ "type": "function_call_output", "call_id": id, "output": text });
                self.history.extend(results.iter().map(output));
            }
        }
        // The model gets results in the order of its calls.
        let calls = self.expected.last().expect("an assistant message")["content"].clone();
        let order = calls.as_array().expect("blocks").iter().filter_map(|call| call["id"].as_str());
        let ordered = order.filter_map(|id| blocks.iter().find(|block| block["tool_use_id"] == id).cloned());
        let ordered: Vec<Value> = ordered.collect();
        self.expect_user_content(json!(ordered));
    }

    /// Sends the conversation and adds the reply to it.
    pub(crate) async fn ask(&mut self, gate: &Gate) -> Reply {
        let reply = self.ask_once(gate).await;
        self.add_reply(&reply);
        reply
    }

    /// Sends the conversation; the answer may be an error.
    pub(crate) async fn send(&self, gate: &Gate) -> Answer {
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = own.chain([("content-type", "application/json")]).collect();
        gate.send(http::Method::POST, self.path(), &headers, self.body().to_string()).await
    }

    /// Sends the conversation.
    pub(crate) async fn ask_once(&self, gate: &Gate) -> Reply {
        let answer = self.send(gate).await;
        let (status, session) = (answer.status(), answer.header("x-session-id").to_owned());
        let replayed = answer.header("x-toolgate-replayed") == "true";
        let text = answer.text().await;
        assert_eq!(status, 200, "{text}");
        let mut reply = self.read(&text);
        (reply.session, reply.replayed) = (session, replayed);
        reply
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.api {
            Api::Messages => "/v1/messages",
            Api::Chat => "/v1/chat/completions",
            Api::Responses => "/v1/responses",
        }
    }

    pub(crate) fn body(&self) -> Value {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let tools: Vec<Value> = self
            .tools
            .iter()
            .map(|name| match self.api {
                Api::Messages => json!({ "name": name, "description": "d", "input_schema": schema }),
                Api::Chat => {
                    json!({ "type": "function", "function": { "name": name, "description": "d", "parameters": schema } })
                }
                Api::Responses => {
                    json!({ "type": "function", "name": name, "description": "d", "parameters": schema })
                }
            })
            .collect();
        let streamed = self.delivery == Delivery::Streamed;
        let mut body = json!({ "model": "agent", "tools": tools, "stream": streamed });
        match self.api {
            Api::Messages => {
                body["max_tokens"] = json!(1000);
                body["messages"] = json!(self.history);
            }
            Api::Chat => {
                body["messages"] = json!(self.history);
                if streamed {
                    body["stream_options"] = json!({ "include_usage": true });
                }
            }
            Api::Responses => {
                body["input"] = json!(self.history);
                body["store"] = json!(false);
            }
        }
        for (name, value) in self.extra.as_object().expect("fields") {
            body[name] = value.clone();
        }
        body
    }

    fn expect_user_content(&mut self, content: Value) {
        let Value::Array(blocks) = content else { panic!("blocks") };
        match self.expected.last_mut() {
            Some(last) if last["role"] == "user" => {
                last["content"].as_array_mut().expect("blocks").extend(blocks);
            }
            _ => self.expected.push(json!({ "role": "user", "content": blocks })),
        }
    }

    /// Adds a reply to the conversation.
    pub(crate) fn add_reply(&mut self, reply: &Reply) {
        let mut blocks: Vec<Value> = Vec::new();
        if !reply.text.is_empty() {
            blocks.push(json!({ "type": "text", "text": reply.text }));
        }
        for (id, name, input) in &reply.calls {
            blocks.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
        }
        match self.api {
            Api::Messages => self.history.push(json!({ "role": "assistant", "content": blocks })),
            Api::Chat => {
                let calls: Vec<Value> = reply
                    .calls
                    .iter()
                    .map(|(id, name, input)| {
                        let function = json!({ "name": name, "arguments": input.to_string() });
                        json!({ "id": id, "type": "function", "function": function })
                    })
                    .collect();
                let mut message = json!({ "role": "assistant", "content": reply.text });
                if !calls.is_empty() {
                    message["tool_calls"] = json!(calls);
                }
                self.history.push(message);
            }
            Api::Responses => {
                if !reply.text.is_empty() {
                    let content = json!([{ "type": "output_text", "text": reply.text }]);
                    self.history.push(json!({ "type": "message", "role": "assistant", "content": content }));
                }
                self.history.extend(reply.calls.iter().map(|(id, name, input)| {
                    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": input.to_string() })
                }));
            }
        }
        self.expected.push(json!({ "role": "assistant", "content": blocks }));
    }

    fn read(&self, text: &str) -> Reply {
        match (self.api, self.delivery) {
            (Api::Messages, Delivery::Whole) => messages_reply(&parse(text)),
            (Api::Messages, Delivery::Streamed) => messages_reply(&joined_message(&frames(text))),
            (Api::Chat, Delivery::Whole) => chat_reply(&parse(text)),
            (Api::Chat, Delivery::Streamed) => chat_reply(&joined_chunks(&frames(text))),
            (Api::Responses, Delivery::Whole) => response_reply(&parse(text)),
            (Api::Responses, Delivery::Streamed) => {
                let frames = frames(text);
                let end = frames.iter().find(|frame| frame["type"] == "response.completed");
                response_reply(&end.unwrap_or_else(|| panic!("no end in {text}"))["response"])
            }
        }
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn frames(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(parse).collect()
}

fn joined_message(frames: &[Value]) -> Value {
    let mut message =
        frames.iter().find(|frame| frame["type"] == "message_start").expect("a start")["message"].clone();
    let mut blocks: Vec<Value> = Vec::new();
    let mut arguments = String::new();
    for frame in frames {
        match frame["type"].as_str().expect("a type") {
            "content_block_start" => {
                blocks.push(frame["content_block"].clone());
                arguments.clear();
            }
            "content_block_delta" => {
                let block = blocks.last_mut().expect("an open block");
                if let Some(more) = frame["delta"]["text"].as_str() {
                    block["text"] = json!(format!("{}{more}", block["text"].as_str().unwrap_or_default()));
                }
                if let Some(more) = frame["delta"]["partial_json"].as_str() {
                    arguments.push_str(more);
                    block["input"] = serde_json::from_str(&arguments).unwrap_or(json!({}));
                }
            }
            "message_delta" => {
                message["stop_reason"] = frame["delta"]["stop_reason"].clone();
                for (name, value) in frame["usage"].as_object().expect("usage") {
                    message["usage"][name] = value.clone();
                }
            }
            "error" => panic!("{frame}"),
            _ => {}
        }
    }
    assert_eq!(frames.last().expect("frames")["type"], "message_stop");
    message["content"] = json!(blocks);
    message
}

fn joined_chunks(frames: &[Value]) -> Value {
    let mut text = String::new();
    let mut calls: Vec<(Value, Value, String)> = Vec::new();
    let (mut stop, mut usage) = (Value::Null, Value::Null);
    for frame in frames {
        assert!(frame["error"].is_null(), "{frame}");
        if !frame["usage"].is_null() {
            usage = frame["usage"].clone();
        }
        let choice = &frame["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().expect("an index")).expect("a small one");
            if index == calls.len() {
                calls.push((call["id"].clone(), call["function"]["name"].clone(), String::new()));
            }
            calls[index].2.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
        if !choice["finish_reason"].is_null() {
            stop = choice["finish_reason"].clone();
        }
    }
    let call = |(id, name, arguments): &(Value, Value, String)| json!({ "id": id, "function": { "name": name, "arguments": arguments } });
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({ "choices": [{ "message": { "content": text, "tool_calls": calls }, "finish_reason": stop }], "usage": usage })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn messages_reply(message: &Value) -> Reply {
    let mut reply = Reply { stop: text(&message["stop_reason"]), ..Reply::default() };
    for block in message["content"].as_array().expect("blocks") {
        match block["type"].as_str() {
            Some("text") => reply.text.push_str(&text(&block["text"])),
            Some("tool_use") => {
                reply.calls.push((text(&block["id"]), text(&block["name"]), block["input"].clone()));
            }
            _ => panic!("an unexpected block: {block}"),
        }
    }
    let usage = &message["usage"];
    let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    reply.usage = (input.iter().map(|name| number(&usage[name])).sum(), number(&usage["output_tokens"]));
    reply.cost = usage["cost_usd"].as_f64();
    reply
}

fn chat_reply(completion: &Value) -> Reply {
    let choice = &completion["choices"][0];
    let mut reply = Reply { text: text(&choice["message"]["content"]), ..Reply::default() };
    for call in choice["message"]["tool_calls"].as_array().into_iter().flatten() {
        let arguments = parse(call["function"]["arguments"].as_str().expect("arguments"));
        reply.calls.push((text(&call["id"]), text(&call["function"]["name"]), arguments));
    }
    reply.stop = match choice["finish_reason"].as_str() {
        Some("tool_calls") => "tool_use".to_owned(),
        Some("stop") => "end_turn".to_owned(),
        other => format!("{other:?}"),
    };
    let usage = &completion["usage"];
    reply.usage = (number(&usage["prompt_tokens"]), number(&usage["completion_tokens"]));
    reply.cost = usage["cost_usd"].as_f64();
    reply
}

fn response_reply(response: &Value) -> Reply {
    let mut reply = Reply { stop: "end_turn".to_owned(), ..Reply::default() };
    for item in response["output"].as_array().expect("output") {
        match item["type"].as_str() {
            Some("message") => reply.text.push_str(&text(&item["content"][0]["text"])),
            Some("function_call") => {
                reply.stop = "tool_use".to_owned();
                let arguments = parse(item["arguments"].as_str().expect("arguments"));
                reply.calls.push((text(&item["call_id"]), text(&item["name"]), arguments));
            }
            _ => panic!("an unexpected item: {item}"),
        }
    }
    let usage = &response["usage"];
    reply.usage = (number(&usage["input_tokens"]), number(&usage["output_tokens"]));
    reply.cost = usage["cost_usd"].as_f64();
    reply
}
