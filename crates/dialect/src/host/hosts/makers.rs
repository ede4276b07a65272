//! Hosts of the makers of models.

use super::super::facts::{
    CallIds, Effort, ForcedCalls, Images, JsonOutput, LimitField, Param, Prefill, ReasoningField,
    ReasoningRequired, ReasoningSwitch, Reasons, SchemaPart, Set, SystemMessages, ThoughtSignatures,
};
use super::super::profile::Facts;
use super::{Host, NO_HOST, PLAIN, efforts, reasoner};

use Effort::{High, Low, Max, Medium, Minimal, Xhigh};

/// OpenAI itself, and Azure.
const OPENAI_CHAT: Facts = Facts {
    limit_field: Some(LimitField::MaxCompletionTokens),
    custom_tools: Some(true),
    developer_role: Some(true),
    openai_fields: Some(true),
    reasoning_field: Some(ReasoningField::None),
    ..Facts::NONE
};

/// The hosts.
pub(super) const MAKERS: &[Host] = &[
    Host { name: "openai", urls: &["api.openai.com"], chat: OPENAI_CHAT, ..NO_HOST },
    Host {
        name: "azure",
        urls: &["openai.azure.com", "cognitiveservices.azure.com"],
        chat: Facts { files: Some(false), ..OPENAI_CHAT },
        responses: Facts { item_status: Some(false), ..Facts::NONE },
        models: &[("mistral", Facts { limit_field: Some(LimitField::MaxTokens), ..Facts::NONE })],
        ..NO_HOST
    },
    Host {
        name: "gemini",
        urls: &["generativelanguage.googleapis.com"],
        chat: Facts {
            refused: Some(Set::<Param>::of(&[
                Param::TopK,
                Param::FrequencyPenalty,
                Param::PresencePenalty,
                Param::Seed,
                Param::Logprobs,
            ])),
            reasoning_field: Some(ReasoningField::None),
            refused_schema: Some(Set::<SchemaPart>::of(&[
                SchemaPart::SchemaUri,
                SchemaPart::Const,
                SchemaPart::TypeArray,
                SchemaPart::NumberEnum,
            ])),
            strict_tools: Some(false),
            parallel_tool_calls: Some(false),
            max_user: Some(0),
            thought_signatures: Some(ThoughtSignatures::Required),
            ..reasoner(Reasons::ByDefault, &[Minimal, Low, Medium, High])
        },
        models: &[
            ("gemini-2-0", PLAIN),
            ("gemini-1", PLAIN),
            ("gemini-2-5-flash", efforts(&[Effort::None, Minimal, Low, Medium, High])),
            ("gemini-2-5-pro", efforts(&[Low, Medium, High])),
            ("gemini-3-pro", efforts(&[Low, Medium, High])),
            ("gemini-3-1-pro", efforts(&[Low, Medium, High])),
            ("gemini-3-5-pro", efforts(&[Low, Medium, High])),
            ("gemini-3-7", efforts(&[Low, Medium, High])),
            ("gemini-3-8", efforts(&[Low, Medium, High])),
        ],
        ..NO_HOST
    },
    Host {
        name: "groq",
        urls: &["api.groq.com"],
        chat: Facts {
            limit_field: Some(LimitField::MaxCompletionTokens),
            refused: Some(Set::<Param>::of(&[
                Param::TopK,
                Param::FrequencyPenalty,
                Param::PresencePenalty,
                Param::Logprobs,
            ])),
            reasons: Some(Reasons::Never),
            reasoning_field: Some(ReasoningField::Reasoning),
            strict_tools: Some(false),
            files: Some(false),
            ..Facts::NONE
        },
        models: &[
            ("gpt-oss", reasoner(Reasons::Always, &[Low, Medium, High])),
            ("qwen3", reasoner(Reasons::ByDefault, &[Effort::None])),
            ("qwen3-8", reasoner(Reasons::ByDefault, &[Effort::None, Low, Medium, High])),
        ],
        ..NO_HOST
    },
    Host {
        name: "cerebras",
        urls: &["api.cerebras.ai"],
        chat: Facts {
            limit_field: Some(LimitField::MaxCompletionTokens),
            reasoning_field: Some(ReasoningField::Reasoning),
            files: Some(false),
            refused: Some(Set::<Param>::of(&[Param::TopK, Param::FrequencyPenalty, Param::PresencePenalty])),
            ..reasoner(Reasons::ByDefault, &[Effort::None, Low, Medium, High])
        },
        models: &[
            ("gpt-oss", reasoner(Reasons::Always, &[Low, Medium, High])),
            ("llama", PLAIN),
            ("qwen-3-235b-a22b-instruct", PLAIN),
        ],
        ..NO_HOST
    },
    Host {
        name: "deepseek",
        urls: &["api.deepseek.com"],
        chat: Facts {
            reasons: Some(Reasons::ByDefault),
            reasoning_switch: Some(ReasoningSwitch::ThinkingType),
            efforts: Some(Set::<Effort>::of(&[Low, Medium, High, Xhigh, Max])),
            reasoning_field: Some(ReasoningField::ReasoningContent),
            reasoning_required: Some(ReasoningRequired::Always),
            forced_calls: Some(ForcedCalls::NotWhileReasoning),
            refused: Some(Set::<Param>::of(&[Param::TopK, Param::Seed])),
            json_output: Some(JsonOutput::Object),
            strict_tools: Some(false),
            max_user: Some(0),
            files: Some(false),
            parallel_tool_calls: Some(false),
            ..Facts::NONE
        },
        models: &[(
            "deepseek-reasoner",
            Facts {
                reasons: Some(Reasons::Always),
                reasoning_field: Some(ReasoningField::None),
                reasoning_required: Some(ReasoningRequired::Never),
                ..Facts::NONE
            },
        )],
        ..NO_HOST
    },
    Host {
        name: "mistral",
        urls: &["api.mistral.ai"],
        chat: Facts {
            reasons: Some(Reasons::Never),
            reasoning_field: Some(ReasoningField::ThinkingPart),
            refused: Some(Set::<Param>::of(&[Param::TopK, Param::Seed, Param::Logprobs])),
            forced_calls: Some(ForcedCalls::RequiredOnly),
            call_ids: Some(CallIds::Nine),
            top_p_when_greedy: Some(false),
            user_after_tool: Some(false),
            document_urls: Some(true),
            prefill: Some(Prefill::Marked),
            max_user: Some(0),
            stream_options: Some(false),
            ..Facts::NONE
        },
        models: &[
            ("mistral-small", reasoner(Reasons::IfAsked, &[Effort::None, High])),
            ("mistral-medium", reasoner(Reasons::IfAsked, &[Effort::None, High])),
            ("mistral-large-4", reasoner(Reasons::IfAsked, &[Low, Medium, High])),
            ("magistral", Facts { reasons: Some(Reasons::Always), ..Facts::NONE }),
        ],
        ..NO_HOST
    },
    Host {
        name: "xai",
        urls: &["api.x.ai"],
        chat: Facts {
            reasoning_field: Some(ReasoningField::ReasoningContent),
            refused: Some(Set::<Param>::of(&[
                Param::TopK,
                Param::Stop,
                Param::FrequencyPenalty,
                Param::PresencePenalty,
            ])),
            refused_schema: Some(Set::<SchemaPart>::of(&[SchemaPart::ClosedObject])),
            ..reasoner(Reasons::Always, &[Low, Medium, High])
        },
        models: &[
            ("grok-2", Facts { refused: Some(Set::<Param>::of(&[Param::TopK])), ..PLAIN }),
            ("grok-4-3", reasoner(Reasons::IfAsked, &[Effort::None, Low, Medium, High])),
            ("grok-4-5", efforts(&[Low, Medium, High])),
            ("grok-4-6", efforts(&[Low, Medium, High, Xhigh])),
            ("grok-4-20", Facts { reasoning_switch: Some(ReasoningSwitch::None), ..Facts::NONE }),
            (
                "grok-4-20-non-reasoning",
                Facts {
                    reasons: Some(Reasons::Never),
                    refused: Some(Set::<Param>::of(&[Param::TopK])),
                    ..Facts::NONE
                },
            ),
            ("grok-5", efforts(&[Low, Medium, High, Xhigh])),
        ],
        ..NO_HOST
    },
    Host {
        name: "moonshot",
        urls: &["api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"],
        chat: Facts {
            reasons: Some(Reasons::IfAsked),
            reasoning_switch: Some(ReasoningSwitch::ThinkingType),
            efforts: Some(Set::<Effort>::of(&[])),
            reasoning_field: Some(ReasoningField::ReasoningContent),
            reasoning_required: Some(ReasoningRequired::WithCalls),
            refused: Some(Set::<Param>::of(&[Param::TopK, Param::Temperature])),
            forced_calls: Some(ForcedCalls::None),
            images: Some(Images::Inline),
            strict_tools: Some(false),
            parallel_tool_calls: Some(false),
            refused_schema: Some(Set::<SchemaPart>::of(&[SchemaPart::TypedChoice])),
            files: Some(false),
            ..Facts::NONE
        },
        models: &[("kimi-k3", Facts { reasons: Some(Reasons::Always), ..efforts(&[Low, High, Max]) })],
        ..NO_HOST
    },
    Host {
        name: "dashscope",
        urls: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
        chat: Facts {
            reasons: Some(Reasons::IfAsked),
            reasoning_switch: Some(ReasoningSwitch::EnableThinking),
            reasoning_field: Some(ReasoningField::None),
            strict_tools: Some(false),
            max_user: Some(0),
            files: Some(false),
            ..Facts::NONE
        },
        models: &[("qwen3", Facts { reasons: Some(Reasons::ByDefault), ..Facts::NONE })],
        ..NO_HOST
    },
    Host {
        name: "zai",
        urls: &["api.z.ai", "open.bigmodel.cn"],
        chat: Facts {
            reasons: Some(Reasons::ByDefault),
            reasoning_switch: Some(ReasoningSwitch::ThinkingType),
            efforts: Some(Set::<Effort>::of(&[])),
            reasoning_field: Some(ReasoningField::ReasoningContent),
            forced_calls: Some(ForcedCalls::None),
            json_output: Some(JsonOutput::Object),
            max_temperature: Some(1),
            sampling_inside_0_1: Some(true),
            max_stops: Some(1),
            strict_tools: Some(false),
            max_user: Some(0),
            refused: Some(Set::<Param>::of(&[
                Param::TopK,
                Param::FrequencyPenalty,
                Param::PresencePenalty,
                Param::Seed,
                Param::Logprobs,
            ])),
            parallel_tool_calls: Some(false),
            ..Facts::NONE
        },
        models: &[
            ("glm-5-2", Facts { efforts: Some(Set::<Effort>::of(&[Low, Medium, High])), ..Facts::NONE }),
            (
                "glm-5-3",
                Facts {
                    reasons: Some(Reasons::Always),
                    efforts: Some(Set::<Effort>::of(&[Low, High, Max])),
                    ..Facts::NONE
                },
            ),
        ],
        ..NO_HOST
    },
    Host {
        name: "minimax",
        urls: &["api.minimax.io", "api.minimaxi.com"],
        chat: Facts {
            reasons: Some(Reasons::Always),
            reasoning_switch: Some(ReasoningSwitch::None),
            reasoning_field: Some(ReasoningField::ThinkTags),
            system_messages: Some(SystemMessages::First),
            strict_tools: Some(false),
            parallel_tool_calls: Some(false),
            max_user: Some(0),
            ..Facts::NONE
        },
        models: &[(
            "minimax-m3",
            Facts {
                reasons: Some(Reasons::ByDefault),
                reasoning_switch: Some(ReasoningSwitch::ThinkingAdaptive),
                efforts: Some(Set::<Effort>::of(&[])),
                ..Facts::NONE
            },
        )],
        ..NO_HOST
    },
];
