//! Partial tool results (B5): while some results of a turn are missing, the others are stored under their call ids, so
//! the client can send only the missing ones, or all of them again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::{Block, CallId, JsonText, Message, ToolResult, ToolResults, TurnError, TurnRequest};

use super::plan::{scope, write_messages};
use super::pool::ProcessPool;
use super::records::{AgentRecord, read_messages};
use crate::turn::Turn;

/// How many incomplete turns of one conversation are completed. A client that sends partial results has one or two.
const MAX_GAPS: usize = 16;

/// Adds stored results that the client left out. If some are still missing, stores the new ones and returns an error
/// that names the missing calls.
pub(super) async fn complete(pool: &ProcessPool, mut turn: Turn) -> Result<Turn, TurnError> {
    let mut from = 0;
    for _ in 0..MAX_GAPS {
        let Some(gap) = Gap::first(from, &turn.request.messages) else { break };
        from = gap.at + 1;
        let key = gap.key(pool, &turn);
        let earlier = load(pool, &turn, key).await;
        let more: Vec<ToolResult> =
            earlier.into_iter().filter(|result| gap.missing.contains(&result.call)).collect();
        let missing: Vec<&CallId> =
            gap.missing.iter().filter(|call| more.iter().all(|result| result.call != **call)).collect();
        if !missing.is_empty() && gap.is_open(&turn.request.messages) {
            let error = still_missing(&missing);
            save(pool, &turn, &gap, key, more).await?;
            return Err(error);
        }
        if more.is_empty() {
            // The conversation went on without these results; `script` adds an error result for the model.
            continue;
        }
        let mut request = TurnRequest::clone(&turn.request);
        gap.fill(&mut request.messages, more);
        turn = Turn { request: Arc::new(request), ..turn };
    }
    Ok(turn)
}

/// A turn with some results present and some missing.
#[derive(Debug, PartialEq)]
struct Gap {
    /// The index of the assistant message that made the calls.
    at: usize,
    /// The results present are in the messages before this index.
    end: usize,
    missing: Vec<CallId>,
}

impl Gap {
    fn first(from: usize, messages: &[Message]) -> Option<Self> {
        let mut starts = messages.iter().enumerate().skip(from);
        starts.find_map(|(at, message)| Self::after(at, message, messages))
    }

    fn after(at: usize, message: &Message, messages: &[Message]) -> Option<Self> {
        let Message::Assistant(assistant) = message else { return None };
        let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
        let rest = messages.get(at + 1..)?;
        let end = at + 1 + rest.iter().position(is_reply).unwrap_or(rest.len());
        let answered: Vec<&CallId> = results(&messages[at + 1..end]).map(|result| &result.call).collect();
        let calls = assistant.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(&call.id),
            Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
        });
        let missing: Vec<CallId> = calls.filter(|call| !answered.contains(call)).cloned().collect();
        (!answered.is_empty() && !missing.is_empty()).then_some(Self { at, end, missing })
    }

    /// True if the conversation still waits for the missing results: only results follow the calls.
    fn is_open(&self, messages: &[Message]) -> bool {
        self.end == messages.len()
            && messages[self.at + 1..].iter().all(|message| matches!(message, Message::ToolResults(_)))
    }

    /// The key under which the results of this turn are stored. It depends on the conversation up to the calls.
    fn key(&self, pool: &ProcessPool, turn: &Turn) -> PrefixHash {
        let after = Lineage::of(&scope(turn, pool.config()), &turn.request.messages).at(self.at + 1);
        Lineage::of(&format!("results after {after}"), &[]).whole()
    }

    fn fill(&self, messages: &mut Vec<Message>, more: Vec<ToolResult>) {
        match messages.get_mut(self.at + 1) {
            Some(Message::ToolResults(there)) => there.results.extend(more),
            _ => messages.insert(self.at + 1, Message::ToolResults(ToolResults { results: more })),
        }
    }
}

fn results(messages: &[Message]) -> impl Iterator<Item = &ToolResult> {
    let sets = messages.iter().filter_map(|message| match message {
        Message::ToolResults(set) => Some(&set.results),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    });
    sets.flatten()
}

/// The stored results of an incomplete turn.
#[derive(Default, Serialize, Deserialize)]
struct StoredResults {
    /// The ids of the calls that have results, as the client names them.
    calls: Vec<String>,
    /// The calls and their results as Messages API JSON, in the order of `calls`.
    #[serde(rename = "said")]
    messages: Vec<Value>,
}

async fn save(
    pool: &ProcessPool,
    turn: &Turn,
    gap: &Gap,
    key: PrefixHash,
    earlier: Vec<ToolResult>,
) -> Result<(), TurnError> {
    let messages = &turn.request.messages;
    let Some(Message::Assistant(assistant)) = messages.get(gap.at) else { return Ok(()) };
    let mut came: Vec<ToolResult> = results(&messages[gap.at + 1..gap.end]).cloned().chain(earlier).collect();
    let order = |result: &ToolResult| {
        assistant
            .content
            .iter()
            .position(|block| matches!(block, Block::ToolCall(call) if call.id == result.call))
    };
    came.sort_by_key(order);
    let calls = came.iter().map(|result| result.call.as_str().to_owned()).collect();
    let pair = vec![messages[gap.at].clone(), Message::ToolResults(ToolResults { results: came })];
    let stored = StoredResults { calls, messages: write_messages(turn.dialect, &turn.request, pair)? };
    let steps = serde_json::to_value(stored)
        .map_or_else(|_| JsonText::empty_object(), |stored| JsonText::from_value(&stored));
    pool.records().save(&turn.caller, AgentRecord::note(key, steps)).await;
    Ok(())
}

async fn load(pool: &ProcessPool, turn: &Turn, key: PrefixHash) -> Vec<ToolResult> {
    let found = pool.records().find_by_replies(&turn.caller, vec![key]).await;
    let Some(record) = found.into_iter().next() else { return Vec::new() };
    let stored: StoredResults = serde_json::from_str(record.steps.as_str()).unwrap_or_default();
    let messages = read_messages(&stored.messages).unwrap_or_default();
    let named = stored.calls.into_iter().zip(results(&messages));
    named.map(|(call, result)| ToolResult { call: CallId::new(call), ..result.clone() }).collect()
}

fn still_missing(calls: &[&CallId]) -> TurnError {
    let named: Vec<&str> = calls.iter().map(|call| call.as_str()).collect();
    TurnError::invalid_param(
        "messages",
        format!(
            "messages: results are missing for the calls {}: send them; the others are stored and may be left out or sent again",
            named.join(", ")
        ),
    )
}
