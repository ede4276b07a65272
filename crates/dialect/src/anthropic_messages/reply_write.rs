//! Writes a whole reply, and the message that starts a stream.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{
    Block, Fields, Losses, Reasoning, Reply, ReplyHead, ReplyId, Seal, StopReason, Text, Translated,
};

use super::ID;
use super::citations::{self, CITATIONS};
use super::content_write::{report_refusal, write_call, write_opaque, write_reasoning, write_text};
use super::usage::UsageOut;
use super::wire::BlockOut;
use crate::ReplyContext;

/// The prefix of every reply id.
const ID_PREFIX: &str = "msg_";

/// Writes a reply for a client.
pub(super) fn write(reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>> {
    let mut losses = Losses::default();
    let Reply { head, blocks, finish } = reply;
    let usage = match &finish.usage {
        Some(usage) => UsageOut::of(usage, &mut losses),
        None => UsageOut::uncounted(context.estimated_input, &mut losses),
    };
    let mut message = opening(head, context, usage, &mut losses);
    message.content = blocks.iter().filter_map(|block| write_block(block, head, &mut losses)).collect();
    message.stop_reason = Some(write_stop_reason(&finish.stop, &mut losses));
    message.stop_sequence = finish.stop_sequence.as_deref();
    message.extra.extend(finish.extras.write(ID, "reply", &mut losses));
    // Strings, numbers and objects with string keys always serialize.
    let value = serde_json::to_vec(&message).unwrap_or_default();
    Translated { value, losses }
}

#[derive(Serialize)]
pub(super) struct MessageOut<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<BlockOut<'a>>,
    stop_reason: Option<&'a str>,
    stop_sequence: Option<&'a str>,
    usage: UsageOut,
    #[serde(flatten)]
    extra: Fields,
}

/// The message without content and end.
pub(super) fn opening<'a>(
    head: &'a ReplyHead,
    context: &'a ReplyContext,
    usage: UsageOut,
    losses: &mut Losses,
) -> MessageOut<'a> {
    MessageOut {
        id: written_id(head, context),
        kind: "message",
        role: "assistant",
        model: written_model(head, context),
        content: Vec::new(),
        stop_reason: None,
        stop_sequence: None,
        usage,
        extra: head.extras.write(ID, "reply", losses),
    }
}

/// The reply's id: the host's if it is an id of this API, else a generated one. Hosts of other APIs may reuse an id,
/// and Claude Code treats messages with the same id as parts of one message.
fn written_id<'a>(head: &'a ReplyHead, context: &'a ReplyContext) -> Cow<'a, str> {
    let is_own = |id: &&str| head.extras.known_to(ID).is_some() || id.starts_with(ID_PREFIX);
    let kept = head.id.as_ref().map(ReplyId::as_str).filter(is_own);
    let id = kept.unwrap_or(&context.fallback_id);
    if id.starts_with(ID_PREFIX) { Cow::Borrowed(id) } else { Cow::Owned(format!("{ID_PREFIX}{id}")) }
}

/// The model's name: the client's, unless the host speaks this API. Claude Code returns thinking only if the name is the
/// one that it asked for.
fn written_model<'a>(head: &'a ReplyHead, context: &'a ReplyContext) -> &'a str {
    let own = head.model.as_ref().filter(|_| head.extras.owner().is_none_or(|origin| origin == ID));
    own.unwrap_or(&context.request.model).as_str()
}

fn write_block<'a>(block: &'a Block, head: &ReplyHead, losses: &mut Losses) -> Option<BlockOut<'a>> {
    Some(match block {
        Block::Text(text) => write_noted_text(text, losses),
        Block::Refusal(text) => {
            report_refusal(losses);
            write_text(text, losses)
        }
        Block::Reasoning(reasoning) => write_reply_reasoning(reasoning, head, losses),
        Block::ToolCall(call) => write_call(call, call.id.as_str(), call.name.as_str(), losses),
        Block::Opaque(opaque) => return write_opaque(opaque, losses),
    })
}

/// Writes a text with its citations.
fn write_noted_text<'a>(text: &'a Text, losses: &mut Losses) -> BlockOut<'a> {
    let Some(notes) = text.extras.notes_for(ID) else { return write_text(text, losses) };
    let (mut extra, _) = text.extras.write_noted(ID, "text", losses);
    let citations = citations::write(notes, &text.text, losses);
    if !citations.is_empty() {
        extra.insert(CITATIONS.to_owned(), Value::Array(citations));
    }
    BlockOut::Text { text: &text.text, extra }
}

fn write_reply_reasoning<'a>(
    reasoning: &'a Reasoning,
    head: &ReplyHead,
    losses: &mut Losses,
) -> BlockOut<'a> {
    match (write_reasoning(reasoning, losses), origin_seal(head)) {
        (BlockOut::Thinking { thinking, signature, extra }, Some(seal)) if signature.is_empty() => {
            BlockOut::Thinking { thinking, signature: Cow::Owned(seal.to_token()), extra }
        }
        (block, _) => block,
    }
}

/// The seal for reasoning that its host did not seal: the AI SDK returns only thinking with a signature.
pub(super) fn origin_seal(head: &ReplyHead) -> Option<Seal> {
    head.extras.owner().filter(|origin| *origin != ID).map(Seal::origin)
}

/// The `stop_reason`.
pub(super) fn write_stop_reason<'a>(stop: &'a StopReason, losses: &mut Losses) -> &'a str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::PauseTurn => "pause_turn",
        StopReason::Refusal => "refusal",
        StopReason::ContentFilter => {
            losses.add("stop_reason", "the Messages API reports a filtered answer as a refusal");
            "refusal"
        }
        StopReason::ContextWindow => "model_context_window_exceeded",
        StopReason::Other(reason) => reason,
    }
}
