//! A client's request for one turn.

use serde_json::Number;

use crate::extras::{Extras, Fields};
use crate::ids::{ModelName, ReplyId};
use crate::json::JsonText;
use crate::message::{Message, Part};
use crate::tool::{Tool, ToolChoice};

/// A request, independent of its dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRequest {
    /// The model as the client named it.
    pub model: ModelName,
    /// The system prompt: Anthropic's `system`, Responses' `instructions`. System messages inside the conversation stay
    /// in `messages` (T29).
    pub system: Vec<Part>,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The offered tools, in the client's order (T37).
    pub tools: Vec<Tool>,
    /// The tool choice.
    pub tool_choice: ToolChoice,
    /// The maximum number of output tokens.
    pub max_output: Option<u64>,
    /// Sampling settings.
    pub sampling: Sampling,
    /// Reasoning settings.
    pub reasoning: Option<ReasoningRequest>,
    /// The output format.
    pub output: OutputFormat,
    /// Whole or streamed.
    pub delivery: Delivery,
    /// The number of choices (`n`); `None` means one.
    pub samples: Option<u32>,
    /// The end user, for the host's abuse detection.
    pub user: Option<String>,
    /// The stored reply that this request continues.
    pub previous: Option<ReplyId>,
    /// Whether the reply is stored for a later `previous`.
    pub retention: Option<Retention>,
    /// Settings that OpenAI's dialects share.
    pub openai: OpenAiOptions,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl TurnRequest {
    /// A request with a model and a conversation only.
    pub fn new(model: impl Into<ModelName>, messages: Vec<Message>) -> Self {
        Self {
            model: model.into(),
            system: Vec::new(),
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::default(),
            max_output: None,
            sampling: Sampling::default(),
            reasoning: None,
            output: OutputFormat::Text,
            delivery: Delivery::Whole,
            samples: None,
            user: None,
            previous: None,
            retention: None,
            openai: OpenAiOptions::default(),
            extras: Extras::NONE,
        }
    }
}

/// Sampling settings. Numbers are kept as the client wrote them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// The temperature.
    pub temperature: Option<Number>,
    /// Nucleus sampling.
    pub top_p: Option<Number>,
    /// Sample from the k most likely tokens only.
    pub top_k: Option<Number>,
    /// OpenAI's penalty on frequent tokens.
    pub frequency_penalty: Option<Number>,
    /// OpenAI's penalty on tokens that already occurred.
    pub presence_penalty: Option<Number>,
    /// The seed for reproducible output.
    pub seed: Option<Number>,
    /// Stop sequences.
    pub stop: Vec<String>,
}

/// How much to reason, and how much of it to return.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReasoningRequest {
    /// `none`, `minimal`, `low`, `medium`, `high` or a newer value.
    pub effort: Option<String>,
    /// A token budget (Anthropic's `budget_tokens`).
    pub budget: Option<u64>,
    /// Anthropic's `thinking.type`: `enabled`, `disabled`, `adaptive`.
    pub mode: Option<String>,
    /// Responses' `summary`: `auto`, `concise`, `detailed`.
    pub summary: Option<String>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Settings that both of OpenAI's dialects have. Few other hosts accept them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenAiOptions {
    /// How long the answer should be: `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    /// Groups requests with the same beginning, for the host's prompt cache.
    pub prompt_cache_key: Option<String>,
    /// How long the host's prompt cache keeps the prompt: `in_memory`, `24h`.
    pub prompt_cache_retention: Option<String>,
    /// The price and speed: `auto`, `default`, `flex`, `priority`.
    pub service_tier: Option<String>,
    /// Labels for the host's own records.
    pub metadata: Fields,
    /// The end user, in the newer of the two fields.
    pub safety_identifier: Option<String>,
    /// Whether the reply contains the probabilities of its tokens.
    pub logprobs: Option<bool>,
    /// How many alternatives to list for each token.
    pub top_logprobs: Option<u64>,
}

impl OpenAiOptions {
    /// The names of the settings that are given.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let Self {
            verbosity,
            prompt_cache_key,
            prompt_cache_retention,
            service_tier,
            metadata,
            safety_identifier,
            logprobs,
            top_logprobs,
        } = self;
        let given = [
            ("verbosity", verbosity.is_some()),
            ("prompt_cache_key", prompt_cache_key.is_some()),
            ("prompt_cache_retention", prompt_cache_retention.is_some()),
            ("service_tier", service_tier.is_some()),
            ("metadata", !metadata.is_empty()),
            ("safety_identifier", safety_identifier.is_some()),
            ("logprobs", *logprobs == Some(true)),
            ("top_logprobs", top_logprobs.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// The output format.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutputFormat {
    /// Text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that follows a schema.
    JsonSchema(SchemaFormat),
}

/// The schema of the output.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaFormat {
    /// The name, which OpenAI requires.
    pub name: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: JsonText,
    /// Whether the output must follow it exactly.
    pub strict: Option<bool>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Whole or streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One body.
    #[default]
    Whole,
    /// Server-sent events.
    Stream(UsageReport),
}

/// Whether a stream ends with token counts, if the dialect makes it optional (`stream_options.include_usage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageReport {
    /// The dialect's default.
    #[default]
    Default,
    /// Requested.
    Included,
    /// Declined.
    Omitted,
}

/// Whether a reply is stored, so that a later request can continue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Store it.
    Keep,
    /// Do not store it.
    Discard,
}
