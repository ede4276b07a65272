//! Writes `thinking` and `output_config.effort`.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{Fields, Losses, ReasoningRequest, TurnRequest};

use super::ID;

/// The thinking settings to write.
#[derive(Default)]
pub(super) struct ThinkingPlan {
    pub(super) thinking: Option<ThinkingOut>,
    pub(super) effort: Option<String>,
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

/// Writes the settings of a request that was read in this dialect or fitted to it.
pub(super) fn plan(request: &TurnRequest, losses: &mut Losses) -> ThinkingPlan {
    let Some(ReasoningRequest { effort, budget, mode, summary, extras }) = &request.reasoning else {
        return ThinkingPlan::default();
    };
    let mut extra = extras.write(ID, "reasoning", losses);
    if summary.is_some() {
        extra.insert("display".to_owned(), Value::from("summarized"));
    }
    let thinking = mode.clone().map(|mode| ThinkingOut { mode, budget_tokens: *budget, extra });
    ThinkingPlan { thinking, effort: effort.clone() }
}
