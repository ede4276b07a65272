//! The table of hosts.

use super::bases::{ALL_CHOICES, CHAT, CLAUDE, GEMINI, GROQ_HOST, OPENAI, RESPONSES};
use super::memory::ReasoningField;
use super::profile::{Back, CallIds, Quirk, Rule, StrictProfile, Thinking};
use super::refusal::ErrorFormat;
use crate::Schema;

/// Every strict host, some with more than one model.
pub const STRICT_HOSTS: &[StrictProfile] = &[
    OPENAI,
    StrictProfile { model: "gpt-5-mini", ..OPENAI },
    StrictProfile { model: "gpt-5.5", ..OPENAI },
    StrictProfile { model: "o4-mini", ..OPENAI },
    StrictProfile { model: "gpt-5.5", ..RESPONSES },
    StrictProfile { model: "gpt-4o", ..RESPONSES },
    StrictProfile { model: "gpt-6.1-sol", ..RESPONSES },
    StrictProfile { name: "azure", model: "gpt-5-mini", style: &[Quirk::FilterResultsFirst], ..OPENAI },
    StrictProfile {
        name: "azure",
        model: "gpt-5-mini",
        rules: &[Rule::OpenAiFamily, Rule::NoItemStatus],
        ..RESPONSES
    },
    GEMINI,
    StrictProfile {
        model: "gemini-3.7-pro",
        thinking: Thinking::Always,
        efforts: &["low", "medium", "high"],
        ..GEMINI
    },
    GROQ_HOST,
    StrictProfile {
        model: "qwen/qwen3-32b",
        thinking: Thinking::Effort { default: true },
        efforts: &["none", "default"],
        ..GROQ_HOST
    },
    StrictProfile {
        name: "cerebras",
        model: "gpt-oss-120b",
        schema: Some(Schema::CerebrasRequest),
        only_fields: "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice \
            parallel_tool_calls stop temperature top_p response_format user seed reasoning_effort",
        more_fields: &[],
        thinking: Thinking::Always,
        efforts: &["low", "medium", "high"],
        reasoning: ReasoningField::Reasoning,
        back: Back::Wanted,
        rules: &[Rule::NoDeveloper, ALL_CHOICES],
        errors: ErrorFormat::Cerebras,
        ..CHAT
    },
    StrictProfile {
        name: "deepseek",
        model: "deepseek-v4-pro",
        only_fields: "model messages max_tokens stream stream_options tools tool_choice stop temperature top_p \
            response_format thinking reasoning_effort frequency_penalty presence_penalty logprobs \
            top_logprobs",
        thinking: Thinking::Type { default: true },
        efforts: &["low", "medium", "high", "xhigh", "max"],
        reasoning: ReasoningField::ReasoningContent,
        back: Back::OnEveryTurn,
        rules: &[
            Rule::NoDeveloper,
            Rule::NoForcedToolWhileThinking,
            Rule::Formats(&["text", "json_object"]),
            ALL_CHOICES,
        ],
        ..CHAT
    },
    StrictProfile {
        name: "mistral",
        model: "mistral-medium-3.5",
        schema: Some(Schema::MistralRequest),
        only_fields: "",
        more_fields: &[],
        thinking: Thinking::Effort { default: false },
        efforts: &["none", "high"],
        reasoning: ReasoningField::ThinkingPart,
        back: Back::Wanted,
        ids: CallIds::Mistral,
        rules: &[
            Rule::NoDeveloper,
            Rule::NameOnlyOnTools,
            Rule::AfterToolOnlyAssistant,
            Rule::LastTurnUserOrTool,
            Rule::TemperatureZeroNeedsTopPOne,
            Rule::ToolChoices { words: &["auto", "none", "any", "required"], named: false },
        ],
        errors: ErrorFormat::Mistral,
        style: &[
            Quirk::WholeCalls,
            Quirk::NoCallIndex,
            Quirk::NoCallType,
            Quirk::ObjectArguments,
            Quirk::UsageInLastChunk,
        ],
        ..CHAT
    },
    StrictProfile {
        name: "xai",
        model: "grok-4.5",
        only_fields: "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice \
            parallel_tool_calls temperature top_p response_format user seed reasoning_effort",
        thinking: Thinking::Always,
        efforts: &["low", "medium", "high"],
        reasoning: ReasoningField::ReasoningContent,
        rules: &[Rule::NoStop, Rule::NoPenalties, Rule::NameOnlyOnTools, ALL_CHOICES],
        errors: ErrorFormat::Xai,
        style: &[Quirk::WholeCalls, Quirk::EmptyFinishWithCalls],
        ..CHAT
    },
    StrictProfile {
        name: "moonshot",
        model: "kimi-k2.5",
        only_fields: "model messages max_tokens stream stream_options tools tool_choice stop temperature top_p \
            response_format thinking user",
        thinking: Thinking::Type { default: true },
        reasoning: ReasoningField::ReasoningContent,
        back: Back::OnCalls,
        ids: CallIds::Moonshot,
        rules: &[
            Rule::NoDeveloper,
            Rule::NoStrict,
            Rule::TemperatureOneOf(&[1.0, 0.6]),
            Rule::InlineImagesOnly,
            Rule::MoonshotSchema,
            Rule::ToolChoices { words: &["auto", "none"], named: false },
        ],
        ..CHAT
    },
    StrictProfile {
        name: "dashscope",
        model: "qwen3-32b",
        only_fields: "model messages max_tokens stream stream_options tools tool_choice parallel_tool_calls \
            stop temperature top_p top_k response_format seed enable_thinking thinking_budget",
        thinking: Thinking::Enable { default: true },
        reasoning: ReasoningField::ReasoningContent,
        rules: &[Rule::NoDeveloper, Rule::WholeNeedsThinkingOff, ALL_CHOICES],
        style: &[Quirk::EmptyLaterIds],
        ..CHAT
    },
    StrictProfile {
        name: "zai",
        model: "glm-5.3",
        only_fields: "model messages max_tokens stream stream_options tools tool_choice stop temperature top_p \
            response_format thinking reasoning_effort tool_stream user_id",
        more_fields: &["thinking", "tool_stream", "user_id"],
        thinking: Thinking::Always,
        efforts: &["low", "high", "max"],
        reasoning: ReasoningField::ReasoningContent,
        back: Back::Wanted,
        rules: &[Rule::NeedsUserTurn, Rule::SamplingInside01, ALL_CHOICES],
        errors: ErrorFormat::Zai,
        ..CHAT
    },
    StrictProfile {
        name: "minimax",
        model: "MiniMax-M3",
        only_fields: "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice stop \
            temperature top_p response_format thinking reasoning_split",
        thinking: Thinking::Type { default: true },
        reasoning: ReasoningField::ThinkTags,
        back: Back::Wanted,
        rules: &[
            Rule::ToolsNeedParameters,
            Rule::NoLateSystem,
            Rule::ThinkingTypes(&["adaptive", "disabled"]),
            ALL_CHOICES,
        ],
        errors: ErrorFormat::MiniMax,
        ..CHAT
    },
    StrictProfile {
        name: "openrouter",
        model: "qwen/qwen3-235b-a22b",
        only_fields: "model messages max_tokens stream stream_options tools tool_choice parallel_tool_calls \
            stop temperature top_p response_format user seed reasoning usage provider top_k",
        more_fields: &["reasoning", "usage", "provider", "top_k"],
        thinking: Thinking::Reasoning { default: false },
        reasoning: ReasoningField::ReasoningDetails,
        back: Back::Wanted,
        rules: &[Rule::NoDeveloper, Rule::UserAtMost(128), ALL_CHOICES],
        errors: ErrorFormat::NumericCode,
        style: &[Quirk::Comments],
        ..CHAT
    },
    StrictProfile {
        name: "together",
        model: "Qwen/Qwen3-235B-A22B-Thinking-2507",
        // Its message types know less than the host.
        schema: None,
        only_fields: "model messages max_tokens stream stream_options tools tool_choice stop temperature top_p top_k \
            response_format seed reasoning reasoning_effort logprobs",
        thinking: Thinking::Reasoning { default: true },
        efforts: &["low", "medium", "high"],
        reasoning: ReasoningField::Reasoning,
        rules: &[Rule::NoDeveloper, Rule::NoStrict, ALL_CHOICES],
        style: &[Quirk::Eos],
        ..CHAT
    },
    StrictProfile {
        name: "fireworks",
        model: "accounts/fireworks/models/glm-5p2",
        only_fields: "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice \
            parallel_tool_calls stop temperature top_p top_k response_format user reasoning_effort \
            thinking",
        thinking: Thinking::Effort { default: true },
        efforts: &["none", "low", "medium", "high"],
        reasoning: ReasoningField::ReasoningContent,
        rules: &[Rule::NotThinkingAndEffort, Rule::ToolsNotWithFormat, ALL_CHOICES],
        ..CHAT
    },
    StrictProfile {
        name: "vllm",
        model: "Qwen/Qwen3-8B",
        schema: None,
        only_fields: "",
        thinking: Thinking::Effort { default: true },
        efforts: &["none", "low", "medium", "high"],
        reasoning: ReasoningField::Reasoning,
        back: Back::Wanted,
        rules: &[Rule::StopsAtMost(4), ALL_CHOICES],
        errors: ErrorFormat::NumericCode,
        ..CHAT
    },
    StrictProfile {
        name: "sglang",
        model: "Qwen/Qwen3-8B",
        schema: None,
        only_fields: "",
        thinking: Thinking::Effort { default: true },
        efforts: &["none", "low", "medium", "high"],
        reasoning: ReasoningField::ReasoningContent,
        back: Back::Wanted,
        rules: &[ALL_CHOICES],
        ..CHAT
    },
    StrictProfile {
        name: "snowflake",
        model: "claude-sonnet-4-5",
        only_fields: "model messages max_completion_tokens stream stream_options tools tool_choice \
            parallel_tool_calls stop temperature top_p response_format reasoning",
        more_fields: &["reasoning"],
        thinking: Thinking::Reasoning { default: false },
        reasoning: ReasoningField::ReasoningDetails,
        back: Back::Wanted,
        rules: &[ALL_CHOICES],
        ..CHAT
    },
    StrictProfile {
        name: "llamacpp",
        model: "qwen3-8b",
        schema: None,
        only_fields: "",
        thinking: Thinking::Always,
        efforts: &["none", "low", "medium", "high"],
        reasoning: ReasoningField::ReasoningContent,
        back: Back::Wanted,
        rules: &[
            Rule::NoTwoFinalAssistantTurns,
            Rule::ToolChoices { words: &["auto", "none", "required"], named: false },
        ],
        errors: ErrorFormat::NumericCode,
        ..CHAT
    },
    StrictProfile {
        name: "ollama",
        model: "qwen3:8b",
        schema: None,
        only_fields: "",
        thinking: Thinking::Effort { default: true },
        efforts: &["none", "low", "medium", "high"],
        reasoning: ReasoningField::Reasoning,
        rules: &[Rule::InlineImagesOnly],
        style: &[Quirk::RoleEverywhere, Quirk::WholeCalls],
        ..CHAT
    },
    StrictProfile {
        name: "lmstudio",
        model: "qwen3-8b",
        schema: None,
        only_fields: "",
        thinking: Thinking::Always,
        efforts: &["none", "low", "medium", "high"],
        reasoning: ReasoningField::ReasoningContent,
        rules: &[
            Rule::Formats(&["text", "json_schema"]),
            Rule::ToolChoices { words: &["auto", "none", "required"], named: false },
        ],
        errors: ErrorFormat::Text,
        style: &[Quirk::EmptyLaterNames],
        ..CHAT
    },
    CLAUDE,
    StrictProfile { model: "claude-opus-4-1-20250805", ..CLAUDE },
    StrictProfile { model: "claude-sonnet-4-6", ..CLAUDE },
    StrictProfile { model: "claude-opus-4-8", ..CLAUDE },
    StrictProfile { model: "claude-sonnet-5", ..CLAUDE },
    StrictProfile { model: "claude-opus-5", ..CLAUDE },
    StrictProfile { model: "claude-sonnet-5-5", ..CLAUDE },
    StrictProfile { model: "claude-opus-5-5", ..CLAUDE },
    StrictProfile {
        name: "bedrock",
        model: "anthropic.claude-sonnet-4-5-20250929-v1:0",
        rules: &[Rule::NoStrictNoUrls, Rule::AssistantNotFirst, Rule::ShortToolNames],
        ..CLAUDE
    },
    StrictProfile {
        name: "vertex",
        model: "claude-sonnet-4-5@20250929",
        rules: &[Rule::NoStrictNoUrls],
        ..CLAUDE
    },
    StrictProfile { name: "foundry", model: "claude-opus-4-8", ..CLAUDE },
];
