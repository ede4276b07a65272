//! The Claude models: which thinking, effort, sampling, forced tools and prefill each accepts.

use serde_json::Value;

/// The facts about one model.
pub(super) struct ClaudeModel {
    prefix: &'static str,
    /// The accepted values of `thinking.type`.
    pub(super) thinking: &'static [&'static str],
    /// Whether it thinks without `thinking`.
    default: bool,
    /// The accepted values of `output_config.effort`.
    pub(super) efforts: &'static [&'static str],
    pub(super) sampling: Sampling,
    pub(super) forced_tool: ForcedTool,
    pub(super) prefill: bool,
    pub(super) max_tokens: u64,
    /// Whether `messages` may have the role `system`.
    pub(super) late_system: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// `temperature` or `top_p`, not both, and neither while thinking.
    OneWithoutThinking,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForcedTool {
    NotWhileThinking,
    /// Adaptive thinking goes with it.
    NotIfEnabled,
    Accepted,
    Refused,
}

const LOW_TO_HIGH: &[&str] = &["low", "medium", "high"];
const AND_MAX: &[&str] = &["low", "medium", "high", "max"];
const LOW_TO_MAX: &[&str] = &["low", "medium", "high", "xhigh", "max"];

/// An older model; newer rows say what changed.
const OLD: ClaudeModel = ClaudeModel {
    prefix: "claude-",
    thinking: &["enabled", "disabled"],
    default: false,
    efforts: &[],
    sampling: Sampling::OneWithoutThinking,
    forced_tool: ForcedTool::NotWhileThinking,
    prefill: true,
    max_tokens: 64_000,
    late_system: false,
};

const NEW: ClaudeModel = ClaudeModel {
    thinking: &["adaptive", "disabled"],
    efforts: LOW_TO_MAX,
    sampling: Sampling::Refused,
    forced_tool: ForcedTool::Accepted,
    prefill: false,
    max_tokens: 128_000,
    ..OLD
};

const MODELS: &[ClaudeModel] = &[
    OLD,
    ClaudeModel { prefix: "claude-opus-4-1", max_tokens: 32_000, ..OLD },
    ClaudeModel { prefix: "claude-sonnet-4-5", ..OLD },
    ClaudeModel { prefix: "claude-opus-4-5", efforts: LOW_TO_HIGH, ..OLD },
    ClaudeModel {
        prefix: "claude-sonnet-4-6",
        thinking: &["adaptive", "enabled", "disabled"],
        efforts: AND_MAX,
        forced_tool: ForcedTool::NotIfEnabled,
        prefill: false,
        ..OLD
    },
    ClaudeModel { prefix: "claude-opus-4-7", ..NEW },
    ClaudeModel { prefix: "claude-opus-4-8", late_system: true, ..NEW },
    ClaudeModel { prefix: "claude-sonnet-5", default: true, ..NEW },
    ClaudeModel { prefix: "claude-opus-5", default: true, late_system: true, ..NEW },
    ClaudeModel {
        prefix: "claude-haiku-5-5",
        default: true,
        late_system: true,
        forced_tool: ForcedTool::Refused,
        ..NEW
    },
    ClaudeModel {
        prefix: "claude-sonnet-5-5",
        thinking: &["adaptive", "between_tools"],
        default: true,
        late_system: true,
        forced_tool: ForcedTool::Refused,
        ..NEW
    },
    ClaudeModel {
        prefix: "claude-opus-5-5",
        thinking: &["adaptive"],
        default: true,
        late_system: true,
        forced_tool: ForcedTool::Refused,
        ..NEW
    },
];

/// The row of a model, with or without the prefixes of other clouds.
pub(super) fn of(model: &str) -> &'static ClaudeModel {
    let name = model.find("claude-").map_or(model, |start| &model[start..]);
    let known = MODELS.iter().filter(|row| name.starts_with(row.prefix));
    known.max_by_key(|row| row.prefix.len()).unwrap_or(&OLD)
}

/// The models that accept `disabled` only up to this effort.
pub(super) fn disabled_needs_low_effort(model: &str) -> bool {
    matches!(of(model).prefix, "claude-opus-5" | "claude-haiku-5-5")
}

pub(super) fn thinks(model: &str, body: &Value) -> bool {
    match body["thinking"]["type"].as_str() {
        Some(kind) => kind != "disabled",
        None => of(model).default,
    }
}

/// Newer models show what they think only on request.
pub(super) fn shows_thoughts(model: &str) -> bool {
    of(model).sampling == Sampling::OneWithoutThinking
}
