//! The vendors' own types as an oracle: JSON schemas generated from the official SDKs, with unknown keys refused.
//!
//! `crates/testkit/schemas/generate.py` writes them; `cargo xtask schemas` runs it.

mod check;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

/// A type of a vendor's SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schema {
    /// Anthropic's Messages API: a request.
    MessagesRequest,
    /// The same with an `anthropic-beta` header.
    MessagesBetaRequest,
    /// A whole reply.
    MessagesReply,
    /// An event of a stream.
    MessagesEvent,
    /// `OpenAI`'s Chat Completions API: a request.
    ChatRequest,
    /// A whole reply.
    ChatReply,
    /// A chunk of a stream.
    ChatEvent,
    /// `OpenAI`'s Responses API: a request.
    ResponsesRequest,
    /// A whole reply.
    ResponsesReply,
    /// An event of a stream.
    ResponsesEvent,
    /// A request to Groq.
    GroqRequest,
    /// A request to Cerebras.
    CerebrasRequest,
    /// A request to Mistral.
    MistralRequest,
    /// A request to Together.
    TogetherRequest,
}

impl Schema {
    /// Checks a value.
    ///
    /// # Errors
    /// The path of the first wrong value, and what is wrong with it.
    pub fn check(self, value: &Value) -> Result<(), String> {
        let (file, root) = self.source();
        let document = &FILES[file];
        check::check(document, &document["roots"][root], value)
    }

    /// The file and the root in it.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::MessagesRequest => ("anthropic-messages", "request"),
            Self::MessagesBetaRequest => ("anthropic-messages", "beta_request"),
            Self::MessagesReply => ("anthropic-messages", "reply"),
            Self::MessagesEvent => ("anthropic-messages", "event"),
            Self::ChatRequest => ("openai-chat", "request"),
            Self::ChatReply => ("openai-chat", "reply"),
            Self::ChatEvent => ("openai-chat", "event"),
            Self::ResponsesRequest => ("openai-responses", "request"),
            Self::ResponsesReply => ("openai-responses", "reply"),
            Self::ResponsesEvent => ("openai-responses", "event"),
            Self::GroqRequest => ("groq-chat", "request"),
            Self::CerebrasRequest => ("cerebras-chat", "request"),
            Self::MistralRequest => ("mistral-chat", "request"),
            Self::TogetherRequest => ("together-chat", "request"),
        }
    }
}

macro_rules! schema_files {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../schemas/", $name, ".json")))),*]
    };
}

/// Every file, parsed once.
#[expect(clippy::expect_used, reason = "a generated file that is not JSON is a broken checkout")]
static FILES: LazyLock<HashMap<&'static str, Value>> = LazyLock::new(|| {
    let files = schema_files![
        "anthropic-messages",
        "openai-chat",
        "openai-responses",
        "groq-chat",
        "cerebras-chat",
        "mistral-chat",
        "together-chat"
    ];
    files.into_iter().map(|(name, text)| (name, serde_json::from_str(text).expect("a JSON schema"))).collect()
});
