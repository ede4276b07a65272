//! The three dialects, as far as the benchmark speaks them: the request a client sends and the reply a host gives.
//!
//! These are written by hand and apart from the gateway's own codecs, so that a mistake there is not measured
//! against itself.

mod chat;
mod messages;
mod responses;
mod written;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use written::Trigger;

/// Who speaks: a client API, or the dialect of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    Messages,
    Chat,
    Responses,
}

/// How a reply is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    Whole,
    Streamed,
}

/// What the scripted host says: so many words, and then perhaps one tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Script {
    pub(crate) words: usize,
    pub(crate) ending: Ending,
    pub(crate) pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
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
    /// By a short exact beat, so that a stream is not measured in its own traffic jam: for latency.
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

    /// The streamed reply, an event a frame.
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

    /// What stands in every reply that is complete, so that a broken one is not measured as a fast one.
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
    /// The model name that asks for this script, as in `fast-text-64`.
    fn model(self) -> String {
        let pace = match self.pace {
            Pace::Fast => "fast",
            Pace::Steady => "steady",
            Pace::Slow => "slow",
        };
        let ending = match self.ending {
            Ending::Text => "text",
            Ending::ToolCall => "call",
            Ending::WrittenCall(_) => "written",
        };
        format!("{pace}-{ending}-{}", self.words)
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
        let ending = match parts.next()? {
            "text" => Ending::Text,
            "call" => Ending::ToolCall,
            "written" => Ending::WrittenCall(Trigger::UNTAUGHT),
            _ => return None,
        };
        Some(Self { words: parts.next()?.parse().ok()?, ending, pace })
    }

    /// The same with the trigger that the request teaches, where the script writes one.
    pub(crate) fn taught_by(self, body: &[u8]) -> Self {
        match self.ending {
            Ending::Text | Ending::ToolCall => self,
            Ending::WrittenCall(untaught) => {
                let trigger = Trigger::taught_in(body).unwrap_or(untaught);
                Self { ending: Ending::WrittenCall(trigger), ..self }
            }
        }
    }

    fn pieces(self) -> impl Iterator<Item = String> {
        let call = match self.ending {
            Ending::WrittenCall(trigger) => trigger.pieces(),
            Ending::Text | Ending::ToolCall => Vec::new(),
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
        let script = Script { words: 64, ending: Ending::ToolCall, pace: Pace::Slow };
        assert_eq!(script.model(), "slow-call-64");
        assert_eq!(Script::of_model(&script.model_at("openai-chat")), Some(script));
        assert_eq!(Script::of_model("demo"), None);
        let written = Script { ending: Ending::WrittenCall(Trigger::UNTAUGHT), ..script };
        assert_eq!(Script::of_model(&written.model_at("openai-chat")), Some(written));
        assert_ne!(written.taught_by(b"<<CALL_0123456789>>"), written);
    }

    #[test]
    fn every_reply_carries_its_end_mark_and_every_word() {
        let script = Script { words: 64, ending: Ending::ToolCall, pace: Pace::Fast };
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
