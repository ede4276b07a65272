//! Matches results with calls. Clients send invalid ids: empty, too long, the same `call_0` in every turn or twice in one
//! message, two results for one call, results without a call. They are rejected or repaired (D2), and a call and its
//! result get the same valid id (T23).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::error::TurnError;
use crate::loss::Losses;
use crate::message::{Block, Message, Part, ToolResult, UserMessage};
use crate::request::TurnRequest;

/// The position of a call: message and block index.
type Position = (usize, usize);

/// Rejects what strict dialects reject: a result without a call, more results than calls with their id.
pub fn check(messages: &[Message]) -> Result<(), TurnError> {
    let mut calls = Calls::default();
    for (index, message) in messages.iter().enumerate() {
        calls.add(index, message);
        if let Message::ToolResults(results) = message {
            for result in &results.results {
                calls.answer(result).map_err(|fault| fault.into_error(result))?;
            }
        }
    }
    Ok(())
}

/// Repairs what lenient dialects accept: a result without a call becomes user text, a second result for a call is
/// dropped. Both are reported (T25).
pub fn repair(messages: &mut Vec<Message>, losses: &mut Losses) {
    let mut calls = Calls::default();
    let mut index = 0;
    while index < messages.len() {
        calls.add(index, &messages[index]);
        let mut orphans = Vec::new();
        if let Message::ToolResults(results) = &mut messages[index] {
            results.results.retain(|result| match calls.answer(result) {
                Ok(_) => true,
                Err(PairingFault::NoSuchCall) => {
                    losses.add(
                        "tool result",
                        format!("no call has the id `{}`: sent as user text", result.call),
                    );
                    orphans.push(orphan_text(result));
                    false
                }
                Err(PairingFault::SecondResult) => {
                    losses.add("tool result", format!("the call `{}` has a result already", result.call));
                    false
                }
            });
            if results.results.is_empty() {
                messages.remove(index);
            } else {
                index += 1;
            }
            let added = orphans.len();
            messages.splice(index..index, orphans);
            index += added;
        } else {
            index += 1;
        }
    }
}

/// The request with repaired messages (see [`repair`]), if needed: most hosts reject a result without a call.
pub fn repaired<'a>(request: &'a TurnRequest, losses: &mut Losses) -> Cow<'a, TurnRequest> {
    if check(&request.messages).is_ok() {
        return Cow::Borrowed(request);
    }
    let mut repaired = request.clone();
    repair(&mut repaired.messages, losses);
    Cow::Owned(repaired)
}

/// Turns any id into one that a host accepts; accepted ids stay as they are, different ids stay different.
pub type AcceptedId = fn(&str) -> String;

/// The ids of a conversation's calls and results at a host.
#[derive(Debug, Default)]
pub struct HostIds {
    calls: HashMap<Position, String>,
    results: HashMap<Position, String>,
    order: HashMap<usize, Vec<usize>>,
}

/// Gives every call and its result an id that the host accepts. Valid unique ids are kept, so that prompt caches hit.
pub fn host_ids(messages: &[Message], accepted: AcceptedId) -> HostIds {
    let mut ids = HostIds::default();
    let mut used = HashSet::new();
    let mut calls = Calls::default();
    for (index, message) in messages.iter().enumerate() {
        calls.add(index, message);
        match message {
            Message::Assistant(assistant) => {
                for (block, content) in assistant.content.iter().enumerate() {
                    if let Block::ToolCall(call) = content {
                        let id = unique(call.id.as_str(), &mut used, accepted);
                        ids.calls.insert((index, block), id);
                    }
                }
            }
            Message::ToolResults(results) => {
                let mut order: Vec<(Position, usize)> = Vec::new();
                for (at, result) in results.results.iter().enumerate() {
                    let position = calls.answer(result).unwrap_or((usize::MAX, at));
                    let id =
                        ids.calls.get(&position).cloned().unwrap_or_else(|| accepted(result.call.as_str()));
                    ids.results.insert((index, at), id);
                    order.push((position, at));
                }
                order.sort_unstable();
                ids.order.insert(index, order.into_iter().map(|(_, at)| at).collect());
            }
            Message::System(_) | Message::User(_) => {}
        }
    }
    ids
}

impl HostIds {
    /// The id of the call at this message and block.
    pub fn call(&self, message: usize, block: usize) -> &str {
        self.calls.get(&(message, block)).map_or("", String::as_str)
    }

    /// The id of the result at this message and index, which is its call's id.
    pub fn result(&self, message: usize, result: usize) -> &str {
        self.results.get(&(message, result)).map_or("", String::as_str)
    }

    /// A message's results in the order of their calls (T25).
    pub fn results_in_order(&self, message: usize) -> &[usize] {
        self.order.get(&message).map_or(&[], Vec::as_slice)
    }
}

/// Makes a name valid: shortens it, replaces characters and appends a hash, so that different names stay different.
/// Valid names are unchanged.
pub fn shortened(name: &str, max_len: usize, allowed: fn(char) -> bool) -> String {
    let valid = !name.is_empty() && name.chars().count() <= max_len && name.chars().all(allowed);
    if valid {
        return name.to_owned();
    }
    let suffix = format!("_{:08x}", fnv1a(name));
    let clean = |c: char| if allowed(c) { c } else { '_' };
    let kept: String = name.chars().map(clean).take(max_len.saturating_sub(suffix.len())).collect();
    kept + &suffix
}

/// The calls so far, by id: those of the last message that used the id. A message that uses it twice gets its results in
/// the order of its calls.
#[derive(Default)]
struct Calls(HashMap<String, CallsOfMessage>);

#[derive(Default)]
struct CallsOfMessage {
    message: usize,
    blocks: Vec<usize>,
    answered: usize,
}

enum PairingFault {
    NoSuchCall,
    SecondResult,
}

impl Calls {
    /// Adds a message's calls.
    fn add(&mut self, index: usize, message: &Message) {
        let Message::Assistant(assistant) = message else { return };
        for (block, content) in assistant.content.iter().enumerate() {
            let Block::ToolCall(call) = content else { continue };
            let same_id = self.0.entry(call.id.as_str().to_owned()).or_default();
            if same_id.message != index {
                *same_id = CallsOfMessage { message: index, ..CallsOfMessage::default() };
            }
            same_id.blocks.push(block);
        }
    }

    fn answer(&mut self, result: &ToolResult) -> Result<Position, PairingFault> {
        let same_id = self.0.get_mut(result.call.as_str()).ok_or(PairingFault::NoSuchCall)?;
        let block = *same_id.blocks.get(same_id.answered).ok_or(PairingFault::SecondResult)?;
        same_id.answered += 1;
        Ok((same_id.message, block))
    }
}

impl PairingFault {
    fn into_error(self, result: &ToolResult) -> TurnError {
        let id = &result.call;
        TurnError::invalid(match self {
            Self::NoSuchCall => format!(
                "the tool_result for `{id}` answers no tool_use of an earlier assistant message: send the assistant \
                 message with that call before it"
            ),
            Self::SecondResult => format!("the tool_use `{id}` has two tool_results: send one"),
        })
    }
}

fn orphan_text(result: &ToolResult) -> Message {
    let mut content = vec![Part::text(format!("Result of the tool call {}:", result.call))];
    content.extend(result.content.iter().cloned());
    Message::User(UserMessage { content, extras: crate::Extras::NONE })
}

/// Appends a number to an id that is already used.
fn unique(id: &str, used: &mut HashSet<String>, accepted: AcceptedId) -> String {
    let id = if id.is_empty() { "call" } else { id };
    let mut candidate = accepted(id);
    let mut occurrence = 2;
    while !used.insert(candidate.clone()) {
        candidate = accepted(&format!("{id}_{occurrence}"));
        occurrence += 1;
    }
    candidate
}

/// A small stable hash: names must be the same on every machine and in every version.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
