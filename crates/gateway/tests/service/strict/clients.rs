//! How a client of each dialect writes the requests of a case and continues with the reply it got.

use serde_json::{Value, json};

use super::cases::{Case, Choice, Extra, Thinking, Tool, format_schema};
use super::replies::ClientReply;

/// A client of one dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Messages,
    Chat,
    Responses,
}

/// A pixel.
pub(super) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the user says.
pub(super) const QUESTION: &str = "How is the weather?";
/// What the tool says.
const RESULT: &str = "sunny, 21 degrees";
pub(super) const STOP: &str = "THE END";
const HUGE: u64 = 999_999;

impl Client {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    /// The dialect's name in the configuration.
    pub(super) fn dialect(self) -> &'static str {
        match self {
            Self::Messages => "anthropic-messages",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
        }
    }

    /// A real model of the client's vendor, as the client names it.
    pub(super) fn alias(self) -> &'static str {
        match self {
            Self::Messages => "claude-sonnet-4-5",
            Self::Chat | Self::Responses => "gpt-5.5",
        }
    }

    pub(super) fn request(self, case: &Case, model: &str, stream: bool, thoughts: bool) -> Value {
        let mut body = match self {
            Self::Messages => messages_request(case, thoughts),
            Self::Chat => chat_request(case, thoughts),
            Self::Responses => responses_request(case, thoughts),
        };
        for extra in case.extras {
            if let Extra::Unusual(unusual) = extra {
                unusual.add(self, &mut body);
            }
        }
        body["model"] = json!(model);
        body["stream"] = json!(stream);
        if stream && self == Self::Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }

    /// Adds the reply as the client received it, and the results of its calls.
    pub(super) fn append(self, body: &mut Value, reply: &ClientReply) {
        let results = reply.calls.iter().map(|call| &call.id);
        let mut more = reply.echo.clone();
        match self {
            Self::Messages => {
                let results: Vec<Value> = results
                    .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": RESULT}))
                    .collect();
                more.push(json!({"role": "user", "content": results}));
            }
            Self::Chat => {
                more.extend(results.map(|id| json!({"role": "tool", "tool_call_id": id, "content": RESULT})));
            }
            Self::Responses => more.extend(
                results.map(|id| json!({"type": "function_call_output", "call_id": id, "output": RESULT})),
            ),
        }
        let list = if self == Self::Responses { "input" } else { "messages" };
        body[list].as_array_mut().expect("a list").extend(more);
    }
}

fn messages_request(case: &Case, thoughts: bool) -> Value {
    let mut content = vec![json!({"type": "text", "text": QUESTION})];
    let mut body = json!({"max_tokens": 4096, "system": "You help."});
    for extra in case.extras {
        match extra {
            Extra::Image => content.push(
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}),
            ),
            Extra::Format => {
                body["output_config"] = json!({"format": {"type": "json_schema", "schema": closed_schema()}});
            }
            Extra::Sampling => body["temperature"] = json!(0.5),
            Extra::Stop => body["stop_sequences"] = json!([STOP]),
            Extra::User => {
                let user = format!("user_{}_account__session_{}", "a1".repeat(32), "0b".repeat(18));
                body["metadata"] = json!({"user_id": user});
            }
            Extra::HugeLimit => body["max_tokens"] = json!(HUGE),
            Extra::ForeignHistory | Extra::Unusual(_) => {}
        }
    }
    let mut messages = vec![json!({"role": "user", "content": content})];
    if case.extras.contains(&Extra::ForeignHistory) {
        let thought =
            json!({"type": "thinking", "thinking": "Old thought.", "signature": "Zm9yZWlnbiBzZWFs"});
        let id = "toolu_01AbCdEfGhIjKlMnOpQrStUv";
        let mut said = vec![
            json!({"type": "text", "text": "I look."}),
            json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {"city": "Bern"}}),
        ];
        if thoughts {
            said.insert(0, thought);
        }
        messages.push(json!({"role": "assistant", "content": said}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": RESULT}]},
            {"type": "text", "text": "And elsewhere?"},
        ]}));
    }
    body["messages"] = json!(messages);
    match case.thinking {
        Thinking::Unsaid => {}
        Thinking::On => body["thinking"] = json!({"type": "enabled", "budget_tokens": 2048}),
        Thinking::Adaptive => {
            body["thinking"] = json!({"type": "adaptive"});
            body["output_config"] = json!({"effort": "high"});
        }
        Thinking::Off => body["thinking"] = json!({"type": "disabled"}),
    }
    if !case.tools.is_empty() {
        body["tools"] = list(
            case.tools,
            |tool| json!({"name": tool.name(), "description": "A tool.", "input_schema": tool.schema()}),
        );
    }
    match case.choice {
        Choice::Unsaid => {}
        Choice::Required => body["tool_choice"] = json!({"type": "any"}),
        Choice::Weather => body["tool_choice"] = json!({"type": "tool", "name": "get_weather"}),
    }
    body
}

fn chat_request(case: &Case, thoughts: bool) -> Value {
    let mut content = json!(QUESTION);
    let mut body = json!({});
    for extra in case.extras {
        match extra {
            Extra::Image => {
                let url = format!("data:image/png;base64,{IMAGE}");
                content = json!([
                    {"type": "text", "text": QUESTION},
                    {"type": "image_url", "image_url": {"url": url}},
                ]);
            }
            Extra::Format => {
                let schema = json!({"name": "city", "strict": true, "schema": format_schema()});
                body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
            }
            Extra::Sampling => body["temperature"] = json!(0.5),
            Extra::Stop => body["stop"] = json!([STOP]),
            Extra::User => body["user"] = json!("0123456789abcdef".repeat(4)),
            Extra::HugeLimit => body["max_completion_tokens"] = json!(HUGE),
            Extra::ForeignHistory | Extra::Unusual(_) => {}
        }
    }
    let mut messages =
        vec![json!({"role": "system", "content": "You help."}), json!({"role": "user", "content": content})];
    if case.extras.contains(&Extra::ForeignHistory) {
        let id = "call_AbCdEfGhIjKlMnOpQrStUvWx";
        let call = json!({"id": id, "type": "function",
                          "function": {"name": "get_weather", "arguments": "{\"city\":\"Bern\"}"}});
        let mut said = json!({"role": "assistant", "content": "I look.", "tool_calls": [call]});
        if thoughts {
            said["reasoning_content"] = json!("Old thought.");
        }
        messages.push(said);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": RESULT}));
        messages.push(json!({"role": "user", "content": "And elsewhere?"}));
    }
    body["messages"] = json!(messages);
    match case.thinking {
        Thinking::Unsaid => {}
        Thinking::On | Thinking::Adaptive => body["reasoning_effort"] = json!("high"),
        Thinking::Off => body["reasoning_effort"] = json!("none"),
    }
    if !case.tools.is_empty() {
        body["tools"] = list(case.tools, |tool| {
            let function =
                json!({"name": tool.name(), "description": "A tool.", "parameters": tool.schema()});
            json!({"type": "function", "function": function})
        });
    }
    match case.choice {
        Choice::Unsaid => {}
        Choice::Required => body["tool_choice"] = json!("required"),
        Choice::Weather => {
            body["tool_choice"] = json!({"type": "function", "function": {"name": "get_weather"}});
        }
    }
    body
}

fn responses_request(case: &Case, thoughts: bool) -> Value {
    let mut content = vec![json!({"type": "input_text", "text": QUESTION})];
    let mut body =
        json!({"instructions": "You help.", "store": false, "include": ["reasoning.encrypted_content"]});
    for extra in case.extras {
        match extra {
            Extra::Image => {
                let url = format!("data:image/png;base64,{IMAGE}");
                content.push(json!({"type": "input_image", "image_url": url, "detail": "auto"}));
            }
            Extra::Format => {
                let schema =
                    json!({"type": "json_schema", "name": "city", "strict": true, "schema": format_schema()});
                body["text"] = json!({"format": schema});
            }
            Extra::Sampling => body["temperature"] = json!(0.5),
            Extra::User => body["user"] = json!("0123456789abcdef".repeat(4)),
            Extra::HugeLimit => body["max_output_tokens"] = json!(HUGE),
            // The dialect has no stop sequences.
            Extra::Stop | Extra::ForeignHistory | Extra::Unusual(_) => {}
        }
    }
    let mut input = vec![json!({"type": "message", "role": "user", "content": content})];
    if case.extras.contains(&Extra::ForeignHistory) {
        let id = format!("call_{}", "Ab1".repeat(15));
        if thoughts {
            input.push(json!({
                "type": "reasoning", "id": "rs_1", "encrypted_content": "Zm9yZWlnbiBzZWFs",
                "summary": [{"type": "summary_text", "text": "Old thought."}],
            }));
        }
        let call = json!({"type": "function_call", "call_id": id, "name": "get_weather",
                          "arguments": "{\"city\":\"Bern\"}"});
        input.push(call);
        input.push(json!({"type": "function_call_output", "call_id": id, "output": RESULT}));
        input.push(json!({"type": "message", "role": "user", "content": "And elsewhere?"}));
    }
    body["input"] = json!(input);
    match case.thinking {
        Thinking::Unsaid => {}
        Thinking::On | Thinking::Adaptive => {
            body["reasoning"] = json!({"effort": "high", "summary": "auto"});
        }
        Thinking::Off => body["reasoning"] = json!({"effort": "none"}),
    }
    if !case.tools.is_empty() {
        body["tools"] = list(case.tools, |tool| {
            json!({
                "type": "function", "name": tool.name(), "description": "A tool.", "parameters": tool.schema(),
                "strict": false,
            })
        });
    }
    match case.choice {
        Choice::Unsaid => {}
        Choice::Required => body["tool_choice"] = json!("required"),
        Choice::Weather => body["tool_choice"] = json!({"type": "function", "name": "get_weather"}),
    }
    body
}

/// The schema as Anthropic's SDK sends it, without limits.
fn closed_schema() -> Value {
    let mut schema = format_schema();
    schema["properties"]["population"] = json!({"type": "integer"});
    schema
}

fn list(tools: &[Tool], write: impl Fn(Tool) -> Value) -> Value {
    tools.iter().copied().map(write).collect()
}
