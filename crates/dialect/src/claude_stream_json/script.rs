//! Splits a conversation in Messages API JSON into the lines that load it into a fresh process.
//!
//! User text is data. The program would read `@path` and run `/command`: its environment disables the first, and an
//! empty text block prevents the second; the program drops that block before the model sees it.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use toolgate_model::{Losses, Translated, TurnError};

use super::tools::AgentTools;

/// A conversation for a fresh process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryScript {
    /// The messages before the last one, in order.
    pub history: Vec<HistoryLine>,
    /// The content of the last user message, which the model answers.
    pub last: Value,
}

/// One message of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryLine {
    /// Content of a user message.
    User(Value),
    /// Content of an assistant message.
    Assistant(Value),
}

/// The result of a call that the client never answered before it continued the conversation.
const ABANDONED: &str = "The user did not run this call.";

/// The result of a built-in call that was interrupted.
const INTERRUPTED: &str = "The connection was lost while this tool was running. It may or may not have run: check before you run it again.";

/// Messages of the program that the client never saw, built-in calls and their results included (B6).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HiddenSteps {
    /// What the program did for each assistant message that the client saw, by the index among assistant messages.
    pub by_reply: BTreeMap<usize, Vec<Value>>,
    /// What the program did in an interrupted run of the last turn.
    pub unfinished: Vec<Value>,
}

/// Splits `messages` into lines, with tools under the names that the model knows.
pub fn script(
    messages: Vec<Value>,
    tools: &AgentTools,
    hidden: HiddenSteps,
) -> Result<Translated<HistoryScript>, TurnError> {
    let mut losses = Losses::default();
    let mut whole = insert_hidden_steps(hidden.by_reply, normalize_blocks(messages, tools));
    whole.extend(hidden.unfinished);
    let mut turns = merge_turns(whole, &mut losses);
    add_missing_results(&mut turns, &mut losses)?;
    let Some(HistoryTurn { role: Role::User, content: last }) = turns.pop() else {
        return Err(TurnError::invalid_param(
            "messages",
            "messages: the last message must be a user message: an agent cannot continue an assistant message",
        ));
    };
    let history = turns.into_iter().map(|turn| match turn.role {
        Role::User => HistoryLine::User(Value::Array(escape_commands(turn.content))),
        Role::Assistant => HistoryLine::Assistant(Value::Array(turn.content)),
    });
    let value = HistoryScript { history: history.collect(), last: Value::Array(escape_commands(last)) };
    Ok(Translated { value, losses })
}

fn normalize_blocks(mut messages: Vec<Value>, tools: &AgentTools) -> Vec<Value> {
    for message in &mut messages {
        if let Some(blocks) = message["content"].as_array_mut() {
            for block in blocks {
                normalize_block(block, tools);
            }
        }
    }
    messages
}

fn insert_hidden_steps(mut steps: BTreeMap<usize, Vec<Value>>, messages: Vec<Value>) -> Vec<Value> {
    if steps.is_empty() {
        return messages;
    }
    let mut whole = Vec::with_capacity(messages.len());
    let mut number = 0;
    for message in messages {
        let is_assistant = message["role"] == "assistant";
        if !is_assistant {
            whole.push(message);
            continue;
        }
        match steps.remove(&number) {
            Some(done) => {
                let lost = lost_results(&done, &message);
                whole.extend(done);
                whole.extend(lost);
            }
            None => whole.push(message),
        }
        number += 1;
    }
    whole
}

/// Results for built-in calls that were interrupted. Calls in `seen` are the client's, and it sends their results.
fn lost_results(done: &[Value], seen: &Value) -> Option<Value> {
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = done.iter().chain([seen]).flat_map(blocks).collect();
    let ids = |field: &str, blocks: &[Value]| -> HashSet<String> {
        blocks.iter().filter_map(|block| block[field].as_str().map(str::to_owned)).collect()
    };
    let (answered, client_calls) = (ids("tool_use_id", &all), ids("id", &blocks(seen)));
    let calls = done.iter().flat_map(blocks).filter(|block| block["type"] == "tool_use");
    let is_lost = |id: &str| !answered.contains(id) && !client_calls.contains(id);
    let lost = calls
        .filter(|call| call["id"].as_str().is_some_and(is_lost))
        .map(|call| interrupted_result(&call["id"]));
    let results: Vec<Value> = lost.collect();
    (!results.is_empty()).then(|| json!({ "role": "user", "content": results }))
}

/// The error result of an interrupted call.
pub fn interrupted_result(call: &Value) -> Value {
    let content = json!([{ "type": "text", "text": INTERRUPTED }]);
    json!({ "type": "tool_result", "tool_use_id": call, "is_error": true, "content": content })
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    User,
    Assistant,
}

struct HistoryTurn {
    role: Role,
    content: Vec<Value>,
}

/// Merges consecutive messages of one role.
fn merge_turns(messages: Vec<Value>, losses: &mut Losses) -> Vec<HistoryTurn> {
    let mut turns: Vec<HistoryTurn> = Vec::new();
    for mut message in messages {
        let role = match message["role"].as_str() {
            Some("assistant") => Role::Assistant,
            Some("system") => {
                losses.add(
                    "messages[].system",
                    "an agent takes instructions only before the conversation: sent as user text",
                );
                Role::User
            }
            _ => Role::User,
        };
        let content = match message["content"].take() {
            Value::Array(blocks) => blocks,
            Value::String(text) => vec![json!({ "type": "text", "text": text })],
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(HistoryTurn { role, content }),
        }
    }
    turns
}

/// Removes cache markers, which the program sets itself, and renames tools to what the model sees.
fn normalize_block(block: &mut Value, tools: &AgentTools) {
    let Some(fields) = block.as_object_mut() else { return };
    fields.shift_remove("cache_control");
    if fields.get("type").is_some_and(|kind| kind == "tool_use") {
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        let visible = Value::from(tools.visible_name(name));
        fields.insert("name".to_owned(), visible);
    }
    if let Some(Value::Array(parts)) = fields.get_mut("content") {
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            part.shift_remove("cache_control");
        }
    }
}

/// The API requires a result for every call. A client that continued without a result has abandoned the call; a client
/// that sent only some of the results gets an error that names the missing ones (B5).
fn add_missing_results(turns: &mut [HistoryTurn], losses: &mut Losses) -> Result<(), TurnError> {
    let last = turns.len().saturating_sub(1);
    for index in 1..turns.len() {
        let (before, after) = turns.split_at_mut(index);
        let (Some(said), Some(answer)) = (before.last(), after.first_mut()) else { continue };
        if said.role != Role::Assistant {
            continue;
        }
        let calls = said.content.iter().filter(|block| block["type"] == "tool_use");
        let answered: HashSet<&str> =
            answer.content.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
        let missing: Vec<String> = calls
            .filter_map(|call| call["id"].as_str())
            .filter(|id| !answered.contains(id))
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            continue;
        }
        let only_results = answer.content.iter().all(|block| block["type"] == "tool_result");
        if index == last && only_results {
            return Err(TurnError::invalid_param(
                "messages",
                format!(
                    "messages: results are missing for the calls {}: send all results together",
                    missing.join(", ")
                ),
            ));
        }
        losses.add("tool calls without a result", "the model sees that these calls did not run");
        let abandoned = missing.iter().map(|id| {
            let content = json!([{ "type": "text", "text": ABANDONED }]);
            json!({ "type": "tool_result", "tool_use_id": id, "is_error": true, "content": content })
        });
        answer.content.splice(0..0, abandoned);
    }
    Ok(())
}

fn escape_commands(mut content: Vec<Value>) -> Vec<Value> {
    let is_command =
        |block: &Value| block["text"].as_str().is_some_and(|text| text.trim_start().starts_with('/'));
    if content.iter().any(is_command) {
        content.push(json!({ "type": "text", "text": "" }));
    }
    content
}
