//! Sampling settings and stop sequences.

use serde_json::json;

use super::{chat, claude};

#[test]
fn sampling_and_stops_are_sent_only_where_the_model_takes_them() {
    let asked = json!({ "temperature": 0.5, "stop_sequences": ["END"] });
    let nothing = json!({ "temperature": null, "stop": null });
    let both = json!({ "temperature": 0.5, "stop": ["END"] });
    let temperature = json!({ "temperature": 0.5, "stop": null });
    let stop = json!({ "temperature": null, "stop": ["END"] });
    for (profile, model, expected, lost) in [
        ("openai", "gpt-4o-mini", &both, &[][..]),
        ("openai", "gpt-5", &nothing, &["temperature", "stop"]),
        ("openai", "o4-mini", &nothing, &["temperature", "stop"]),
        // It reasons only if asked.
        ("openai", "gpt-5.1", &temperature, &["stop"]),
        ("groq", "openai/gpt-oss-120b", &both, &[]),
        ("xai", "grok-4.5", &temperature, &["stop"]),
        ("moonshot", "kimi-k3", &stop, &["temperature"]),
        ("vllm", "Qwen/Qwen3-8B", &both, &[]),
    ] {
        chat(profile, model).check(&asked, expected, lost);
    }
}

#[test]
fn a_default_value_that_is_left_out_is_no_loss() {
    chat("openai", "gpt-5").check(&json!({ "temperature": 1 }), &json!({ "temperature": null }), &[]);
    let penalty = json!({ "frequency_penalty": 0, "top_p": 1 });
    claude("claude-opus-4-8").check(&penalty, &json!({ "top_p": null }), &[]);
}

#[test]
fn temperature_excludes_top_p_on_newer_claude_models() {
    let asked = json!({ "temperature": 0.5, "top_p": 0.9 });
    claude("claude-sonnet-4-20250514").check(&asked, &asked, &[]);
    let temperature = json!({ "temperature": 0.5, "top_p": null });
    claude("claude-opus-4-1").check(&asked, &temperature, &["top_p"]);
    claude("claude-haiku-4-5").check(&asked, &temperature, &["top_p"]);
    claude("claude-haiku-4-5").check(&json!({ "top_p": 0.9 }), &json!({ "top_p": 0.9 }), &[]);
    let neither = json!({ "temperature": null, "top_p": null });
    claude("claude-opus-4-8").check(&asked, &neither, &["temperature", "top_p"]);
    let thinking = json!({ "temperature": 0.5, "reasoning_effort": "low" });
    claude("claude-haiku-4-5").check(&thinking, &json!({ "temperature": null }), &["temperature"]);
}

#[test]
fn a_temperature_above_the_hosts_highest_is_lowered() {
    let hot = json!({ "temperature": 1.5 });
    claude("claude-haiku-4-5").check(&hot, &json!({ "temperature": 1 }), &["temperature"]);
    let route = chat("zai", "glm-5").with_responses_client();
    route.check(&hot, &json!({ "temperature": 0.99 }), &["temperature"]);
    chat("openai", "gpt-4o").with_responses_client().check(&hot, &hot, &[]);
}

#[test]
fn sampling_stays_off_the_ends_of_the_range_where_the_host_excludes_them() {
    let route = chat("zai", "glm-5");
    let inside = json!({ "temperature": 0.5, "top_p": 0.9 });
    route.check(&inside, &inside, &[]);
    // What Claude clients send by default.
    route.check(&json!({ "temperature": 1 }), &json!({ "temperature": 0.99 }), &[]);
    let zero = json!({ "temperature": 0, "top_p": 1 });
    route.check(&zero, &json!({ "temperature": 0.01, "top_p": 0.99 }), &["temperature"]);
    chat("groq", "llama-3.3-70b-versatile").check(&zero, &zero, &[]);
}

#[test]
fn blank_stop_sequences_are_left_out_for_claude() {
    let asked = json!({ "stop": ["\n\n", "END", " "] });
    claude("claude-haiku-4-5").check(&asked, &json!({ "stop_sequences": ["END"] }), &["stop"]);
    let kept = json!({ "stop_sequences": ["\n\n", "END"] });
    chat("openai", "gpt-4o").check(&kept, &json!({ "stop": ["\n\n", "END"] }), &[]);
}

#[test]
fn stop_sequences_beyond_the_hosts_number_are_left_out() {
    let asked = json!({ "stop_sequences": ["1", "2", "3", "4", "5"] });
    chat("vllm", "m").check(&asked, &json!({ "stop": ["1", "2", "3", "4"] }), &["stop"]);
    chat("zai", "glm-5").check(&asked, &json!({ "stop": ["1"] }), &["stop"]);
}

#[test]
fn mistral_gets_no_top_p_with_temperature_0() {
    let both = json!({ "temperature": 0, "top_p": 0.9 });
    chat("mistral", "mistral-large-latest").check(
        &both,
        &json!({ "temperature": 0, "top_p": null }),
        &["top_p"],
    );
    chat("vllm", "m").check(&both, &both, &[]);
}
