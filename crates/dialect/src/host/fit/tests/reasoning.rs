//! Reasoning settings and output limits.

use serde_json::json;

use super::{Route, chat, claude, responses};
use crate::anthropic_messages;

#[test]
fn the_hosts_model_decides_not_the_clients_alias() {
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } });
    let limit = json!({ "model": "gpt-5", "max_completion_tokens": 9000, "max_tokens": null });
    chat("openai", "gpt-5").check(&json!({}), &limit, &[]);
    chat("openai", "gpt-5").check(&thinking, &json!({ "reasoning_effort": "low" }), &[]);
    chat("openai", "gpt-4o-mini").check(&thinking, &json!({ "reasoning_effort": null }), &["reasoning"]);
    let high = json!({ "reasoning_effort": "high", "max_tokens": 9000 });
    let enabled = json!({ "thinking": { "type": "enabled", "budget_tokens": 6750 }, "output_config": null });
    claude("claude-sonnet-4-5").check(&high, &enabled, &[]);
    let adaptive = json!({
        "thinking": { "type": "adaptive", "display": "summarized" },
        "output_config": { "effort": "high" },
    });
    claude("claude-opus-4-8").check(&high, &adaptive, &[]);
}

#[test]
fn a_client_of_the_hosts_dialect_is_fitted_to_the_hosts_model() {
    let to = |model| Route { client: &anthropic_messages::DIALECT, ..claude(model) };
    let enabled = json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } });
    let adaptive = json!({ "thinking": { "type": "adaptive" }, "output_config": { "effort": "low" } });
    to("claude-sonnet-4-5").check(&enabled, &enabled, &[]);
    to("claude-opus-4-8").check(&enabled, &adaptive, &[]);
    to("claude-opus-4-8").check(&adaptive, &adaptive, &[]);
    let budget = json!({ "thinking": { "type": "enabled", "budget_tokens": 2048 }, "output_config": null });
    to("claude-sonnet-4-5").check(&adaptive, &budget, &[]);
}

#[test]
fn an_effort_becomes_the_nearest_that_the_model_accepts() {
    for (profile, model, asked, sent) in [
        ("openai", "gpt-5", "high", "high"),
        ("openai", "gpt-5", "xhigh", "high"),
        ("openai", "gpt-5-pro", "low", "high"),
        ("openai", "gpt-5.1", "minimal", "low"),
        ("openai", "gpt-5.5", "max", "xhigh"),
        ("openai", "o4-mini", "minimal", "low"),
        ("gemini", "gemini-2.5-pro", "minimal", "low"),
        ("groq", "openai/gpt-oss-120b", "max", "high"),
        ("deepseek", "deepseek-v4", "max", "max"),
        ("mistral", "mistral-small-latest", "low", "high"),
        ("moonshot", "kimi-k3", "medium", "low"),
        ("xai", "grok-4.6", "max", "xhigh"),
        ("zai", "glm-5.3", "medium", "low"),
    ] {
        let lost: &[&str] = if asked == sent { &[] } else { &["reasoning.effort"] };
        let asked = json!({ "reasoning": { "effort": asked } });
        let route = chat(profile, model).with_responses_client();
        route.check(&asked, &json!({ "reasoning_effort": sent }), lost);
    }
    let minimal = json!({ "reasoning": { "effort": "minimal" } });
    let low = json!({ "output_config": { "effort": "low" } });
    claude("claude-opus-4-8").with_responses_client().check(&minimal, &low, &["reasoning.effort"]);
}

#[test]
fn disabled_thinking_is_carried_to_hosts_that_think_by_default() {
    for (profile, model, expected, lost) in [
        ("deepseek", "deepseek-v4", json!({ "thinking": { "type": "disabled" } }), &[][..]),
        ("moonshot", "kimi-k2.5", json!({ "thinking": { "type": "disabled" } }), &[]),
        ("zai", "glm-5", json!({ "thinking": { "type": "disabled" } }), &[]),
        ("minimax", "MiniMax-M3", json!({ "thinking": { "type": "disabled" } }), &[]),
        ("dashscope", "qwen3-32b", json!({ "enable_thinking": false }), &[]),
        ("together", "Qwen/Qwen3-8B", json!({ "reasoning": { "enabled": false } }), &[]),
        ("openrouter", "z-ai/glm-5", json!({ "reasoning": { "effort": "none" } }), &[]),
        ("vllm", "Qwen/Qwen3-8B", json!({ "reasoning_effort": "none" }), &[]),
        ("groq", "qwen/qwen3-32b", json!({ "reasoning_effort": "none" }), &[]),
        ("openai", "gpt-5.5", json!({ "reasoning_effort": "none" }), &[]),
        ("openai", "gpt-4o", json!({ "reasoning_effort": null }), &[]),
        // These cannot be switched off.
        ("openai", "gpt-5", json!({ "reasoning_effort": "minimal" }), &["reasoning"]),
        ("openai", "o4-mini", json!({ "reasoning_effort": "low" }), &["reasoning"]),
        ("gemini", "gemini-3-pro-preview", json!({ "reasoning_effort": "low" }), &["reasoning"]),
    ] {
        chat(profile, model).check(&json!({ "thinking": { "type": "disabled" } }), &expected, lost);
    }
    let none = json!({ "reasoning_effort": "none" });
    claude("claude-sonnet-5").check(&none, &json!({ "thinking": { "type": "disabled" } }), &[]);
    claude("claude-opus-4-5").check(&none, &json!({ "thinking": null }), &[]);
    let lowest = json!({ "thinking": null, "output_config": { "effort": "low" } });
    claude("claude-opus-5-5").check(&none, &lowest, &["reasoning"]);
}

#[test]
fn enabled_thinking_is_written_in_the_hosts_fields() {
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 8000 } });
    for (profile, model, expected, lost) in [
        (
            "deepseek",
            "deepseek-v4",
            json!({ "thinking": { "type": "enabled" }, "reasoning_effort": "medium" }),
            &[][..],
        ),
        ("openrouter", "z-ai/glm-5", json!({ "reasoning": { "effort": "medium" } }), &[]),
        // A switch without an amount.
        (
            "moonshot",
            "kimi-k2.5",
            json!({ "thinking": { "type": "enabled" }, "reasoning_effort": null }),
            &["thinking.budget_tokens"],
        ),
        ("minimax", "MiniMax-M3", json!({ "thinking": { "type": "adaptive" } }), &["thinking.budget_tokens"]),
        (
            "together",
            "Qwen/Qwen3-8B",
            json!({ "reasoning": { "enabled": true } }),
            &["thinking.budget_tokens"],
        ),
        ("llamacpp", "m", json!({ "reasoning_effort": null, "thinking": null }), &["reasoning"]),
    ] {
        chat(profile, model).check(&thinking, &expected, lost);
    }
    let high = json!({ "reasoning": { "effort": "high" } });
    for (profile, model) in
        [("moonshot", "kimi-k2.5"), ("together", "Qwen/Qwen3-8B"), ("groq", "qwen/qwen3-32b")]
    {
        let route = chat(profile, model).with_responses_client();
        route.check(&high, &json!({ "reasoning_effort": null }), &["reasoning.effort"]);
    }
}

#[test]
fn a_host_that_thinks_only_in_streams_is_told_not_to_otherwise() {
    let thinking = json!({ "type": "enabled", "budget_tokens": 8000 });
    let route = chat("dashscope", "qwen3-32b");
    route.check(&json!({}), &json!({ "enable_thinking": false }), &[]);
    route.check(&json!({ "thinking": thinking }), &json!({ "enable_thinking": false }), &["reasoning"]);
    let streamed = json!({ "thinking": thinking, "stream": true });
    route.check(&streamed, &json!({ "enable_thinking": true, "thinking_budget": 8000 }), &[]);
}

#[test]
fn models_that_do_not_reason_get_no_summary_and_no_include() {
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } });
    let nothing = json!({ "reasoning": null, "include": null });
    responses("gpt-4o").check(&json!({}), &nothing, &[]);
    responses("gpt-4o").check(&thinking, &nothing, &["reasoning"]);
    let all = json!({
        "reasoning": { "effort": "low", "summary": "auto" },
        "include": ["reasoning.encrypted_content"],
    });
    responses("gpt-5").check(&thinking, &all, &[]);
}

#[test]
fn functions_switch_reasoning_off_where_chat_refuses_both() {
    let tools = json!({ "tools": [{ "name": "f", "input_schema": { "type": "object" } }] });
    let mut thinking = tools.clone();
    thinking["thinking"] = json!({ "type": "enabled", "budget_tokens": 2000 });
    let off = json!({ "reasoning_effort": "none" });
    chat("openai", "gpt-5.5").check(&tools, &off, &[]);
    chat("openai", "gpt-5.5").check(&thinking, &off, &["reasoning"]);
    chat("openai", "gpt-5.1").check(&tools, &json!({ "reasoning_effort": null }), &[]);
    responses("gpt-5.5").check(&tools, &json!({ "reasoning": null }), &[]);
}

#[test]
fn output_limits_stay_within_the_models() {
    let limit = |limit: u64| json!({ "max_tokens": limit });
    let sent = |limit: u64| json!({ "max_completion_tokens": limit });
    chat("openai", "gpt-4o-mini").check(&limit(64_000), &sent(16_384), &[]);
    chat("openai", "gpt-4.1").check(&limit(64_000), &sent(32_768), &[]);
    chat("openai", "o4-mini").check(&limit(200_000), &sent(100_000), &[]);
    chat("openai", "gpt-5").check(&limit(64_000), &sent(64_000), &[]);
    claude("claude-opus-4-1").check(&limit(64_000), &limit(32_000), &[]);
    claude("claude-3-5-haiku-latest").check(&json!({}), &limit(8192), &[]);
    responses("gpt-5").check(&limit(1), &json!({ "max_output_tokens": 16 }), &["max_tokens"]);
}

#[test]
fn a_model_that_always_reasons_takes_no_functions_on_chat() {
    let tools = json!({ "tools": [{ "name": "f", "input_schema": { "type": "object" } }] });
    let error = chat("openai", "gpt-6-astra").refusal(&tools);
    assert!(error.contains("openai-responses"), "{error}");
}

#[test]
fn a_model_that_always_reasons_needs_no_switch() {
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } });
    chat("mistral", "magistral-medium-latest").check(&thinking, &json!({ "reasoning_effort": null }), &[]);
}

#[test]
fn a_clients_budget_changes_only_if_the_host_would_refuse_it() {
    let route = Route { client: &anthropic_messages::DIALECT, ..claude("claude-sonnet-4-5") };
    let thinking = |budget: u64| json!({ "thinking": { "type": "enabled", "budget_tokens": budget } });
    route.check(&thinking(8500), &thinking(8500), &[]);
    // The limit of the request is 9,000.
    route.check(&thinking(9500), &thinking(6750), &["thinking.budget_tokens"]);
    route.check(&thinking(500), &thinking(1024), &["thinking.budget_tokens"]);
}

#[test]
fn an_effort_without_a_limit_gets_its_whole_budget() {
    let expected = json!({ "thinking": { "type": "enabled", "budget_tokens": 32768 }, "max_tokens": 40960 });
    claude("claude-sonnet-4-5").check(&json!({ "reasoning_effort": "xhigh" }), &expected, &[]);
}

#[test]
fn an_unknown_effort_is_reported() {
    let asked = json!({ "reasoning": { "effort": "newest" } });
    let route = chat("openai", "gpt-5").with_responses_client();
    route.check(&asked, &json!({ "reasoning_effort": "medium" }), &["reasoning.effort"]);
}

#[test]
fn a_client_that_wants_no_reasoning_gets_no_summary_of_it() {
    let disabled = json!({ "thinking": { "type": "disabled" } });
    responses("gpt-5").check(&disabled, &json!({ "reasoning": { "effort": "minimal" } }), &["reasoning"]);
}
