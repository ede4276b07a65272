//! What a request or reply says in any dialect: the texts, thoughts, calls and results, without the wrapping.

use serde_json::Value;
use toolgate_model::{Block, Document, Message, Part, Reply, Source, StopReason, ToolCall, TurnRequest};

/// What a conversation says, one line a thing.
pub fn of_request(request: &TurnRequest) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    parts("system", &request.system, &mut said);
    for message in &request.messages {
        match message {
            Message::System(message) => parts("system", &message.content, &mut said),
            Message::User(message) => parts("user", &message.content, &mut said),
            Message::Assistant(message) => {
                message.content.iter().for_each(|block| self::block(block, &mut said));
            }
            Message::ToolResults(results) => {
                results.results.iter().for_each(|result| parts("result", &result.content, &mut said));
            }
        }
    }
    said.extend(request.tools.iter().filter_map(|tool| tool.name()).map(|name| format!("tool {name}")));
    said
}

/// What a reply says, one line a thing.
pub fn of_reply(reply: &Reply) -> Vec<String> {
    let mut said = Vec::new();
    reply.blocks.iter().for_each(|block| self::block(block, &mut said));
    let called = reply.blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
    said.push(format!("stop {:?}", stop(&reply.finish.stop, called)));
    if let Some(usage) = &reply.finish.usage {
        said.push(format!("tokens {} {}", usage.total_input(), usage.output));
    }
    said
}

/// Dialects tell different endings apart; calls decide first, as they do when a reply crosses dialects.
fn stop(stop: &StopReason, called: bool) -> StopReason {
    match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => StopReason::MaxTokens,
        StopReason::Refusal | StopReason::ContentFilter => StopReason::Refusal,
        _ if called => StopReason::ToolUse,
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Other(_) => StopReason::EndTurn,
    }
}

fn parts(who: &str, parts: &[Part], said: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Text(text) if text.text.trim().is_empty() => {}
            Part::Text(text) => say(who, &text.text, said),
            Part::Image(_) => said.push(format!("{who} image")),
            Part::Document(Document { source: Source::Text(text), .. }) => say(who, text, said),
            Part::Document(_) => said.push(format!("{who} document")),
            Part::Audio(_) => said.push(format!("{who} audio")),
            Part::Opaque(opaque) => said.push(format!("{who} {}", opaque.kind)),
        }
    }
}

fn block(block: &Block, said: &mut Vec<String>) {
    match block {
        Block::Text(text) | Block::Refusal(text) if text.text.trim().is_empty() => {}
        Block::Text(text) => say("assistant", &text.text, said),
        Block::Refusal(text) => say("refusal", &text.text, said),
        Block::Reasoning(reasoning) if reasoning.parts.is_empty() => {}
        Block::Reasoning(reasoning) => say("thought", &reasoning.text(), said),
        Block::ToolCall(call) => said.push(format!("call {} {}", call.name, arguments(call))),
        Block::Opaque(opaque) => said.push(format!("assistant {}", opaque.kind)),
    }
}

/// Adjacent texts of one speaker are one: dialects cut them differently.
fn say(who: &str, text: &str, said: &mut Vec<String>) {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match said.last_mut() {
        Some(last) if last.starts_with(who) && last[who.len()..].starts_with(": ") => {
            last.push_str(&squeezed);
        }
        _ => said.push(format!("{who}: {squeezed}")),
    }
}

/// A dialect without custom tools wraps their text as the only field `input`.
fn arguments(call: &ToolCall) -> Value {
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(fields))
            if fields.len() == 1 && fields.get("input").is_some_and(Value::is_string) =>
        {
            fields["input"].clone()
        }
        Ok(Value::Null) | Err(_) if call.arguments.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Ok(value) => value,
        Err(_) => Value::from(call.arguments.as_str()),
    }
}
