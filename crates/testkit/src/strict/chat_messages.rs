//! What hosts of the Chat dialect say about the order and the content of messages.

use std::collections::HashSet;

use serde_json::Value;

use super::memory::{Memory, ReasoningField, chat_thought};
use super::profile::{Back, CallIds, Rule, StrictProfile};

type Check = Result<(), String>;

pub(super) fn check(profile: &StrictProfile, body: &Value, memory: &Memory) -> Check {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return Err("messages must not be empty".to_owned());
    }
    for message in messages {
        fields(profile, message)?;
        reasoning(profile, message)?;
        ids(profile, message)?;
        images(profile, message)?;
        if profile.has(&Rule::ThoughtSignatures)
            && !calls(message).all(|call| memory.signature_is_right(call))
        {
            return Err("Function call is missing a thought_signature in functionCall parts.".to_owned());
        }
    }
    results(messages)?;
    order(profile, messages)
}

fn fields(profile: &StrictProfile, message: &Value) -> Check {
    let role = message["role"].as_str().unwrap_or_default();
    if role == "developer" && profile.has(&Rule::NoDeveloper) {
        return Err("unknown role: developer".to_owned());
    }
    if profile.has(&Rule::NameOnlyOnTools) && role != "tool" && !message["name"].is_null() {
        return Err("name: Extra inputs are not permitted".to_owned());
    }
    let is_empty = match &message["content"] {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err("content has a wrong type".to_owned());
        }
    };
    if role == "assistant" && is_empty && calls(message).next().is_none() {
        return Err("Assistant message must have either content or tool_calls".to_owned());
    }
    let takes_parts = profile.has(&Rule::OpenAiFamily) || profile.reasoning == ReasoningField::ThinkingPart;
    if role == "assistant" && message["content"].is_array() && !takes_parts {
        return Err("the content of an assistant message must be a string".to_owned());
    }
    if role == "user" && is_empty {
        return Err("user message must have content".to_owned());
    }
    Ok(())
}

const REASONING_FIELDS: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_details", "reasoning_text"];

fn reasoning(profile: &StrictProfile, message: &Value) -> Check {
    let known = if profile.back == Back::Refused { &[] } else { profile.reasoning.fields() };
    let foreign = |name: &&str| !known.contains(name) && !message[*name].is_null();
    if let Some(name) = REASONING_FIELDS.iter().find(|name| foreign(name)) {
        return Err(format!("property '{name}' is unsupported"));
    }
    if message["role"] != "assistant" {
        return Ok(());
    }
    let has_calls = calls(message).next().is_some();
    let thought = chat_thought(message, profile.reasoning);
    match profile.back {
        Back::OnEveryTurn if thought.is_none() => {
            Err("The `reasoning_content` in the thinking mode must be passed back to the API.".to_owned())
        }
        Back::OnCalls if has_calls && thought.as_deref().unwrap_or_default().is_empty() => {
            Err("reasoning_content is missing in assistant tool call message".to_owned())
        }
        Back::Refused | Back::Ignored | Back::Wanted | Back::OnCalls | Back::OnEveryTurn => {
            let text = message["content"].to_string();
            let is_foreign = text.contains("<think>") && profile.reasoning != ReasoningField::ThinkTags;
            if is_foreign { Err("the thought is in the text".to_owned()) } else { Ok(()) }
        }
    }
}

fn ids(profile: &StrictProfile, message: &Value) -> Check {
    let own = calls(message).map(|call| &call["id"]);
    let answered = Some(&message["tool_call_id"]).filter(|id| !id.is_null());
    for id in own.chain(answered) {
        let Some(id) = id.as_str() else { return Err("a call id is a string".to_owned()) };
        let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_right = match profile.ids {
            CallIds::OpenAi | CallIds::Moonshot | CallIds::Claude => !id.is_empty() && id.len() <= 40,
            CallIds::Mistral => id.len() == 9 && is_plain,
        };
        if !is_right {
            return Err(format!("Tool call id was {id} but must be as this host issues them"));
        }
    }
    for call in calls(message) {
        let name =
            call["function"]["name"].as_str().or_else(|| call["custom"]["name"].as_str()).unwrap_or_default();
        if !super::chat_rules::is_tool_name(name) {
            return Err(format!("Invalid 'messages[].tool_calls[].function.name': {name}"));
        }
        if call["type"] == "custom" {
            continue;
        }
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        if !serde_json::from_str::<Value>(arguments).is_ok_and(|arguments| arguments.is_object()) {
            return Err(format!("the arguments of a call are no JSON object: {arguments}"));
        }
    }
    Ok(())
}

fn images(profile: &StrictProfile, message: &Value) -> Check {
    let parts = message["content"].as_array().into_iter().flatten();
    for part in parts {
        let url =
            part["image_url"]["url"].as_str().or_else(|| part["image_url"].as_str()).unwrap_or_default();
        if part["type"] == "image_url" && message["role"] != "user" {
            return Err("images are only allowed in user messages".to_owned());
        }
        if url.starts_with("http") && profile.has(&Rule::InlineImagesOnly) {
            return Err("unsupported image url: use a data URI".to_owned());
        }
    }
    Ok(())
}

/// Every call has one result right after it, and every result has a call.
fn results(messages: &[Value]) -> Check {
    let mut open: HashSet<&str> = HashSet::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(format!("messages with role 'tool' must follow their tool_calls: {id}"));
            }
            continue;
        }
        if !open.is_empty() {
            return Err(format!("tool_calls must be followed by tool messages: {open:?} did not have any"));
        }
        for call in calls(message) {
            if !open.insert(call["id"].as_str().unwrap_or_default()) {
                return Err(format!("the call id {} is used twice", call["id"]));
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("tool_calls without results: {open:?}")) }
}

fn order(profile: &StrictProfile, messages: &[Value]) -> Check {
    let roles: Vec<&str> =
        messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    let is_system = |role: &str| matches!(role, "system" | "developer");
    let has_late_system = roles.iter().skip_while(|role| is_system(role)).any(|role| is_system(role));
    if has_late_system && profile.has(&Rule::NoLateSystem) {
        return Err("invalid chat setting: system messages come first".to_owned());
    }
    if profile.has(&Rule::NeedsUserTurn) && !roles.contains(&"user") {
        return Err("a user message is needed".to_owned());
    }
    let pair = |first: &str, second: &str| roles.windows(2).any(|pair| pair == [first, second]);
    if profile.has(&Rule::AfterToolOnlyAssistant) && (pair("tool", "user") || pair("tool", "system")) {
        return Err("Expected last role User or Tool: Unexpected role 'user' after role 'tool'".to_owned());
    }
    let last = messages.last().filter(|last| last["role"] == "assistant");
    if profile.has(&Rule::LastTurnUserOrTool) && last.is_some_and(|last| last["prefix"] != true) {
        return Err("Expected last role User or Tool (or Assistant with prefix True)".to_owned());
    }
    if profile.has(&Rule::NoTwoFinalAssistantTurns) && roles.ends_with(&["assistant", "assistant"]) {
        return Err("Cannot have 2 or more assistant messages at the end of the list.".to_owned());
    }
    Ok(())
}

fn calls(message: &Value) -> impl Iterator<Item = &Value> {
    message["tool_calls"].as_array().into_iter().flatten()
}
