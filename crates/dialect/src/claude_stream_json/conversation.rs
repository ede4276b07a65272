//! Splits a conversation of the Messages API into the lines that load it into a new process.
//!
//! User text is data. The program would read `@path` and run `/command`: the first is disabled by its environment, the
//! second by an empty text block, which the program drops before the model sees it.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use toolgate_model::{Losses, Translated, TurnError};

use super::tools::AgentTools;

/// A conversation for a new process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// The earlier messages, in order.
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

/// The result of a call that the client did not answer before it continued.
const ABANDONED: &str = "The user did not run this call.";

/// The result of a built-in call that was interrupted.
const CUT_OFF: &str =
    "The connection was cut while this ran. It may or may not have completed: check before you run it again.";

/// Messages of the program's own history, including built-in calls and their results, which the client did not see (B6).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnSteps {
    /// The full messages behind one assistant message that the client saw, by the index of that assistant message.
    pub seen: BTreeMap<usize, Vec<Value>>,
    /// The messages of the unfinished turn that the client requests again.
    pub unfinished: Vec<Value>,
}

/// Splits `messages` into lines, with the tool names that the model sees.
pub fn script(
    messages: Vec<Value>,
    tools: &AgentTools,
    own: OwnSteps,
) -> Result<Translated<Script>, TurnError> {
    let mut losses = Losses::default();
    let mut whole = insert_own_steps(own.seen, renamed(messages, tools));
    whole.extend(own.unfinished);
    let mut turns = merged(whole, &mut losses);
    answer_all_calls(&mut turns, &mut losses)?;
    let Some(Turn { role: Role::User, content: last }) = turns.pop() else {
        return Err(TurnError::invalid_param(
            "messages",
            "messages: the last message must be the user's: an agent cannot continue an assistant message",
        ));
    };
    let history = turns.into_iter().map(|turn| match turn.role {
        Role::User => HistoryLine::User(Value::Array(as_data(turn.content))),
        Role::Assistant => HistoryLine::Assistant(Value::Array(turn.content)),
    });
    let value = Script { history: history.collect(), last: Value::Array(as_data(last)) };
    Ok(Translated { value, losses })
}

fn renamed(mut messages: Vec<Value>, tools: &AgentTools) -> Vec<Value> {
    for message in &mut messages {
        if let Some(blocks) = message["content"].as_array_mut() {
            for block in blocks {
                adapt_block(block, tools);
            }
        }
    }
    messages
}

fn insert_own_steps(mut steps: BTreeMap<usize, Vec<Value>>, messages: Vec<Value>) -> Vec<Value> {
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

/// The results of built-in calls that were interrupted. The client's own calls are those it has seen, and it sends their
/// results itself.
fn lost_results(done: &[Value], seen: &Value) -> Option<Value> {
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = done.iter().chain([seen]).flat_map(blocks).collect();
    let ids = |field: &str, blocks: &[Value]| -> HashSet<String> {
        blocks.iter().filter_map(|block| block[field].as_str().map(str::to_owned)).collect()
    };
    let (answered, theirs) = (ids("tool_use_id", &all), ids("id", &blocks(seen)));
    let calls = done.iter().flat_map(blocks).filter(|block| block["type"] == "tool_use");
    let is_lost = |id: &str| !answered.contains(id) && !theirs.contains(id);
    let lost = calls.filter(|call| call["id"].as_str().is_some_and(is_lost)).map(|call| cut_off(&call["id"]));
    let results: Vec<Value> = lost.collect();
    (!results.is_empty()).then(|| json!({ "role": "user", "content": results }))
}

/// The result of a call that was interrupted.
pub fn cut_off(call: &Value) -> Value {
    let content = json!([{ "type": "text", "text": CUT_OFF }]);
    json!({ "type": "tool_result", "tool_use_id": call, "is_error": true, "content": content })
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    User,
    Assistant,
}

struct Turn {
    role: Role,
    content: Vec<Value>,
}

/// Merges consecutive messages of one role.
fn merged(messages: Vec<Value>, losses: &mut Losses) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for mut message in messages {
        let role = match message["role"].as_str() {
            Some("assistant") => Role::Assistant,
            Some("system") => {
                losses.add(
                    "messages[].system",
                    "the agent accepts instructions only as a system prompt: sent as user text",
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
            _ => turns.push(Turn { role, content }),
        }
    }
    turns
}

/// Removes cache marks, which the program sets itself, and renames the client's tools.
fn adapt_block(block: &mut Value, tools: &AgentTools) {
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

/// Adds missing results: the model's host requires one for every call. A client that continued without a result has
/// abandoned the call. A client that sent only some results gets an error that names the missing ones (B5).
fn answer_all_calls(turns: &mut [Turn], losses: &mut Losses) -> Result<(), TurnError> {
    let last = turns.len().saturating_sub(1);
    for index in 1..turns.len() {
        let (before, after) = turns.split_at_mut(index);
        let (Some(calling), Some(answer)) = (before.last(), after.first_mut()) else { continue };
        if calling.role != Role::Assistant {
            continue;
        }
        let calls = calling.content.iter().filter(|block| block["type"] == "tool_use");
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
                    "messages: results are missing for the calls {}: send them together with the others",
                    missing.join(", ")
                ),
            ));
        }
        losses.add(
            "tool calls without a result",
            "the conversation continued without them: an error result is sent to the model",
        );
        let abandoned = missing.iter().map(|id| {
            let content = json!([{ "type": "text", "text": ABANDONED }]);
            json!({ "type": "tool_result", "tool_use_id": id, "is_error": true, "content": content })
        });
        answer.content.splice(0..0, abandoned);
    }
    Ok(())
}

fn as_data(mut content: Vec<Value>) -> Vec<Value> {
    let is_command =
        |block: &Value| block["text"].as_str().is_some_and(|text| text.trim_start().starts_with('/'));
    if content.iter().any(is_command) {
        content.push(json!({ "type": "text", "text": "" }));
    }
    content
}
