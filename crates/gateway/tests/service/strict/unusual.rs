//! Parts of requests that real clients send now and then, and that some hosts do not take.

use serde_json::{Value, json};

use super::clients::{Client, IMAGE};

/// Something unusual in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusual {
    /// A message of the developer's.
    Developer,
    /// Instructions in the middle of the conversation.
    LateSystem,
    /// A result with an image.
    ImageInResult,
    FailedResult,
    /// Texts of white space only.
    BlankText,
    /// The same call id twice in one message.
    SameIdTwice,
    LongToolName,
    /// The settings that both of `OpenAI`'s dialects have.
    OpenAiFields,
    /// Settings and marks that only Claude has.
    ClaudeFields,
    ManyStops,
    /// A tool that takes free text.
    CustomTool,
    NoParallel,
    ImageUrl,
    Pdf,
    /// The beginning of the reply.
    Prefill,
}

const LATE: &str = "Answer in French from now on.";
const URL: &str = "https://example.com/cat.png";
const PDF: &str = "JVBERi0xLjQKJcOkw7zDtsOfCg==";
const BEGUN: &str = "The answer is";
const LONG_NAME: &str =
    "mcp__a_server_with_a_long_name__a_tool_whose_name_is_longer_than_sixty_four_characters_in_all";

impl Unusual {
    /// Whether the client's dialect has it.
    pub(super) fn exists_in(self, client: Client) -> bool {
        match self {
            Self::Developer | Self::OpenAiFields | Self::CustomTool => client != Client::Messages,
            Self::ClaudeFields | Self::LongToolName | Self::LateSystem | Self::FailedResult => {
                client == Client::Messages
            }
            Self::ImageInResult => client != Client::Chat,
            Self::ManyStops | Self::Prefill => client != Client::Responses,
            Self::BlankText | Self::SameIdTwice | Self::NoParallel | Self::ImageUrl | Self::Pdf => true,
        }
    }

    /// Adds it to a request.
    pub(super) fn add(self, client: Client, body: &mut Value) {
        match client {
            Client::Messages => self.add_to_messages(body),
            Client::Chat => self.add_to_chat(body),
            Client::Responses => self.add_to_responses(body),
        }
    }

    fn add_to_messages(self, body: &mut Value) {
        let calls = |ids: &[&str]| {
            let call = |id: &&str| json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {}});
            json!({"role": "assistant", "content": ids.iter().map(call).collect::<Value>()})
        };
        let results = |contents: &[(&str, Value)]| {
            let result = |(id, content): &(&str, Value)| json!({"type": "tool_result", "tool_use_id": id, "content": content});
            json!({"role": "user", "content": contents.iter().map(result).collect::<Value>()})
        };
        let image =
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}});
        match self {
            Self::LateSystem => push(body, "messages", json!({"role": "system", "content": LATE})),
            Self::ImageInResult => {
                push(body, "messages", calls(&["toolu_1"]));
                push(body, "messages", results(&[("toolu_1", json!([image]))]));
            }
            Self::FailedResult => {
                push(body, "messages", calls(&["toolu_1"]));
                let mut failed = results(&[("toolu_1", json!("no such city"))]);
                failed["content"][0]["is_error"] = json!(true);
                push(body, "messages", failed);
            }
            Self::BlankText => {
                push(
                    body,
                    "messages",
                    json!({"role": "assistant", "content": [{"type": "text", "text": "\n"}]}),
                );
                let content = json!([{"type": "text", "text": " "}, {"type": "text", "text": "Well?"}]);
                push(body, "messages", json!({"role": "user", "content": content}));
            }
            Self::SameIdTwice => {
                push(body, "messages", calls(&["toolu_1", "toolu_1"]));
                let contents = [("toolu_1", json!("rain in Bern")), ("toolu_1", json!("sun in Rome"))];
                push(body, "messages", results(&contents));
            }
            Self::LongToolName => {
                push(
                    body,
                    "tools",
                    json!({"name": LONG_NAME, "input_schema": {"type": "object", "properties": {}}}),
                );
            }
            Self::ClaudeFields => {
                body["top_k"] = json!(5);
                body["system"] =
                    json!([{"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}]);
                body["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
            }
            Self::ManyStops => body["stop_sequences"] = json!(["a1", "b2", "c3", "d4", "e5", "f6"]),
            Self::NoParallel => {
                body["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": true});
            }
            Self::ImageUrl => {
                push(
                    &mut body["messages"][0],
                    "content",
                    json!({"type": "image", "source": {"type": "url", "url": URL}}),
                );
            }
            Self::Pdf => {
                let source = json!({"type": "base64", "media_type": "application/pdf", "data": PDF});
                push(&mut body["messages"][0], "content", json!({"type": "document", "source": source}));
            }
            Self::Prefill => {
                push(body, "messages", json!({"role": "assistant", "content": format!("{BEGUN} ")}));
            }
            Self::Developer | Self::OpenAiFields | Self::CustomTool => {}
        }
    }

    fn add_to_chat(self, body: &mut Value) {
        match self {
            Self::Developer => body["messages"][0]["role"] = json!("developer"),
            Self::BlankText => {
                push(body, "messages", json!({"role": "assistant", "content": "\n"}));
                push(body, "messages", json!({"role": "user", "content": "Well?"}));
            }
            Self::SameIdTwice => {
                let call = json!({"id": "call_0", "type": "function",
                                  "function": {"name": "get_weather", "arguments": "{}"}});
                push(
                    body,
                    "messages",
                    json!({"role": "assistant", "content": null, "tool_calls": [call, call]}),
                );
                for text in ["rain in Bern", "sun in Rome"] {
                    push(
                        body,
                        "messages",
                        json!({"role": "tool", "tool_call_id": "call_0", "content": text}),
                    );
                }
            }
            Self::OpenAiFields => {
                openai_fields(body);
                body["verbosity"] = json!("low");
            }
            Self::ManyStops => body["stop"] = json!(["a1", "b2", "c3", "d4"]),
            Self::CustomTool => {
                push(
                    body,
                    "tools",
                    json!({"type": "custom", "custom": {"name": "run_sql", "description": "SQL."}}),
                );
            }
            Self::NoParallel => body["parallel_tool_calls"] = json!(false),
            Self::ImageUrl => {
                let text = body["messages"][1]["content"].clone();
                body["messages"][1]["content"] =
                    json!([{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": URL}}]);
            }
            Self::Pdf => {
                let text = body["messages"][1]["content"].clone();
                let data = format!("data:application/pdf;base64,{PDF}");
                let file = json!({"filename": "a.pdf", "file_data": data});
                body["messages"][1]["content"] =
                    json!([{"type": "text", "text": text}, {"type": "file", "file": file}]);
            }
            Self::Prefill => push(body, "messages", json!({"role": "assistant", "content": BEGUN})),
            Self::LateSystem
            | Self::ImageInResult
            | Self::FailedResult
            | Self::LongToolName
            | Self::ClaudeFields => {}
        }
    }

    fn add_to_responses(self, body: &mut Value) {
        let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "get_weather", "arguments": "{}"});
        match self {
            Self::Developer => {
                let item = json!({"type": "message", "role": "developer", "content": "Be brief."});
                let input = body["input"].as_array_mut().expect("a list");
                input.insert(0, item);
            }
            Self::ImageInResult => {
                push(body, "input", call("call_0"));
                let image =
                    json!({"type": "input_image", "image_url": format!("data:image/png;base64,{IMAGE}")});
                push(
                    body,
                    "input",
                    json!({"type": "function_call_output", "call_id": "call_0", "output": [image]}),
                );
            }
            Self::BlankText => {
                push(body, "input", json!({"type": "message", "role": "assistant", "content": "\n"}));
                push(body, "input", json!({"type": "message", "role": "user", "content": "Well?"}));
            }
            Self::SameIdTwice => {
                for item in [call("call_0"), call("call_0")] {
                    push(body, "input", item);
                }
                for text in ["rain in Bern", "sun in Rome"] {
                    push(
                        body,
                        "input",
                        json!({"type": "function_call_output", "call_id": "call_0", "output": text}),
                    );
                }
            }
            Self::OpenAiFields => {
                openai_fields(body);
                body["text"] = json!({"verbosity": "low"});
            }
            Self::CustomTool => {
                push(body, "tools", json!({"type": "custom", "name": "run_sql", "description": "SQL."}));
            }
            Self::NoParallel => body["parallel_tool_calls"] = json!(false),
            Self::ImageUrl => {
                let image = json!({"type": "input_image", "image_url": URL, "detail": "auto"});
                push(&mut body["input"][0], "content", image);
            }
            Self::Pdf => {
                let data = format!("data:application/pdf;base64,{PDF}");
                let file = json!({"type": "input_file", "filename": "a.pdf", "file_data": data});
                push(&mut body["input"][0], "content", file);
            }
            Self::LateSystem
            | Self::FailedResult
            | Self::LongToolName
            | Self::ClaudeFields
            | Self::ManyStops
            | Self::Prefill => {}
        }
    }

    /// Whether it is in what the host got, and the words for it in the loss header.
    pub(super) fn find(self, received: &Value) -> (bool, &'static [&'static str]) {
        let text = received.to_string();
        let has = |part: &str| text.contains(part);
        let is_set = |field: &str| !received[field].is_null();
        match self {
            Self::Developer => (has("You help.") || has("Be brief."), &["system"]),
            Self::LateSystem => (has(LATE), &["system"]),
            Self::ImageInResult => (has(IMAGE), &["image"]),
            Self::FailedResult => (has("no such city"), &[]),
            Self::BlankText => (has("Well?"), &[]),
            Self::SameIdTwice => (has("rain in Bern") && has("sun in Rome"), &[]),
            Self::LongToolName => (has("mcp__a_server"), &[]),
            Self::OpenAiFields => (is_set("metadata"), &["metadata"]),
            Self::ClaudeFields => (is_set("top_k"), &["top_k"]),
            Self::ManyStops => (has("a1") && has("d4"), &["stop"]),
            Self::CustomTool => (has("run_sql"), &[]),
            Self::NoParallel => {
                let is_off = received["parallel_tool_calls"] == false
                    || received["tool_choice"]["disable_parallel_tool_use"] == true;
                (is_off, &["parallel"])
            }
            Self::ImageUrl => (has(URL), &["image"]),
            Self::Pdf => (has(PDF), &["document", "file"]),
            Self::Prefill => (has(BEGUN), &["prefill", "messages"]),
        }
    }
}

/// The settings that both of `OpenAI`'s dialects have in the same place.
fn openai_fields(body: &mut Value) {
    body["metadata"] = json!({"project": "x"});
    body["service_tier"] = json!("auto");
    body["prompt_cache_key"] = json!("key");
    body["safety_identifier"] = json!("someone");
}

fn push(parent: &mut Value, list: &str, item: Value) {
    if parent[list].is_null() {
        parent[list] = json!([]);
    }
    parent[list].as_array_mut().expect("a list").push(item);
}
