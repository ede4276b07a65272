//! What hosts of the Responses dialect refuse.

use std::collections::HashSet;

use serde_json::Value;

use super::memory::Memory;
use super::profile::{Rule, StrictProfile};
use super::{openai_models, schema_rules};

type Check = Result<(), String>;

/// The longest id of an item or a call.
const MAX_ID: usize = 64;
const MIN_OUTPUT_TOKENS: u64 = 16;

/// The first rule that a request breaks.
pub(super) fn broken(profile: &StrictProfile, body: &Value, memory: &Memory) -> Check {
    openai_models::check(profile, body)?;
    if body["max_output_tokens"].as_u64().is_some_and(|limit| limit < MIN_OUTPUT_TOKENS) {
        return Err(format!("Invalid 'max_output_tokens': expected a value >= {MIN_OUTPUT_TOKENS}"));
    }
    let user = body["user"].as_str().unwrap_or_default();
    if user.chars().count() > 64 {
        return Err("Invalid 'user': string too long. Expected a string with maximum length 64".to_owned());
    }
    tools(profile, body)?;
    items(profile, body, memory)
}

fn tools(profile: &StrictProfile, body: &Value) -> Check {
    let offered = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if offered.is_empty() && body["tool_choice"].is_object() {
        return Err("Tool choice is only allowed when tools are specified.".to_owned());
    }
    for tool in offered.iter().filter(|tool| tool["type"] == "function") {
        let name = tool["name"].as_str().unwrap_or_default();
        if name.is_empty() || name.len() > MAX_ID {
            return Err(format!("Invalid 'tools[].name': {name}"));
        }
        schema_rules::check(profile, tool)?;
    }
    let named = &body["tool_choice"]["name"];
    if named.is_string() && !offered.iter().any(|tool| tool["name"] == *named) {
        return Err(format!("Tool choice {named} not found in 'tools'"));
    }
    let format = &body["text"]["format"];
    if format["type"] == "json_schema" && format["strict"] == true {
        schema_rules::each(&format["schema"], &schema_rules::strict_object)?;
    }
    Ok(())
}

fn items(profile: &StrictProfile, body: &Value, memory: &Memory) -> Check {
    let items = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut called: HashSet<&str> = HashSet::new();
    let mut answered: HashSet<&str> = HashSet::new();
    for item in items {
        let is_message = item["type"] == "message";
        if !item["status"].is_null() && !is_message && profile.has(&Rule::NoItemStatus) {
            return Err("Unknown parameter: 'input[].status'".to_owned());
        }
        let id = item["call_id"].as_str().unwrap_or_default();
        let ids = [id, item["id"].as_str().unwrap_or_default()];
        if ids.iter().any(|id| id.len() > MAX_ID) {
            return Err(format!("Invalid 'input[].id': string too long. Maximum length {MAX_ID}"));
        }
        match item["type"].as_str().unwrap_or("message") {
            "function_call" | "custom_tool_call" if !called.insert(id) => {
                return Err(format!("Duplicate call_id {id}"));
            }
            "function_call_output" | "custom_tool_call_output"
                if !called.contains(id) || !answered.insert(id) =>
            {
                return Err(format!("No tool call found for function call output with call_id {id}."));
            }
            "reasoning" => {
                let seal = item["encrypted_content"].as_str().unwrap_or_default();
                if memory.sealed_text(seal).is_none() {
                    return Err(format!("The encrypted content {seal:?} could not be verified."));
                }
            }
            _ => {}
        }
    }
    match called.difference(&answered).next() {
        Some(id) => Err(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}
