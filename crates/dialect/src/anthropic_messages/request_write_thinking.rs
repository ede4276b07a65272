//! Maps the requested reasoning to `thinking` and `output_config.effort`, and decides the output limit.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{Block, Fields, Losses, Message, ReasoningRequest, TurnRequest};

use super::ID;
use super::request_read::EFFORT_ONLY;

/// The output limit if a client of another dialect sets none. This dialect requires one, and every current model
/// supports this value.
pub(super) const DEFAULT_MAX_TOKENS: u64 = 8192;

/// The smallest thinking budget that the API accepts.
const MIN_BUDGET: u64 = 1024;

/// Claude models with budgets and without adaptive thinking. The list is final: all later models have it.
const BUDGET_MODELS: [&str; 9] = [
    "claude-3",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2",
    "claude-opus-4-5",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
];

/// The thinking settings to write.
#[derive(Default)]
pub(super) struct ThinkingPlan {
    pub(super) thinking: Option<ThinkingOut>,
    pub(super) effort: Option<String>,
    pub(super) max_tokens: u64,
    /// True if thinking was derived from another dialect's effort: sampling settings must then be dropped.
    pub(super) added: bool,
}

#[derive(Serialize)]
pub(super) struct ThinkingOut {
    #[serde(rename = "type")]
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
    #[serde(flatten)]
    extra: Fields,
}

impl ThinkingPlan {
    /// True if the host rejects a forced tool call (T32).
    pub(super) fn forbids_forced_call(&self) -> bool {
        self.thinking.as_ref().is_some_and(|thinking| thinking.mode == "enabled")
    }
}

/// Decides the thinking settings.
pub(super) fn plan(request: &TurnRequest, losses: &mut Losses) -> ThinkingPlan {
    let max_tokens = request.max_output.unwrap_or(DEFAULT_MAX_TOKENS);
    let Some(reasoning) = &request.reasoning else {
        return ThinkingPlan { max_tokens, ..ThinkingPlan::default() };
    };
    let ReasoningRequest { effort, budget, mode, summary, extras } = reasoning;
    let mut extra = extras.write(ID, "reasoning", losses);
    let effort_only = extra.shift_remove(EFFORT_ONLY).is_some();
    if let Some(mode) = mode {
        if summary.is_some() {
            losses.unknown_to(ID, "reasoning.summary");
        }
        let thinking = ThinkingOut { mode: mode.clone(), budget_tokens: *budget, extra };
        return ThinkingPlan { thinking: Some(thinking), effort: effort.clone(), max_tokens, added: false };
    }
    if effort_only {
        return ThinkingPlan { effort: effort.clone(), max_tokens, ..ThinkingPlan::default() };
    }
    if effort.as_deref() == Some("none") {
        let thinking = ThinkingOut { mode: "disabled".to_owned(), budget_tokens: None, extra };
        return ThinkingPlan { thinking: Some(thinking), max_tokens, ..ThinkingPlan::default() };
    }
    if effort.is_none() && budget.is_none() && summary.is_none() {
        return ThinkingPlan { max_tokens, ..ThinkingPlan::default() };
    }
    if budget.is_none() && is_adaptive(request.model.as_str()) {
        if summary.is_some() {
            extra.insert("display".to_owned(), Value::from("summarized"));
        }
        let thinking = ThinkingOut { mode: "adaptive".to_owned(), budget_tokens: None, extra };
        let effort = effort.as_deref().map(host_effort);
        return ThinkingPlan { thinking: Some(thinking), effort, max_tokens, added: true };
    }
    if resumes_without_thinking(&request.messages) {
        losses.add(
            "reasoning",
            "the host resumes thinking after tool results only if the earlier thinking is in the history",
        );
        return ThinkingPlan { max_tokens, ..ThinkingPlan::default() };
    }
    let wanted = budget.unwrap_or_else(|| effort_budget(effort.as_deref())).max(MIN_BUDGET);
    let Some(limit) = request.max_output else {
        // The client set no limit, so the budget is added to the default limit.
        let thinking = ThinkingOut { mode: "enabled".to_owned(), budget_tokens: Some(wanted), extra };
        let max_tokens = DEFAULT_MAX_TOKENS.saturating_add(wanted);
        return ThinkingPlan { thinking: Some(thinking), effort: None, max_tokens, added: true };
    };
    // The budget must stay below the limit and leave room for the answer.
    let room = limit / 4 * 3;
    if room < MIN_BUDGET {
        losses.add(
            "reasoning",
            format!(
                "the output limit of {limit} tokens leaves no room for the minimum thinking budget of {MIN_BUDGET}"
            ),
        );
        return ThinkingPlan { max_tokens, ..ThinkingPlan::default() };
    }
    let thinking = ThinkingOut { mode: "enabled".to_owned(), budget_tokens: Some(wanted.min(room)), extra };
    ThinkingPlan { thinking: Some(thinking), effort: None, max_tokens, added: true }
}

/// True if the conversation ends with tool results and the message with their calls has no signed thinking. The host
/// rejects such a turn if a budget is set.
fn resumes_without_thinking(messages: &[Message]) -> bool {
    let mut from_the_end = messages.iter().rev().skip_while(|message| match message {
        Message::ToolResults(_) | Message::User(_) | Message::System(_) => true,
        Message::Assistant(_) => false,
    });
    let Some(Message::Assistant(calling)) = from_the_end.next() else { return false };
    let has_calls = calling.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
    let has_thinking = calling.content.iter().any(|block| match block {
        Block::Reasoning(reasoning) => reasoning.seal.as_ref().is_some_and(|seal| seal.belongs_to(ID)),
        Block::Text(_) | Block::Refusal(_) | Block::ToolCall(_) | Block::Opaque(_) => false,
    });
    has_calls && !has_thinking
}

/// Only Anthropic's models: compatible hosts support budgets only.
fn is_adaptive(model: &str) -> bool {
    model.starts_with("claude-") && !BUDGET_MODELS.iter().any(|older| model.starts_with(older))
}

fn host_effort(effort: &str) -> String {
    if effort == "minimal" { "low".to_owned() } else { effort.to_owned() }
}

fn effort_budget(effort: Option<&str>) -> u64 {
    match effort {
        Some("minimal") => 1024,
        Some("low") => 2048,
        Some("high") => 16_384,
        Some("xhigh" | "max") => 32_768,
        // `medium`, and values added later.
        _ => 8192,
    }
}
