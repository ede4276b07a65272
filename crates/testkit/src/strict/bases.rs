//! Hosts that several rows of the table have in common; a row says what differs.

use super::memory::ReasoningField;
use super::profile::{Back, CallIds, Quirk, Rule, StrictDialect, StrictProfile, Thinking};
use super::refusal::ErrorFormat;
use crate::Schema;

/// `OpenAI`'s own endpoint; other rows say what differs.
pub(super) const OPENAI: StrictProfile = StrictProfile {
    name: "openai",
    model: "gpt-4o-mini",
    dialect: StrictDialect::Chat,
    schema: Some(Schema::ChatRequest),
    more_fields: &[],
    only_fields: "",
    thinking: Thinking::OpenAi,
    efforts: &[],
    reasoning: ReasoningField::Hidden,
    back: Back::Refused,
    ids: CallIds::OpenAi,
    rules: &[Rule::OpenAiFamily, Rule::UserAtMost(64), Rule::StopsAtMost(4)],
    errors: ErrorFormat::OpenAi,
    style: &[],
};

pub(super) const RESPONSES: StrictProfile = StrictProfile {
    dialect: StrictDialect::Responses,
    schema: Some(Schema::ResponsesRequest),
    reasoning: ReasoningField::Sealed,
    back: Back::Wanted,
    rules: &[Rule::OpenAiFamily],
    ..OPENAI
};

pub(super) const CLAUDE: StrictProfile = StrictProfile {
    name: "anthropic",
    model: "claude-sonnet-4-5",
    dialect: StrictDialect::Messages,
    schema: Some(Schema::MessagesRequest),
    // The newest SDK has dropped them; older models still take them.
    more_fields: &["temperature", "top_p", "top_k"],
    thinking: Thinking::Claude,
    reasoning: ReasoningField::Sealed,
    back: Back::Wanted,
    ids: CallIds::Claude,
    rules: &[],
    errors: ErrorFormat::Anthropic,
    ..OPENAI
};

/// Another host of the Chat dialect, which takes only what is listed.
pub(super) const CHAT: StrictProfile = StrictProfile {
    thinking: Thinking::Never,
    only_fields: COMMON,
    more_fields: &[
        "thinking",
        "enable_thinking",
        "thinking_budget",
        "reasoning_split",
        "tool_stream",
        "top_k",
    ],
    back: Back::Ignored,
    rules: &[],
    ..OPENAI
};

/// What every host takes.
pub(super) const COMMON: &str = "model messages max_tokens stream stream_options tools tool_choice parallel_tool_calls \
            stop temperature top_p response_format user seed";

/// What Groq takes.
pub(super) const GROQ: &str = "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice \
            parallel_tool_calls stop temperature top_p response_format user seed reasoning_effort \
            reasoning_format include_reasoning service_tier";

/// Most hosts force tools, and take a named one.
pub(super) const ALL_CHOICES: Rule = Rule::ToolChoices { words: &["auto", "none", "required"], named: true };

/// Gemini's Chat endpoint.
pub(super) const GEMINI: StrictProfile = StrictProfile {
    name: "gemini",
    model: "gemini-2.5-flash",
    only_fields: "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice \
        parallel_tool_calls stop temperature top_p response_format n reasoning_effort",
    thinking: Thinking::Effort { default: true },
    efforts: &["none", "minimal", "low", "medium", "high"],
    rules: &[Rule::ThoughtSignatures, Rule::GeminiSchema, ALL_CHOICES],
    errors: ErrorFormat::Gemini,
    style: &[Quirk::NoCallIndex, Quirk::WholeCalls, Quirk::UsageInLastChunk],
    ..CHAT
};

/// Groq; its type has more fields, which the host refuses.
pub(super) const GROQ_HOST: StrictProfile = StrictProfile {
    name: "groq",
    model: "openai/gpt-oss-120b",
    schema: Some(Schema::GroqRequest),
    only_fields: GROQ,
    more_fields: &["stream_options"],
    thinking: Thinking::Always,
    efforts: &["low", "medium", "high"],
    reasoning: ReasoningField::Reasoning,
    back: Back::Wanted,
    rules: &[Rule::StopsAtMost(4), Rule::NoPenalties, ALL_CHOICES],
    style: &[Quirk::WholeCalls, Quirk::XGroq],
    ..CHAT
};
