//! Writes the messages of a request: turns merged as the API requires, with ids and names that it accepts.

use serde::Serialize;
use toolgate_model::pairing::{HostIds, host_ids};
use toolgate_model::{
    AssistantMessage, Block, Fields, Losses, Message, Part, ToolOutcome, ToolResult, TurnRequest,
};

use super::ID;
use super::content_write::{report_refusal, write_call, write_opaque, write_reasoning, write_text};
use super::content_write_media::{write_document, write_image};
use super::wire::BlockOut;
use crate::NameMap;
use crate::host::CallIds;
use crate::names::accepted_ids;

/// The call ids to write.
pub(super) fn call_ids(request: &TurnRequest) -> HostIds {
    host_ids(&request.messages, accepted_ids(CallIds::Word)) // T23
}

/// A message to write.
#[derive(Serialize)]
pub(super) struct MessageOut<'a> {
    role: &'static str,
    pub(super) content: Vec<BlockOut<'a>>,
    #[serde(flatten)]
    extra: Fields,
    /// How many leading blocks are tool results; results precede all other blocks of a turn.
    #[serde(skip)]
    results: usize,
}

/// The conversation and its system prompt.
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<BlockOut<'a>>,
    pub(super) messages: Vec<MessageOut<'a>>,
}

/// Writes the whole conversation.
pub(super) fn write<'a>(
    request: &'a TurnRequest,
    ids: &'a HostIds,
    names: &'a NameMap,
    losses: &mut Losses,
) -> Conversation<'a> {
    let mut system = write_parts(&request.system, losses);
    let mut messages: Vec<MessageOut<'a>> = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        match message {
            Message::System(message) => {
                let extra = message.extras.write(ID, "messages[].system", losses);
                let content = write_parts(&message.content, losses);
                if content.is_empty() {
                    continue;
                }
                // Leading system messages of other dialects go into `system`. Later ones, and those with blocks
                // that only make sense in the conversation, stay in place (T29).
                let in_place = !messages.is_empty()
                    || !extra.is_empty()
                    || message.content.iter().any(|part| matches!(part, Part::Opaque(_)));
                if in_place {
                    messages.push(MessageOut { role: "system", content, extra, results: 0 });
                } else {
                    system.extend(content);
                }
            }
            Message::User(user) => {
                let extra = user.extras.write(ID, "messages[].user", losses);
                let content = write_parts(&user.content, losses);
                if !content.is_empty() {
                    let turn = user_turn(&mut messages);
                    turn.content.extend(content);
                    turn.extra.extend(extra);
                }
            }
            Message::ToolResults(results) => {
                let turn = user_turn(&mut messages);
                for at in ids.results_in_order(index) {
                    let Some(result) = results.results.get(*at) else { continue };
                    let block = write_result(result, ids.result(index, *at), losses);
                    turn.content.insert(turn.results, block);
                    turn.results += 1;
                }
            }
            Message::Assistant(assistant) => {
                let extra = assistant.extras.write(ID, "messages[].assistant", losses);
                let content = write_assistant(index, assistant, ids, names, losses);
                if !content.is_empty() {
                    messages.push(MessageOut { role: "assistant", content, extra, results: 0 });
                }
            }
        }
    }
    if messages.is_empty() && !system.is_empty() && request.system.is_empty() {
        // The API requires at least one message; other dialects accept instructions alone.
        losses.add(
            "messages[].system",
            "a conversation needs a user message: the instructions are sent as one",
        );
        user_turn(&mut messages).content = std::mem::take(&mut system);
    }
    Conversation { system, messages }
}

/// The user message at the end, added if there is none: the API requires all results of a turn in one message (T25).
fn user_turn<'m, 'a>(messages: &'m mut Vec<MessageOut<'a>>) -> &'m mut MessageOut<'a> {
    if messages.last().is_none_or(|last| last.role != "user") {
        messages.push(MessageOut { role: "user", content: Vec::new(), extra: Fields::new(), results: 0 });
    }
    let last = messages.len() - 1;
    &mut messages[last]
}

fn write_assistant<'a>(
    index: usize,
    assistant: &'a AssistantMessage,
    ids: &'a HostIds,
    names: &'a NameMap,
    losses: &mut Losses,
) -> Vec<BlockOut<'a>> {
    let mut content = Vec::with_capacity(assistant.content.len());
    for (at, block) in assistant.content.iter().enumerate() {
        match block {
            // The API rejects empty text.
            Block::Text(text) | Block::Refusal(text) if text.text.is_empty() => {}
            Block::Text(text) => content.push(write_text(text, losses)),
            Block::Refusal(text) => {
                report_refusal(losses);
                content.push(write_text(text, losses));
            }
            Block::Reasoning(reasoning) => {
                // The host accepts only reasoning with its own seal (T26).
                if reasoning.seal.as_ref().is_some_and(|seal| seal.belongs_to(ID)) {
                    content.push(write_reasoning(reasoning, losses));
                } else {
                    losses.add("thinking", "the host accepts only reasoning that it has signed itself");
                }
            }
            Block::ToolCall(call) => {
                let name = names.to_host(call.name.as_str());
                content.push(write_call(call, ids.call(index, at), name, losses));
            }
            Block::Opaque(opaque) => content.extend(write_opaque(opaque, losses)),
        }
    }
    content
}

fn write_result<'a>(result: &'a ToolResult, id: &'a str, losses: &mut Losses) -> BlockOut<'a> {
    BlockOut::ToolResult {
        tool_use_id: id,
        content: write_parts(&result.content, losses),
        is_error: result.outcome == ToolOutcome::Error,
        extra: result.extras.write(ID, "tool_result", losses),
    }
}

fn write_parts<'a>(parts: &'a [Part], losses: &mut Losses) -> Vec<BlockOut<'a>> {
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Part::Text(text) if text.text.is_empty() => {}
            Part::Text(text) => blocks.push(write_text(text, losses)),
            Part::Image(image) => blocks.extend(write_image(image, losses)),
            Part::Document(document) => blocks.extend(write_document(document, losses)),
            Part::Audio(_) => losses.unknown_to(ID, "audio"),
            Part::Opaque(opaque) => blocks.extend(write_opaque(opaque, losses)),
        }
    }
    blocks
}
