//! The three dialects, as far as the benchmark speaks them: the request a client sends and the reply a host gives.
//!
//! They are written by hand and share no code with the gateway's dialects, so that an error there is not measured
//! against itself.

mod chat;
mod messages;
mod responses;
mod written;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use written::Trigger;

/// A client API, or the dialect of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    Messages,
    Chat,
    Responses,
}

/// How a reply is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    Whole,
    Streamed,
}

/// The reply of the scripted host: a number of words, then perhaps one tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Script {
    pub(crate) words: usize,
    pub(crate) last: LastBlock,
    pub(crate) pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LastBlock {
    Text,
    ToolCall,
    /// A call written as text, after this trigger.
    WrittenCall(Trigger),
}

/// How fast the host sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pace {
    /// As fast as it can: for processor time.
    Fast,
    /// At a short fixed interval, so that events do not queue: for latency.
    Steady,
    /// With long pauses, so that many streams are open at once: for memory.
    Slow,
}

impl Dialect {
    pub(crate) const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    /// The name in the gateway's config file.
    pub(crate) fn config_name(self) -> &'static str {
        match self {
            Self::Messages => "anthropic-messages",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.path() == path)
    }

    /// A request as a coding agent sends it: instructions, a tool, and a question.
    pub(crate) fn request(self, model: &str, delivery: Delivery) -> Bytes {
        let mut request = match self {
            Self::Messages => messages::request(),
            Self::Chat => chat::request(),
            Self::Responses => responses::request(),
        };
        request["model"] = json!(model);
        request["stream"] = json!(delivery == Delivery::Streamed);
        Bytes::from(request.to_string())
    }

    /// The whole reply.
    pub(crate) fn whole(self, script: Script) -> Bytes {
        let reply = match self {
            Self::Messages => messages::whole(script),
            Self::Chat => chat::whole(script),
            Self::Responses => responses::whole(script),
        };
        Bytes::from(reply.to_string())
    }

    /// The streamed reply, one frame per event.
    pub(crate) fn frames(self, script: Script) -> Vec<Bytes> {
        match self {
            Self::Messages => messages::events(script).iter().map(named_frame).collect(),
            Self::Responses => responses::events(script).iter().map(named_frame).collect(),
            Self::Chat => {
                let mut frames: Vec<Bytes> = chat::events(script)
                    .iter()
                    .map(|event| Bytes::from(format!("data: {event}\n\n")))
                    .collect();
                frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
                frames
            }
        }
    }

    /// Text that every complete reply contains, so that a truncated reply is not measured as a fast one.
    pub(crate) fn end_mark(self, delivery: Delivery) -> &'static str {
        match (self, delivery) {
            (Self::Messages, Delivery::Streamed) => "\"message_stop\"",
            (Self::Chat, Delivery::Streamed) => "[DONE]",
            (Self::Responses, Delivery::Streamed) => "\"response.completed\"",
            (Self::Messages, Delivery::Whole) => "\"stop_reason\"",
            (Self::Chat, Delivery::Whole) => "\"finish_reason\"",
            (Self::Responses, Delivery::Whole) => "\"completed\"",
        }
    }
}

impl Script {
    /// The model name that selects this script, such as `fast-text-64`.
    fn model(self) -> String {
        let pace = match self.pace {
            Pace::Fast => "fast",
            Pace::Steady => "steady",
            Pace::Slow => "slow",
        };
        let last = match self.last {
            LastBlock::Text => "text",
            LastBlock::ToolCall => "call",
            LastBlock::WrittenCall(_) => "written",
        };
        format!("{pace}-{last}-{}", self.words)
    }

    /// The same with the upstream before it: the gateway chooses the upstream by the model's name.
    pub(crate) fn model_at(self, upstream: &str) -> String {
        format!("{upstream}/{}", self.model())
    }

    pub(crate) fn of_model(model: &str) -> Option<Self> {
        let mut parts = model.rsplit('/').next()?.split('-');
        let pace = match parts.next()? {
            "fast" => Pace::Fast,
            "steady" => Pace::Steady,
            "slow" => Pace::Slow,
            _ => return None,
        };
        let last = match parts.next()? {
            "text" => LastBlock::Text,
            "call" => LastBlock::ToolCall,
            "written" => LastBlock::WrittenCall(Trigger::DEFAULT),
            _ => return None,
        };
        Some(Self { words: parts.next()?.parse().ok()?, last, pace })
    }

    /// The same with the trigger that the request defines, if the script writes one.
    pub(crate) fn with_trigger_of(self, body: &[u8]) -> Self {
        match self.last {
            LastBlock::Text | LastBlock::ToolCall => self,
            LastBlock::WrittenCall(default_trigger) => {
                let trigger = Trigger::defined_in(body).unwrap_or(default_trigger);
                Self { last: LastBlock::WrittenCall(trigger), ..self }
            }
        }
    }

    fn pieces(self) -> impl Iterator<Item = String> {
        let call = match self.last {
            LastBlock::WrittenCall(trigger) => trigger.pieces(),
            LastBlock::Text | LastBlock::ToolCall => Vec::new(),
        };
        (0..self.words).map(|number| format!("word{number} ")).chain(call)
    }

    fn text(self) -> String {
        self.pieces().collect()
    }
}

const INSTRUCTIONS: &str = "You are a careful assistant. Use the tools you are given when they help, say what you \
    did, and keep answers short.";
const QUESTION: &str = "What is the weather in Paris today, and should I take an umbrella?";
const TOOL_NAME: &str = "get_weather";
const TOOL_TEXT: &str = "The weather in a city.";
const ARGUMENTS: &str = "{\"city\":\"Paris\"}";
const INPUT_TOKENS: usize = 100;

fn tool_schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

fn named_frame(event: &Value) -> Bytes {
    let name = event["type"].as_str().unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {event}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_asks_for_its_script() {
        let script = Script { words: 64, last: LastBlock::ToolCall, pace: Pace::Slow };
        assert_eq!(script.model(), "slow-call-64");
        assert_eq!(Script::of_model(&script.model_at("openai-chat")), Some(script));
        assert_eq!(Script::of_model("demo"), None);
        let written = Script { last: LastBlock::WrittenCall(Trigger::DEFAULT), ..script };
        assert_eq!(Script::of_model(&written.model_at("openai-chat")), Some(written));
        assert_ne!(written.with_trigger_of(b"<<CALL_0123456789>>"), written);
    }

    #[test]
    fn every_reply_carries_its_end_mark_and_every_word() {
        let script = Script { words: 64, last: LastBlock::ToolCall, pace: Pace::Fast };
        for dialect in Dialect::ALL {
            let streamed = String::from_utf8(dialect.frames(script).concat()).unwrap();
            let whole = String::from_utf8(dialect.whole(script).to_vec()).unwrap();
            assert!(streamed.contains(dialect.end_mark(Delivery::Streamed)), "{streamed}");
            assert!(whole.contains(dialect.end_mark(Delivery::Whole)), "{whole}");
            for reply in [streamed, whole] {
                assert!(
                    reply.contains("word0 ") && reply.contains("word63 ") && reply.contains(TOOL_NAME),
                    "{reply}"
                );
            }
        }
    }
}
