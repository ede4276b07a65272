//! What hosts of the Chat dialect refuse.

use serde_json::Value;

use super::memory::Memory;
use super::profile::{Rule, StrictProfile, Thinking};
use super::{chat_messages, openai_models, schema_rules};

type Check = Result<(), String>;

/// The first rule that a request breaks.
pub(super) fn broken(profile: &StrictProfile, body: &Value, memory: &Memory) -> Check {
    known_fields(profile, body)?;
    effort(profile, body)?;
    tools(profile, body)?;
    for rule in profile.rules {
        check(profile, rule, body)?;
    }
    chat_messages::check(profile, body, memory)
}

fn known_fields(profile: &StrictProfile, body: &Value) -> Check {
    let fields = body.as_object().into_iter().flatten();
    if let Some((name, _)) = fields.clone().find(|(_, value)| value.is_null()) {
        return Err(format!("{name}: null is not allowed"));
    }
    let mut names = fields.map(|(name, _)| name.as_str());
    let known = profile.only_fields.split(' ');
    if profile.only_fields.is_empty() {
        return Ok(());
    }
    match names.find(|name| known.clone().all(|known| known != *name)) {
        Some(name) => Err(format!("{name}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn effort(profile: &StrictProfile, body: &Value) -> Check {
    let value = &body["reasoning_effort"];
    if value.is_null() || profile.thinking == Thinking::OpenAi {
        return Ok(());
    }
    if value.as_str().is_some_and(|effort| profile.efforts.contains(&effort)) {
        return Ok(());
    }
    Err(format!("reasoning_effort: {value} is not one of {:?}", profile.efforts))
}

/// The longest name of a tool at a chat host.
const MAX_NAME: usize = 64;
const MAX_TOOLS: usize = 128;

fn tools(profile: &StrictProfile, body: &Value) -> Check {
    let offered = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if offered.is_empty() {
        let dependent = ["tools", "tool_choice", "parallel_tool_calls"];
        return match dependent.into_iter().find(|field| !body[*field].is_null()) {
            Some(field) => Err(format!("'{field}' is only allowed when 'tools' are specified")),
            None => Ok(()),
        };
    }
    if offered.len() > MAX_TOOLS {
        return Err(format!("Invalid 'tools': array too long. Expected at most {MAX_TOOLS}"));
    }
    for tool in offered {
        if tool["type"] == "custom" && profile.has(&Rule::OpenAiFamily) {
            continue;
        }
        if tool["type"] != "function" {
            return Err(format!("tools[].type: {} is not 'function'", tool["type"]));
        }
        let function = &tool["function"];
        let name = function["name"].as_str().unwrap_or_default();
        if !is_tool_name(name) {
            return Err(format!("Invalid 'tools[].function.name': {name}"));
        }
        if profile.has(&Rule::ToolsNeedParameters) && !function["parameters"].is_object() {
            return Err(format!("function {name} needs parameters"));
        }
        if profile.has(&Rule::NoStrict) && !function["strict"].is_null() {
            return Err("tools[].function.strict is not supported".to_owned());
        }
        schema_rules::check(profile, function)?;
    }
    let named = &body["tool_choice"]["function"]["name"];
    let is_offered = offered.iter().any(|tool| tool["function"]["name"] == *named);
    if named.is_string() && !is_offered {
        return Err(format!("tool_choice names {named}, which is not offered"));
    }
    Ok(())
}

/// Whether chat hosts accept the name of a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_word)
}

fn check(profile: &StrictProfile, rule: &Rule, body: &Value) -> Check {
    let refuse = |message: &str| Err(message.to_owned());
    let is_set = |field: &str| !body[field].is_null();
    let number = |field: &str| body[field].as_f64();
    let is_broken = match rule {
        Rule::OpenAiFamily => return openai_models::check(profile, body),
        Rule::UserAtMost(longest) => {
            body["user"].as_str().is_some_and(|user| user.chars().count() > *longest)
        }
        Rule::StopsAtMost(most) => body["stop"].as_array().is_some_and(|stops| stops.len() > *most),
        Rule::ToolChoices { words, named } => match &body["tool_choice"] {
            Value::Null => false,
            Value::String(word) => !words.contains(&word.as_str()),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => !named,
        },
        Rule::NoForcedToolWhileThinking => {
            let choice = &body["tool_choice"];
            (choice == "required" || choice == "any" || choice.is_object()) && profile.thinks(body)
        }
        Rule::Formats(formats) => {
            let format = body["response_format"]["type"].as_str();
            format.is_some_and(|format| !formats.contains(&format))
        }
        Rule::ToolsNotWithFormat => is_set("tools") && is_set("response_format"),
        Rule::NoStop => is_set("stop"),
        Rule::NoPenalties => is_set("presence_penalty") || is_set("frequency_penalty"),
        Rule::TemperatureOneOf(values) => number("temperature")
            .is_some_and(|temperature| values.iter().all(|value| (value - temperature).abs() > 1e-9)),
        Rule::TemperatureZeroNeedsTopPOne => {
            number("temperature") == Some(0.0) && number("top_p").is_some_and(|top_p| top_p < 1.0)
        }
        Rule::SamplingInside01 => {
            let outside = |value: f64| value <= 0.0 || value >= 1.0;
            number("temperature").is_some_and(outside) || number("top_p").is_some_and(outside)
        }
        Rule::WholeNeedsThinkingOff => body["stream"] != true && profile.thinks(body),
        Rule::ThinkingTypes(types) => {
            body["thinking"]["type"].as_str().is_some_and(|kind| !types.contains(&kind))
        }
        Rule::NotThinkingAndEffort => is_set("thinking") && is_set("reasoning_effort"),
        // Checked with the messages, the tools or in another dialect.
        Rule::NoDeveloper
        | Rule::NoStrict
        | Rule::NameOnlyOnTools
        | Rule::InlineImagesOnly
        | Rule::NoLateSystem
        | Rule::NeedsUserTurn
        | Rule::AfterToolOnlyAssistant
        | Rule::LastTurnUserOrTool
        | Rule::NoTwoFinalAssistantTurns
        | Rule::ToolsNeedParameters
        | Rule::ThoughtSignatures
        | Rule::GeminiSchema
        | Rule::MoonshotSchema
        | Rule::NoItemStatus
        | Rule::NoStrictNoUrls
        | Rule::AssistantNotFirst
        | Rule::ShortToolNames => false,
    };
    if is_broken { refuse(&format!("Invalid request: {rule:?}")) } else { Ok(()) }
}
