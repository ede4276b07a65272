//! The facts of model families, by the normalised name of the model at the host. The longest name wins; a `$` at the end
//! excludes longer names. A maker's last row holds the rules for its newer models.

use super::facts::{
    Effort, ForcedCalls, LimitField, Param, Prefill, ReasoningField, ReasoningRequired, ReasoningSwitch,
    Reasons, Set, SystemMessages, ThinkingMode,
};
use super::profile::{Facts, SAMPLING};

/// One family.
pub(super) struct Family {
    /// The beginnings of its models' names.
    pub(super) names: &'static [&'static str],
    /// What is known in every dialect.
    pub(super) facts: Facts,
}

const fn family(names: &'static [&'static str], facts: Facts) -> Family {
    Family { names, facts }
}

use Effort::{High, Low, Max, Medium, Minimal, Xhigh};

const LOW_TO_HIGH: Set<Effort> = Set::<Effort>::of(&[Low, Medium, High]);
const LOW_TO_MAX: Set<Effort> = Set::<Effort>::of(&[Low, Medium, High, Xhigh, Max]);
const NONE_TO_HIGH: Set<Effort> = Set::<Effort>::of(&[Effort::None, Low, Medium, High]);
const NONE_TO_XHIGH: Set<Effort> = Set::<Effort>::of(&[Effort::None, Low, Medium, High, Xhigh]);
const NONE_TO_MAX: Set<Effort> = Set::<Effort>::of(&[Effort::None, Low, Medium, High, Xhigh, Max]);

/// OpenAI models that do not reason.
const GPT: Facts = Facts {
    reasons: Some(Reasons::Never),
    reasoning_switch: Some(ReasoningSwitch::Effort),
    reasoning_field: Some(ReasoningField::None),
    ..Facts::NONE
};

/// OpenAI models that reason.
const REASONING_GPT: Facts = Facts {
    limit_field: Some(LimitField::MaxCompletionTokens),
    max_output: Some(128_000),
    reasons: Some(Reasons::Always),
    reasoning_switch: Some(ReasoningSwitch::Effort),
    reasoning_field: Some(ReasoningField::None),
    refused: Some(Set::<Param>::of(&[Param::TopK, Param::Stop])),
    refused_while_reasoning: Some(SAMPLING),
    ..Facts::NONE
};

const fn gpt(max_output: u64) -> Facts {
    Facts { max_output: Some(max_output), ..GPT }
}

const fn reasoning_gpt(reasons: Reasons, efforts: Set<Effort>) -> Facts {
    Facts { reasons: Some(reasons), efforts: Some(efforts), ..REASONING_GPT }
}

/// From 5.4 on, Chat refuses functions while the model reasons.
const fn newer_gpt(reasons: Reasons, efforts: Set<Effort>) -> Facts {
    Facts { tools_without_reasoning: Some(true), ..reasoning_gpt(reasons, efforts) }
}

/// Claude models with token budgets.
const BUDGET_CLAUDE: Facts = Facts {
    reasoning_switch: Some(ReasoningSwitch::Claude),
    thinking_modes: Some(Set::<ThinkingMode>::of(&[ThinkingMode::Enabled, ThinkingMode::Disabled])),
    efforts: Some(Set::<Effort>::of(&[])),
    forced_calls: Some(ForcedCalls::NotWhileReasoning),
    ..Facts::NONE
};

/// Claude models with adaptive thinking only, which refuse sampling settings and prefilled replies.
const ADAPTIVE_CLAUDE: Facts = Facts {
    max_output: Some(128_000),
    thinking_modes: Some(Set::<ThinkingMode>::of(&[ThinkingMode::Adaptive, ThinkingMode::Disabled])),
    thinking_display: Some(true),
    efforts: Some(LOW_TO_MAX),
    refused: Some(Set::<Param>::of(&[
        Param::Temperature,
        Param::TopP,
        Param::TopK,
        Param::FrequencyPenalty,
        Param::PresencePenalty,
        Param::Seed,
        Param::Logprobs,
    ])),
    prefill: Some(Prefill::Refused),
    forced_calls: Some(ForcedCalls::Any),
    ..BUDGET_CLAUDE
};

const fn claude(max_output: u64) -> Facts {
    Facts { max_output: Some(max_output), ..BUDGET_CLAUDE }
}

/// From Opus 4.1 on, `temperature` and `top_p` exclude each other.
const fn later_claude(max_output: u64) -> Facts {
    Facts { one_of_temperature_top_p: Some(true), ..claude(max_output) }
}

const fn claude_4_6(max_output: u64) -> Facts {
    Facts {
        thinking_modes: Some(Set::<ThinkingMode>::of(&[
            ThinkingMode::Adaptive,
            ThinkingMode::Enabled,
            ThinkingMode::Disabled,
        ])),
        efforts: Some(Set::<Effort>::of(&[Low, Medium, High, Max])),
        prefill: Some(Prefill::Refused),
        ..later_claude(max_output)
    }
}

/// Claude models that cannot stop thinking.
const ALWAYS_CLAUDE: Facts = Facts {
    thinking_modes: Some(Set::<ThinkingMode>::of(&[ThinkingMode::Adaptive])),
    reasons: Some(Reasons::Always),
    forced_calls: Some(ForcedCalls::None),
    system_messages: Some(SystemMessages::AfterUser),
    ..ADAPTIVE_CLAUDE
};

/// Every family.
pub(super) const FAMILIES: &[Family] = &[
    family(&["gpt-3-5"], gpt(4_096)),
    family(&["gpt-4", "chatgpt-4o"], GPT),
    family(&["gpt-4o", "chatgpt-4o"], gpt(16_384)),
    family(&["gpt-4-1"], gpt(32_768)),
    family(&["gpt-5-chat"], Facts { limit_field: Some(LimitField::MaxCompletionTokens), ..gpt(128_000) }),
    family(
        &["o1", "o3", "o4"],
        Facts {
            max_output: Some(100_000),
            parallel_tool_calls: Some(false),
            ..reasoning_gpt(Reasons::Always, LOW_TO_HIGH)
        },
    ),
    family(
        &["gpt-5$", "gpt-5-mini", "gpt-5-nano", "gpt-5-codex"],
        reasoning_gpt(Reasons::Always, Set::<Effort>::of(&[Minimal, Low, Medium, High])),
    ),
    family(&["gpt-5-pro"], reasoning_gpt(Reasons::Always, Set::<Effort>::of(&[High]))),
    family(
        &["gpt-5-2-pro", "gpt-5-4-pro", "gpt-5-5-pro", "gpt-5-6-pro"],
        reasoning_gpt(Reasons::Always, Set::<Effort>::of(&[Medium, High, Xhigh])),
    ),
    family(
        &["gpt-5-1-chat", "gpt-5-2-chat", "gpt-5-3-chat", "gpt-5-4-chat", "gpt-5-5-chat"],
        reasoning_gpt(Reasons::Always, Set::<Effort>::of(&[Medium])),
    ),
    family(&["gpt-5-1"], reasoning_gpt(Reasons::IfAsked, NONE_TO_HIGH)),
    family(&["gpt-5-2", "gpt-5-3"], reasoning_gpt(Reasons::IfAsked, NONE_TO_XHIGH)),
    family(&["gpt-5-4"], newer_gpt(Reasons::IfAsked, NONE_TO_XHIGH)),
    family(&["gpt-5-5"], newer_gpt(Reasons::ByDefault, NONE_TO_XHIGH)),
    family(
        &["gpt-5-6", "gpt-6-sol", "gpt-6-luna", "gpt-6-1-terra"],
        newer_gpt(Reasons::ByDefault, NONE_TO_MAX),
    ),
    family(&["gpt-6-astra", "gpt-6-1-sol"], newer_gpt(Reasons::Always, LOW_TO_MAX)),
    family(&["gpt"], newer_gpt(Reasons::ByDefault, NONE_TO_MAX)),
    family(
        &["gpt-oss"],
        Facts {
            reasons: Some(Reasons::Always),
            reasoning_switch: Some(ReasoningSwitch::Effort),
            efforts: Some(LOW_TO_HIGH),
            ..Facts::NONE
        },
    ),
    family(
        &["claude-2", "claude-instant", "claude-3"],
        Facts { reasons: Some(Reasons::Never), ..claude(4_096) },
    ),
    family(&["claude-3-5"], Facts { reasons: Some(Reasons::Never), ..claude(8_192) }),
    family(&["claude-3-7", "claude-sonnet-4$", "claude-sonnet-4-0"], claude(64_000)),
    family(&["claude-opus-4$", "claude-opus-4-0"], claude(32_000)),
    family(&["claude-opus-4-1"], later_claude(32_000)),
    family(&["claude-sonnet-4-5", "claude-haiku-4-5"], later_claude(64_000)),
    family(&["claude-opus-4-5"], Facts { efforts: Some(LOW_TO_HIGH), ..later_claude(64_000) }),
    family(&["claude-sonnet-4-6", "claude-haiku-4-6"], claude_4_6(64_000)),
    family(&["claude-opus-4-6"], claude_4_6(128_000)),
    family(&["claude-opus-4-7"], ADAPTIVE_CLAUDE),
    family(
        &["claude-opus-4-8"],
        Facts { system_messages: Some(SystemMessages::AfterUser), ..ADAPTIVE_CLAUDE },
    ),
    family(&["claude-sonnet-5$"], Facts { reasons: Some(Reasons::ByDefault), ..ADAPTIVE_CLAUDE }),
    family(
        &["claude-opus-5$"],
        Facts {
            reasons: Some(Reasons::ByDefault),
            system_messages: Some(SystemMessages::AfterUser),
            ..ADAPTIVE_CLAUDE
        },
    ),
    family(
        &["claude-haiku-5-5"],
        Facts {
            reasons: Some(Reasons::ByDefault),
            forced_calls: Some(ForcedCalls::None),
            system_messages: Some(SystemMessages::AfterUser),
            ..ADAPTIVE_CLAUDE
        },
    ),
    family(
        &["claude-sonnet-5-5"],
        Facts {
            thinking_modes: Some(Set::<ThinkingMode>::of(&[
                ThinkingMode::Adaptive,
                ThinkingMode::BetweenTools,
            ])),
            reasons: Some(Reasons::ByDefault),
            ..ALWAYS_CLAUDE
        },
    ),
    family(&["claude"], ALWAYS_CLAUDE),
    // The reasoner must not get its reasoning back; newer models must.
    family(
        &["deepseek-r1", "deepseek-reasoner"],
        Facts {
            reasons: Some(Reasons::Always),
            reasoning_field: Some(ReasoningField::None),
            reasoning_required: Some(ReasoningRequired::Never),
            ..Facts::NONE
        },
    ),
];
