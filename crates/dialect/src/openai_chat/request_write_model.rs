//! Which request fields OpenAI's models accept. Applies to requests translated from another dialect only.

/// True for models that reject `max_tokens` and require `max_completion_tokens`. Every other model accepts `max_tokens`,
/// and many compatible hosts accept nothing else.
pub(super) fn wants_max_completion_tokens(model: &str) -> bool {
    starts_with_any(model, &["o1", "o3", "o4", "gpt-5"])
}

/// True for models that reject `reasoning_effort` because they do not reason.
pub(super) fn rejects_effort(model: &str) -> bool {
    starts_with_any(model, &["gpt-3.5", "gpt-4", "chatgpt-4o"])
}

/// The effort for a budget of reasoning tokens.
pub(super) fn effort_of(budget: u64) -> &'static str {
    match budget {
        0..=4096 => "low",
        4097..=16384 => "medium",
        _ => "high",
    }
}

/// Ignores a vendor prefix, as in `openai/gpt-5`.
fn starts_with_any(model: &str, starts: &[&str]) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    starts.iter().any(|start| name.starts_with(start))
}
