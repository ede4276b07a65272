//! What hosts of the Messages dialect say about the order and the content of messages.

use std::collections::HashSet;

use serde_json::Value;

use super::claude_models;
use super::memory::Memory;
use super::profile::{Rule, StrictProfile};

type Check = Result<(), String>;

pub(super) fn check(profile: &StrictProfile, body: &Value, memory: &Memory) -> Check {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (Some(first), Some(last)) = (messages.first(), messages.last()) else {
        return Err("messages: at least one message is required".to_owned());
    };
    if first["role"] == "assistant" && profile.has(&Rule::AssistantNotFirst) {
        return Err("A conversation must start with a user message.".to_owned());
    }
    for block in
        blocks(&body["system"]).chain(messages.iter().flat_map(|message| blocks(&message["content"])))
    {
        content(profile, block, memory)?;
    }
    for message in messages {
        let text = message["content"].as_str();
        let is_empty =
            blocks(&message["content"]).next().is_none() && text.is_none_or(|text| text.trim().is_empty());
        if is_empty && message["role"] != "system" {
            return Err("messages: all messages must have non-empty content".to_owned());
        }
    }
    late_system(profile, messages)?;
    prefill(profile, last)?;
    calls_and_results(messages)?;
    thinking_first(body, messages)
}

fn content(profile: &StrictProfile, block: &Value, memory: &Memory) -> Check {
    let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    match block["type"].as_str().unwrap_or_default() {
        "text" if is_blank(&block["text"]) => {
            Err("text content blocks must contain non-whitespace text".to_owned())
        }
        "document" if is_blank(&block["source"]["data"]) => Err("a document needs text".to_owned()),
        "image" | "document" if block["source"]["type"] == "url" && profile.has(&Rule::NoStrictNoUrls) => {
            Err("URL sources are not supported".to_owned())
        }
        "tool_result" => blocks(&block["content"]).try_for_each(|block| content(profile, block, memory)),
        "thinking" => {
            let seal = block["signature"].as_str().unwrap_or_default();
            match memory.sealed_text(seal) {
                Some(text) if block["thinking"] == text => Ok(()),
                Some(_) => Err("`thinking` blocks cannot be modified".to_owned()),
                None => Err(format!("Invalid `signature` in `thinking` block: {seal}")),
            }
        }
        _ => Ok(()),
    }
}

fn late_system(profile: &StrictProfile, messages: &[Value]) -> Check {
    let late = messages.iter().enumerate().filter(|(_, message)| message["role"] == "system");
    for (index, _) in late {
        if !claude_models::of(profile.model).late_system {
            return Err("messages: Unexpected role \"system\"".to_owned());
        }
        let follows_user = index > 0 && messages[index - 1]["role"] == "user";
        let before_assistant = messages.get(index + 1).is_none_or(|next| next["role"] == "assistant");
        if !follows_user || !before_assistant {
            return Err(
                "messages: a system message follows a user turn and precedes an assistant turn".to_owned()
            );
        }
    }
    Ok(())
}

fn prefill(profile: &StrictProfile, last: &Value) -> Check {
    if last["role"] != "assistant" {
        return Ok(());
    }
    if !claude_models::of(profile.model).prefill {
        return Err("This model does not support assistant message prefill.".to_owned());
    }
    let text = last["content"].as_str().or_else(|| blocks(&last["content"]).last()?["text"].as_str());
    if text.is_some_and(|text| text.ends_with(char::is_whitespace)) {
        return Err("final assistant content cannot end with trailing whitespace".to_owned());
    }
    Ok(())
}

/// Each call has its result at the beginning of the next turn; ids are used once.
fn calls_and_results(messages: &[Value]) -> Check {
    let mut used: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let mut leading = true;
        let mut answered: HashSet<&str> = HashSet::new();
        for block in blocks(&message["content"]) {
            if block["type"] != "tool_result" {
                leading = false;
                continue;
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if !leading {
                return Err(format!("tool_result blocks must come first in the user message: {id}"));
            }
            if !open.contains(&id) || !answered.insert(id) {
                return Err(format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
            }
        }
        if let Some(id) = open.iter().find(|id| !answered.contains(**id)) {
            return Err(format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {id}"
            ));
        }
        open.clear();
        for block in blocks(&message["content"]).filter(|block| block["type"] == "tool_use") {
            let id = block["id"].as_str().unwrap_or_default();
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if id.is_empty() || !id.bytes().all(is_word) {
                return Err(format!(
                    "messages.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {id}"
                ));
            }
            if !used.insert(id) {
                return Err(format!("`tool_use` ids must be unique: {id}"));
            }
            if !block["input"].is_object() {
                return Err("tool_use.input: Input should be a valid dictionary".to_owned());
            }
            open.push(id);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("`tool_use` without `tool_result`: {open:?}")) }
}

/// With `enabled`, a tool loop continues a turn that begins with thinking.
fn thinking_first(body: &Value, messages: &[Value]) -> Check {
    let is_loop = messages
        .last()
        .is_some_and(|last| blocks(&last["content"]).any(|block| block["type"] == "tool_result"));
    if body["thinking"]["type"] != "enabled" || !is_loop {
        return Ok(());
    }
    let assistant = messages.iter().rev().find(|message| message["role"] == "assistant");
    let first = assistant.and_then(|message| blocks(&message["content"]).next());
    match first.and_then(|block| block["type"].as_str()) {
        Some("thinking" | "redacted_thinking") | None => Ok(()),
        Some(kind) => Err(format!(
            "Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, a final \
             `assistant` message must start with a thinking block."
        )),
    }
}

/// Whether the thought with this seal is before the call, in the same turn.
pub(super) fn thought_precedes(body: &Value, call: &str, seal: &str) -> bool {
    let mut messages = body["messages"].as_array().into_iter().flatten();
    let Some(message) = messages.find(|message| blocks(&message["content"]).any(|block| block["id"] == call))
    else {
        return true;
    };
    let mut before = blocks(&message["content"]).take_while(|block| block["id"] != call);
    before.any(|block| block["signature"] == seal)
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}
