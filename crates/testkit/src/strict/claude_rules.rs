//! What hosts of the Messages dialect refuse.

use serde_json::Value;

use super::claude_models::{self, ForcedTool, Sampling};
use super::memory::Memory;
use super::profile::{Rule, StrictProfile};
use super::{claude_messages, schema_rules};

type Check = Result<(), String>;

/// The first rule that a request breaks.
pub(super) fn broken(profile: &StrictProfile, body: &Value, memory: &Memory) -> Check {
    thinking(profile, body)?;
    sampling(profile, body)?;
    limits(profile, body)?;
    tools(profile, body)?;
    format(body)?;
    claude_messages::check(profile, body, memory)
}

/// The most cache marks.
const MAX_MARKS: usize = 4;

/// The least thinking budget.
const MIN_BUDGET: u64 = 1_024;

fn thinking(profile: &StrictProfile, body: &Value) -> Check {
    let model = claude_models::of(profile.model);
    let effort = body["output_config"]["effort"].as_str();
    if let Some(effort) = effort.filter(|effort| !model.efforts.contains(effort)) {
        return Err(format!("output_config.effort: {effort} is not supported on this model"));
    }
    let Some(kind) = body["thinking"]["type"].as_str() else { return Ok(()) };
    if !model.thinking.contains(&kind) {
        return Err(format!("thinking.type: \"{kind}\" is not supported on this model"));
    }
    let is_high = matches!(effort, Some("xhigh" | "max"));
    if kind == "disabled" && is_high && claude_models::disabled_needs_low_effort(profile.model) {
        return Err("thinking.type: \"disabled\" is not supported at this effort".to_owned());
    }
    if kind == "enabled" {
        let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
        if budget < MIN_BUDGET {
            return Err(format!("thinking.budget_tokens: must be at least {MIN_BUDGET}"));
        }
        if body["max_tokens"].as_u64().is_some_and(|limit| limit <= budget) {
            return Err("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
        }
    }
    Ok(())
}

fn sampling(profile: &StrictProfile, body: &Value) -> Check {
    let is_set = |field: &str| !body[field].is_null();
    if body["temperature"].as_f64().is_some_and(|temperature| temperature > 1.0) {
        return Err("temperature: range: 0..1".to_owned());
    }
    match claude_models::of(profile.model).sampling {
        Sampling::Refused => {
            match ["temperature", "top_p", "top_k"].into_iter().find(|field| is_set(field)) {
                Some(field) => Err(format!("`{field}` is not supported on this model")),
                None => Ok(()),
            }
        }
        Sampling::OneWithoutThinking => {
            if is_set("temperature") && is_set("top_p") {
                return Err("`temperature` and `top_p` cannot both be specified for this model.".to_owned());
            }
            let any = ["temperature", "top_p", "top_k"].into_iter().find(|field| is_set(field));
            match any.filter(|_| profile.thinks(body)) {
                Some(field) => Err(format!("`{field}` may not be set when thinking is enabled")),
                None => Ok(()),
            }
        }
    }
}

fn limits(profile: &StrictProfile, body: &Value) -> Check {
    let most = claude_models::of(profile.model).max_tokens;
    match body["max_tokens"].as_u64() {
        None | Some(0) => return Err("max_tokens: must be greater than or equal to 1".to_owned()),
        Some(limit) if limit > most => return Err(format!("max_tokens: {limit} > {most}")),
        Some(_) => {}
    }
    let stops = body["stop_sequences"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if stops.into_iter().any(|stop| stop.trim().is_empty()) {
        return Err("stop_sequences: each stop sequence must contain non-whitespace".to_owned());
    }
    if body.to_string().matches("\"cache_control\":{").count() > MAX_MARKS {
        return Err(format!("A maximum of {MAX_MARKS} blocks with cache_control may be provided."));
    }
    Ok(())
}

fn tools(profile: &StrictProfile, body: &Value) -> Check {
    let model = claude_models::of(profile.model);
    let longest = if profile.has(&Rule::ShortToolNames) { 64 } else { 128 };
    let offered = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for tool in offered {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > longest || !name.bytes().all(is_word) {
            return Err(format!("tools.0.custom.name: String should match pattern: {name}"));
        }
        let schema = &tool["input_schema"];
        if ["oneOf", "anyOf", "allOf"].iter().any(|union| !schema[*union].is_null()) {
            return Err("input_schema does not support oneOf, allOf, or anyOf at the top level".to_owned());
        }
        if profile.has(&Rule::NoStrictNoUrls) && !tool["strict"].is_null() {
            return Err("tools.0.custom.strict: Extra inputs are not permitted".to_owned());
        }
        if tool["strict"] == true {
            schema_rules::claude_format(schema)?;
        }
    }
    let choice = &body["tool_choice"];
    if !choice.is_null() && offered.is_empty() {
        return Err("tool_choice may only be specified while providing tools".to_owned());
    }
    if choice["type"] == "tool" && !offered.iter().any(|tool| tool["name"] == choice["name"]) {
        return Err(format!("Tool '{}' not found in provided tools", choice["name"]));
    }
    if choice["type"] != "any" && choice["type"] != "tool" {
        return Ok(());
    }
    let is_broken = match model.forced_tool {
        ForcedTool::NotWhileThinking => profile.thinks(body),
        ForcedTool::NotIfEnabled => body["thinking"]["type"] == "enabled",
        ForcedTool::Accepted => false,
        ForcedTool::Refused => true,
    };
    if is_broken {
        Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned())
    } else {
        Ok(())
    }
}

fn format(body: &Value) -> Check {
    let format = &body["output_config"]["format"];
    if format.is_null() {
        return Ok(());
    }
    schema_rules::claude_format(&format["schema"])
}
