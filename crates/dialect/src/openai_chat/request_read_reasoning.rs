//! Reads how much the model should reason. OpenAI has `reasoning_effort`; compatible hosts have switches of their own.

use serde_json::Value;
use toolgate_model::{Extras, Fields, ReasoningRequest};

use super::ID;

/// The switches of compatible hosts.
const SWITCHES: [&str; 5] =
    ["reasoning", "thinking", "enable_thinking", "thinking_budget", "chat_template_kwargs"];
/// OpenAI's field.
pub(super) const EFFORT: &str = "reasoning_effort";

/// Reads the settings. Switches are moved from the unknown fields to the extras of the result: all of them at once are
/// what hosts of this dialect get back.
pub(super) fn read(effort: Option<String>, extra: &mut Fields) -> Option<ReasoningRequest> {
    let mut reasoning = ReasoningRequest { effort: effort.clone(), ..ReasoningRequest::default() };
    let mut own = Fields::new();
    let mut all_understood = true;
    for name in SWITCHES {
        let Some(value) = extra.get(name) else { continue };
        let before = reasoning.clone();
        let understood = read_switch(name, value, &mut reasoning);
        if reasoning != before {
            own.extend(extra.shift_remove_entry(name));
            all_understood &= understood;
        }
    }
    if !own.is_empty() {
        own.extend(effort.map(|effort| (EFFORT.to_owned(), Value::from(effort))));
        let extras = Extras::of(ID, own);
        reasoning.extras = if all_understood { extras.all_envelope_fields() } else { extras };
    }
    (reasoning != ReasoningRequest::default()).then_some(reasoning)
}

/// Reads one switch. False if a part of it was not understood.
fn read_switch(name: &str, value: &Value, reasoning: &mut ReasoningRequest) -> bool {
    match (name, value) {
        ("enable_thinking" | "thinking", Value::Bool(on)) => set_mode(*on, reasoning),
        ("thinking_budget", Value::Number(budget)) => set_budget(budget.as_u64(), reasoning),
        ("reasoning" | "thinking" | "chat_template_kwargs", Value::Object(fields)) => {
            let mut understood = !fields.is_empty();
            for (name, value) in fields {
                understood &= read_setting(name, value, reasoning);
            }
            understood
        }
        _ => false,
    }
}

fn read_setting(name: &str, value: &Value, reasoning: &mut ReasoningRequest) -> bool {
    match (name, value) {
        ("effort", Value::String(effort)) => {
            reasoning.effort.get_or_insert_with(|| effort.clone());
        }
        ("summary", Value::String(summary)) => reasoning.summary = Some(summary.clone()),
        ("type", Value::String(mode)) => reasoning.mode = Some(mode.clone()),
        ("enabled" | "enable_thinking" | "thinking", Value::Bool(on)) => return set_mode(*on, reasoning),
        ("max_tokens" | "budget_tokens", Value::Number(budget)) => {
            return set_budget(budget.as_u64(), reasoning);
        }
        (_, Value::Null) => {}
        _ => return false,
    }
    true
}

fn set_mode(on: bool, reasoning: &mut ReasoningRequest) -> bool {
    reasoning.mode = Some(if on { "enabled" } else { "disabled" }.to_owned());
    true
}

/// A budget of zero switches reasoning off.
fn set_budget(budget: Option<u64>, reasoning: &mut ReasoningRequest) -> bool {
    match budget {
        None => false,
        Some(0) => set_mode(false, reasoning),
        Some(_) => {
            reasoning.budget = budget;
            true
        }
    }
}
