//! What must be known about OpenAI's own models to put another dialect's request in words they accept. Requests
//! that came in this dialect are never changed by it.

/// True for models that refuse `max_tokens` and want `max_completion_tokens`. Every other model, at OpenAI and at
/// compatible hosts, takes `max_tokens`; many compatible hosts know nothing else.
pub(super) fn wants_max_completion_tokens(model: &str) -> bool {
    starts_with_any(model, &["o1", "o3", "o4", "gpt-5"])
}

/// True for models that refuse `reasoning_effort` because they do not reason.
pub(super) fn refuses_effort(model: &str) -> bool {
    starts_with_any(model, &["gpt-3.5", "gpt-4", "chatgpt-4o"])
}

/// The effort that comes nearest to a budget of thinking tokens.
pub(super) fn effort_of(budget: u64) -> &'static str {
    match budget {
        0..=4096 => "low",
        4097..=16384 => "medium",
        _ => "high",
    }
}

/// Hosts that serve many makers' models put the maker before the name: `openai/gpt-5`.
fn starts_with_any(model: &str, starts: &[&str]) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    starts.iter().any(|start| name.starts_with(start))
}
