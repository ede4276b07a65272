//! Writes content blocks, in requests and replies.

use std::borrow::Cow;

use toolgate_model::{Losses, Opaque, Reasoning, Seal, Text, ToolCall};

use super::ID;
use super::content_read::REDACTED;
use super::content_read_as_text::WHOLE_BLOCK;
use super::content_write_input::input_object;
use super::wire::BlockOut;

/// Writes a text block, or the block that was read as this text.
pub(super) fn write_text<'a>(text: &'a Text, losses: &mut Losses) -> BlockOut<'a> {
    let extra = text.extras.write(ID, "text", losses);
    if text.extras.is_marked(ID, WHOLE_BLOCK) {
        return BlockOut::Opaque(extra);
    }
    BlockOut::Text { text: &text.text, extra }
}

/// Writes reasoning with its seal, if it has one.
pub(super) fn write_reasoning<'a>(reasoning: &'a Reasoning, losses: &mut Losses) -> BlockOut<'a> {
    let extra = reasoning.extras.write(ID, "thinking", losses);
    if let Some(data) = redacted_data(reasoning.seal.as_ref()) {
        return BlockOut::RedactedThinking { data, extra };
    }
    let thinking = match reasoning.parts.as_slice() {
        [part] => Cow::Borrowed(part.text.as_str()),
        _ => Cow::Owned(reasoning.text()),
    };
    let signature = reasoning.seal.as_ref().map_or(Cow::Borrowed(""), signature_text);
    BlockOut::Thinking { thinking, signature, extra }
}

/// Writes a call with the peer's id and tool name.
pub(super) fn write_call<'a>(
    call: &'a ToolCall,
    id: &'a str,
    name: &'a str,
    losses: &mut Losses,
) -> BlockOut<'a> {
    let extra = call.extras.write(ID, "tool_use", losses);
    BlockOut::ToolUse { id, name, input: input_object(call.kind, &call.arguments, losses), extra }
}

/// Writes an opaque block, if it belongs to this dialect.
pub(super) fn write_opaque<'a>(opaque: &Opaque, losses: &mut Losses) -> Option<BlockOut<'a>> {
    opaque.write(ID, "content", losses).map(|fields| BlockOut::Opaque(fields.clone()))
}

/// Reports that a refusal is written as text: this dialect marks refusals only by the stop reason.
pub(super) fn report_refusal(losses: &mut Losses) {
    losses.add("refusal", "written as text: the Messages API has no refusal block");
}

/// The `signature` for a seal.
pub(super) fn signature_text(seal: &Seal) -> Cow<'_, str> {
    if seal.belongs_to(ID) { Cow::Borrowed(&seal.data) } else { Cow::Owned(seal.to_token()) }
}

/// The data of redacted thinking, if the seal is one of this dialect's.
pub(super) fn redacted_data(seal: Option<&Seal>) -> Option<&str> {
    seal.filter(|seal| seal.belongs_to(ID) && seal.kind == REDACTED).map(|seal| seal.data.as_str())
}
