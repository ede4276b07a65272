//! Thinking budgets.

use toolgate_model::{Block, Losses, Message, TurnRequest};

use super::super::{Effort, HostProfile};
use super::reasoning::DEFAULT_MAX_OUTPUT;
use crate::anthropic_messages;

/// The smallest thinking budget that Claude accepts.
const MIN_BUDGET: u64 = 1024;

/// The budget for Claude; `None` if it cannot think in this turn.
pub(super) fn budget_within(
    request: &TurnRequest,
    effort: Option<Effort>,
    budget: Option<u64>,
    profile: &HostProfile,
    losses: &mut Losses,
) -> Option<u64> {
    if resumes_without_thinking(&request.messages) {
        losses.add(
            "reasoning",
            "the host resumes thinking after tool results only if the earlier thinking is in the history",
        );
        return None;
    }
    let wanted = budget.unwrap_or_else(|| budget_of_effort(effort.unwrap_or(Effort::Medium)));
    let limit =
        request.max_output.unwrap_or(DEFAULT_MAX_OUTPUT.saturating_add(wanted).min(profile.max_output));
    if budget.is_some() && (MIN_BUDGET..limit).contains(&wanted) {
        return Some(wanted);
    }
    // The budget must stay below the limit and leave room for the answer: a quarter, or the default limit.
    let room = match request.max_output {
        Some(limit) => limit / 4 * 3,
        None => (limit / 4 * 3).max(limit.saturating_sub(DEFAULT_MAX_OUTPUT)),
    };
    if room < MIN_BUDGET {
        losses.add(
            "reasoning",
            format!(
                "the output limit of {limit} tokens leaves no room for the minimum thinking budget of {MIN_BUDGET}"
            ),
        );
        return None;
    }
    let sent = wanted.max(MIN_BUDGET).min(room);
    if budget.is_some() {
        losses.add(
            "thinking.budget_tokens",
            format!("the host accepts at least {MIN_BUDGET}, and less than the output limit: sent as {sent}"),
        );
    }
    Some(sent)
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
        Block::Reasoning(reasoning) => {
            reasoning.seal.as_ref().is_some_and(|seal| seal.belongs_to(anthropic_messages::ID))
        }
        Block::Text(_) | Block::Refusal(_) | Block::ToolCall(_) | Block::Opaque(_) => false,
    });
    has_calls && !has_thinking
}

/// A budget in the unit of efforts.
pub(super) fn effort_of_budget(budget: u64) -> Effort {
    match budget {
        0..=4096 => Effort::Low,
        4097..=16384 => Effort::Medium,
        _ => Effort::High,
    }
}

/// An effort in the unit of budgets.
pub(super) fn budget_of_effort(effort: Effort) -> u64 {
    match effort {
        Effort::None | Effort::Minimal => 1024,
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 16_384,
        Effort::Xhigh | Effort::Max => 32_768,
    }
}
