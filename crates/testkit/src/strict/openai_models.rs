//! `OpenAI`'s model families: efforts, sampling and limits, in both of its dialects.

use serde_json::Value;

use super::profile::{StrictDialect, StrictProfile};

/// The facts about one family. The longest matching prefix is the model's family.
struct Family {
    prefix: &'static str,
    efforts: &'static [&'static str],
    default: Default,
    max_output: u64,
}

/// What a model does without an effort.
#[derive(PartialEq)]
enum Default {
    CannotReason,
    Off,
    On,
}

const FAMILIES: &[Family] = &[
    Family { prefix: "gpt-4o", efforts: &[], default: Default::CannotReason, max_output: 16_384 },
    Family { prefix: "gpt-4.1", efforts: &[], default: Default::CannotReason, max_output: 32_768 },
    Family { prefix: "gpt-5-chat", efforts: &[], default: Default::CannotReason, max_output: 16_384 },
    Family { prefix: "o3", efforts: &["low", "medium", "high"], default: Default::On, max_output: 100_000 },
    Family {
        prefix: "o4-mini",
        efforts: &["low", "medium", "high"],
        default: Default::On,
        max_output: 100_000,
    },
    Family {
        prefix: "gpt-5",
        efforts: &["minimal", "low", "medium", "high"],
        default: Default::On,
        max_output: 128_000,
    },
    Family { prefix: "gpt-5-pro", efforts: &["high"], default: Default::On, max_output: 128_000 },
    Family {
        prefix: "gpt-5.1",
        efforts: &["none", "low", "medium", "high"],
        default: Default::Off,
        max_output: 128_000,
    },
    Family {
        prefix: "gpt-5.2",
        efforts: &["none", "low", "medium", "high", "xhigh"],
        default: Default::Off,
        max_output: 128_000,
    },
    Family {
        prefix: "gpt-5.4",
        efforts: &["none", "low", "medium", "high", "xhigh"],
        default: Default::Off,
        max_output: 128_000,
    },
    Family {
        prefix: "gpt-5.5",
        efforts: &["none", "low", "medium", "high", "xhigh"],
        default: Default::On,
        max_output: 128_000,
    },
    Family {
        prefix: "gpt-6.1-sol",
        efforts: &["low", "medium", "high", "xhigh"],
        default: Default::On,
        max_output: 128_000,
    },
];

/// From these on, Chat takes function tools only while the model does not reason.
const NO_CHAT_TOOLS: [&str; 3] = ["gpt-5.4", "gpt-5.5", "gpt-6"];

fn family(model: &str) -> &'static Family {
    let known = FAMILIES.iter().filter(|family| model.starts_with(family.prefix));
    known.max_by_key(|family| family.prefix.len()).unwrap_or(&FAMILIES[0])
}

fn effort(body: &Value) -> Option<&str> {
    body["reasoning_effort"].as_str().or_else(|| body["reasoning"]["effort"].as_str())
}

pub(super) fn thinks(profile: &StrictProfile, body: &Value) -> bool {
    let family = family(profile.model);
    match (effort(body), &family.default) {
        (_, Default::CannotReason) => false,
        (Some(effort), Default::Off | Default::On) => effort != "none",
        (None, default) => *default == Default::On,
    }
}

/// The rules of a family.
pub(super) fn check(profile: &StrictProfile, body: &Value) -> Result<(), String> {
    let family = family(profile.model);
    let unsupported =
        |field: &str| Err(format!("Unsupported parameter: '{field}' is not supported with this model."));
    if family.default == Default::CannotReason {
        for field in ["reasoning_effort", "reasoning"] {
            if !body[field].is_null() {
                return unsupported(field);
            }
        }
        let include = body["include"].as_array().into_iter().flatten();
        if include.clone().any(|value| value == "reasoning.encrypted_content") {
            return Err("Encrypted content is not supported with this model.".to_owned());
        }
    }
    if let Some(effort) = effort(body).filter(|effort| !family.efforts.contains(effort)) {
        return Err(format!(
            "Unsupported value: '{effort}' is not supported with this model. {:?}",
            family.efforts
        ));
    }
    let reasons = thinks(profile, body);
    if reasons {
        let sampling =
            ["top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs"];
        if let Some(field) = sampling.into_iter().find(|field| !body[*field].is_null()) {
            return unsupported(field);
        }
        if body["temperature"].as_f64().is_some_and(|temperature| (temperature - 1.0).abs() > 1e-9) {
            return unsupported("temperature");
        }
    }
    let is_new = family.default != Default::CannotReason;
    if is_new && !body["max_tokens"].is_null() {
        return Err("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.".to_owned());
    }
    if is_new && !body["stop"].is_null() {
        return unsupported("stop");
    }
    if profile.model.starts_with('o') && !body["parallel_tool_calls"].is_null() {
        return unsupported("parallel_tool_calls");
    }
    for field in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
        if body[field].as_u64().is_some_and(|limit| limit > family.max_output) {
            return Err(format!("{field} is too large: this model supports at most {}", family.max_output));
        }
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    let has_functions = tools.clone().any(|tool| tool["type"] == "function");
    let refuses_tools = NO_CHAT_TOOLS.iter().any(|prefix| profile.model.starts_with(prefix));
    if profile.dialect == StrictDialect::Chat && has_functions && refuses_tools && reasons {
        return Err("Function tools with reasoning_effort are not supported: use /v1/responses.".to_owned());
    }
    Ok(())
}
