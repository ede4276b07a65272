//! Requests and replies of every shape the model can hold, small enough to shrink well.

mod content;
mod settings;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use toolgate_model::{
    AssistantMessage, Block, CallKind, Extras, Finish, Message, Part, Reply, ReplyHead, StopReason,
    SystemMessage, SystemRole, ToolOutcome, ToolResult, ToolResults, TurnRequest, Usage, UserMessage,
};

/// Any complete reply, with its blocks in any order.
pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    (vec(content::block(), 0..6), usage(), any::<bool>()).prop_map(|(blocks, usage, is_cut)| {
        let blocks = with_ids(blocks, 0);
        Reply {
            head: ReplyHead {
                id: Some("id_1".into()),
                model: Some("host-model".into()),
                ..ReplyHead::default()
            },
            finish: Finish { stop: stop(&blocks, is_cut), usage: Some(usage), ..Finish::default() },
            blocks,
        }
    })
}

fn stop(blocks: &[Block], is_cut: bool) -> StopReason {
    if is_cut {
        StopReason::MaxTokens
    } else if blocks.iter().any(|block| matches!(block, Block::ToolCall(_))) {
        StopReason::ToolUse
    } else if blocks.iter().any(|block| matches!(block, Block::Refusal(_))) {
        StopReason::Refusal
    } else {
        StopReason::EndTurn
    }
}

fn usage() -> impl Strategy<Value = Usage> {
    (0..10_000_u64, 0..500_u64, option::of(0..100_u64)).prop_map(|(input, output, reasoning)| Usage {
        input,
        cache_read: input / 2,
        cache_write: input / 3,
        output,
        reasoning,
        ..Usage::default()
    })
}

/// Any request whose results answer its calls.
pub(crate) fn request() -> impl Strategy<Value = TurnRequest> {
    let round =
        (content::parts(), vec(content::block(), 0..4), vec((content::result_parts(), any::<bool>()), 4));
    (option::of("[a-z ]{1,20}"), vec(round, 1..3), content::parts(), settings::settings()).prop_map(
        |(system, rounds, last, settings)| {
            let mut messages = Vec::new();
            for (at, round) in rounds.into_iter().enumerate() {
                messages.extend(one_round(at, round));
            }
            messages.push(user(last));
            let mut request = TurnRequest::new("some-model", messages);
            request.system = system.into_iter().map(Part::text).collect();
            settings.apply(&mut request);
            request
        },
    )
}

/// Question, answer, and results with whether the tool failed.
type Round = (Vec<Part>, Vec<Block>, Vec<(Vec<Part>, bool)>);

fn one_round(round: usize, (question, mut content, results): Round) -> Vec<Message> {
    if content.is_empty() {
        content.push(Block::Text(toolgate_model::Text::new("so")));
    }
    let content = with_ids(content, round * 10);
    let calls = content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some((call.id.clone(), call.kind)),
        Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
    });
    let results: Vec<ToolResult> = calls
        .zip(results)
        .map(|((call, kind), (content, failed))| ToolResult {
            call,
            kind,
            content,
            outcome: if failed && kind == CallKind::Function {
                ToolOutcome::Error
            } else {
                ToolOutcome::Success
            },
            extras: Extras::NONE,
        })
        .collect();
    let mut messages =
        vec![user(question), Message::Assistant(AssistantMessage { content, extras: Extras::NONE })];
    if !results.is_empty() {
        messages.push(Message::ToolResults(ToolResults { results }));
    }
    if round == 1 {
        let content = vec![Part::text("be brief")];
        messages.push(Message::System(SystemMessage {
            role: SystemRole::System,
            content,
            extras: Extras::NONE,
        }));
    }
    messages
}

fn user(content: Vec<Part>) -> Message {
    Message::User(UserMessage { content, extras: Extras::NONE })
}

/// Gives every call its own id.
fn with_ids(mut blocks: Vec<Block>, first: usize) -> Vec<Block> {
    let mut next = first;
    for block in &mut blocks {
        if let Block::ToolCall(call) = block {
            call.id = format!("call_{next}").into();
            next += 1;
        }
    }
    blocks
}
