//! What a client asks for in one turn.

use serde_json::Number;

use crate::extras::Extras;
use crate::ids::{ModelName, ReplyId};
use crate::json::JsonText;
use crate::message::{Message, Part};
use crate::tool::{Tool, ToolChoice};

/// One request, whatever the dialect it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRequest {
    /// The model as the client named it.
    pub model: ModelName,
    /// What stands above the conversation: Anthropic's `system`, Responses' `instructions`. System messages inside
    /// the conversation stay there (T29).
    pub system: Vec<Part>,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools on offer, in the client's order (T37).
    pub tools: Vec<Tool>,
    /// How to use them.
    pub tool_choice: ToolChoice,
    /// The most output tokens wanted.
    pub max_output: Option<u64>,
    /// How to draw tokens.
    pub sampling: Sampling,
    /// How much to think.
    pub reasoning: Option<ReasoningRequest>,
    /// What shape the answer takes.
    pub output: OutputFormat,
    /// In one piece or as it comes.
    pub delivery: Delivery,
    /// How many alternative answers (`n`); `None` means one.
    pub samples: Option<u32>,
    /// The end user, for the host's abuse detection.
    pub user: Option<String>,
    /// Continue this stored reply instead of sending the whole history.
    pub previous: Option<ReplyId>,
    /// Whether the reply is kept for a later `previous`.
    pub retention: Option<Retention>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl TurnRequest {
    /// A request with nothing but a model and a conversation.
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
            extras: Extras::NONE,
        }
    }
}

/// How to draw tokens. Numbers are kept as the client wrote them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Randomness.
    pub temperature: Option<Number>,
    /// Nucleus sampling.
    pub top_p: Option<Number>,
    /// The k likeliest tokens only.
    pub top_k: Option<Number>,
    /// OpenAI's penalty on frequent tokens.
    pub frequency_penalty: Option<Number>,
    /// OpenAI's penalty on tokens that occurred.
    pub presence_penalty: Option<Number>,
    /// For repeatable output.
    pub seed: Option<Number>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
}

/// How much to think, and how much of it to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReasoningRequest {
    /// `none`, `minimal`, `low`, `medium`, `high`, …: an open set.
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

/// What shape the answer takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutputFormat {
    /// Prose.
    #[default]
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON by this schema.
    JsonSchema(SchemaFormat),
}

/// A schema the answer follows.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaFormat {
    /// OpenAI wants a name.
    pub name: Option<String>,
    /// For the model.
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: JsonText,
    /// Whether to follow it exactly.
    pub strict: Option<bool>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// In one piece or as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One body.
    #[default]
    Whole,
    /// Server-sent events.
    Stream(UsageReport),
}

/// Whether a stream ends with token counts, where the dialect leaves the choice (`stream_options.include_usage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageReport {
    /// As the dialect does by default.
    #[default]
    Default,
    /// Asked for.
    Included,
    /// Declined.
    Omitted,
}

/// Whether a reply is kept for a later request to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Keep it.
    Keep,
    /// Do not.
    Discard,
}
