//! Hosts of models that others made, servers for one's own machine, and Claude outside Anthropic.

use super::super::facts::{
    Effort, ForcedCalls, Images, JsonOutput, LimitField, Param, ReasoningField, ReasoningSwitch, Reasons, Set,
};
use super::super::profile::{Facts, SAMPLING};
use super::{Host, NO_HOST, PLAIN, reasoner};

use Effort::{High, Low, Medium, Minimal, Xhigh};

/// A host that takes URLs of neither images nor documents.
const INLINE_ONLY: Facts = Facts { images: Some(Images::Inline), ..Facts::NONE };

/// The hosts.
pub(super) const OTHERS: &[Host] = &[
    Host {
        name: "openrouter",
        urls: &["openrouter.ai"],
        chat: Facts {
            limit_field: Some(LimitField::MaxTokens),
            reasons: Some(Reasons::IfAsked),
            reasoning_switch: Some(ReasoningSwitch::ReasoningEffort),
            efforts: Some(Set::<Effort>::of(&[Effort::None, Minimal, Low, Medium, High, Xhigh])),
            reasoning_field: Some(ReasoningField::Details),
            refused: Some(Set::<Param>::of(&[])),
            refused_while_reasoning: Some(Set::<Param>::of(&[])),
            tools_without_reasoning: Some(false),
            max_user: Some(128),
            ..Facts::NONE
        },
        ..NO_HOST
    },
    Host {
        name: "together",
        urls: &["api.together.xyz", "api.together.ai"],
        chat: Facts {
            limit_field: Some(LimitField::MaxTokens),
            reasoning_switch: Some(ReasoningSwitch::ReasoningEnabled),
            efforts: Some(Set::<Effort>::of(&[])),
            reasoning_field: Some(ReasoningField::Reasoning),
            refused: Some(Set::<Param>::of(&[])),
            strict_tools: Some(false),
            parallel_tool_calls: Some(false),
            max_user: Some(0),
            files: Some(false),
            ..Facts::NONE
        },
        ..NO_HOST
    },
    Host {
        name: "fireworks",
        urls: &["api.fireworks.ai"],
        chat: Facts {
            limit_field: Some(LimitField::MaxTokens),
            files: Some(false),
            tools_with_format: Some(false),
            refused: Some(Set::<Param>::of(&[])),
            ..reasoner(Reasons::ByDefault, &[Effort::None, Low, Medium, High])
        },
        models: &[
            ("gpt-oss", reasoner(Reasons::Always, &[Low, Medium, High])),
            ("minimax", reasoner(Reasons::Always, &[Low, Medium, High])),
            ("llama", PLAIN),
        ],
        ..NO_HOST
    },
    Host {
        name: "snowflake",
        urls: &["snowflakecomputing.com"],
        chat: Facts { limit_field: Some(LimitField::MaxCompletionTokens), max_user: Some(0), ..Facts::NONE },
        models: &[(
            "claude",
            Facts {
                reasoning_switch: Some(ReasoningSwitch::ReasoningEffort),
                efforts: Some(Set::<Effort>::of(&[Low, Medium, High])),
                reasoning_field: Some(ReasoningField::Details),
                refused_while_reasoning: Some(SAMPLING),
                ..Facts::NONE
            },
        )],
        ..NO_HOST
    },
    Host {
        name: "vllm",
        chat: Facts {
            refused: Some(Set::<Param>::of(&[])),
            reasoning_field: Some(ReasoningField::Reasoning),
            ..reasoner(Reasons::ByDefault, &[Effort::None, Low, Medium, High])
        },
        ..NO_HOST
    },
    Host {
        name: "sglang",
        chat: Facts {
            refused: Some(Set::<Param>::of(&[])),
            ..reasoner(Reasons::ByDefault, &[Effort::None, Low, Medium, High])
        },
        ..NO_HOST
    },
    Host {
        name: "llamacpp",
        chat: Facts {
            refused: Some(Set::<Param>::of(&[])),
            forced_calls: Some(ForcedCalls::RequiredOnly),
            ..Facts::NONE
        },
        responses: Facts { relayed_replies: Some(false), custom_tools: Some(false), ..Facts::NONE },
        ..NO_HOST
    },
    Host {
        name: "ollama",
        chat: Facts {
            reasoning_field: Some(ReasoningField::Reasoning),
            forced_calls: Some(ForcedCalls::None),
            images: Some(Images::Inline),
            ..reasoner(Reasons::ByDefault, &[Effort::None, Low, Medium, High])
        },
        ..NO_HOST
    },
    Host {
        name: "lmstudio",
        chat: Facts {
            forced_calls: Some(ForcedCalls::RequiredOnly),
            json_output: Some(JsonOutput::SchemaOnly),
            ..INLINE_ONLY
        },
        ..NO_HOST
    },
    Host { name: "anthropic", urls: &["api.anthropic.com"], ..NO_HOST },
    Host {
        name: "bedrock",
        urls: &["api.aws", "amazonaws.com"],
        messages: Facts { strict_tools: Some(false), max_tool_name: Some(64), ..INLINE_ONLY },
        ..NO_HOST
    },
    Host {
        name: "vertex",
        urls: &["aiplatform.googleapis.com"],
        messages: Facts { strict_tools: Some(false), ..INLINE_ONLY },
        ..NO_HOST
    },
    Host { name: "foundry", urls: &["services.ai.azure.com"], ..NO_HOST },
];
