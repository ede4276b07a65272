//! Blocks between the wire and the model, for requests and replies alike.

use std::borrow::Cow;

use toolgate_model::{
    Block, CallKind, Losses, Opaque, Part, Reasoning, ReasoningKind, ReasoningPart, Seal, Text, ToolCall,
};

use super::ID;
use super::arguments::input_object;
use super::media;
use super::wire::{BlockIn, BlockOut, TextIn, ThinkingBlockIn, ToolUseIn, extras};

/// What our seals prove: a thought that can be read, or one that cannot.
pub(super) const SIGNATURE: &str = "signature";
pub(super) const REDACTED: &str = "redacted";

/// Reads what the model said. `Err` names a block that only a user may send.
pub(super) fn read_said(block: BlockIn) -> Result<Block, &'static str> {
    Ok(match block {
        BlockIn::Text(TextIn { text, extra }) => {
            Block::Text(Text { text, extras: extras(without_empty(extra)) })
        }
        BlockIn::ToolUse(ToolUseIn { id, name, input, extra }) => Block::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            kind: CallKind::Function,
            arguments: input.map_or_else(|| "{}".to_owned(), |input| input.as_str().to_owned()),
            extras: extras(extra),
        }),
        BlockIn::Thinking(ThinkingBlockIn { thinking, signature, extra }) => Block::Reasoning(Reasoning {
            parts: paragraphs(thinking),
            seal: signature.and_then(signature_seal),
            extras: extras(extra),
        }),
        BlockIn::RedactedThinking(redacted) => Block::Reasoning(Reasoning {
            parts: Vec::new(),
            seal: Some(Seal::new(ID, REDACTED, redacted.data)),
            extras: extras(redacted.extra),
        }),
        BlockIn::ToolResult(_) => return Err("tool_result"),
        BlockIn::Image(fields) => Block::Opaque(whole("image", fields)),
        BlockIn::Document(fields) => Block::Opaque(whole("document", fields)),
        BlockIn::Other(opaque) => Block::Opaque(opaque),
    })
}

/// Reads what is given to the model. `Err` names a block that only an assistant may send, or a result.
pub(super) fn read_given(block: BlockIn) -> Result<Part, &'static str> {
    Ok(match block {
        BlockIn::Text(TextIn { text, extra }) => {
            Part::Text(Text { text, extras: extras(without_empty(extra)) })
        }
        BlockIn::Image(fields) => media::read_image(fields),
        BlockIn::Document(fields) => media::read_document(fields),
        BlockIn::Other(opaque) => Part::Opaque(opaque),
        BlockIn::ToolUse(_) => return Err("tool_use"),
        BlockIn::ToolResult(_) => return Err("tool_result"),
        BlockIn::Thinking(_) => return Err("thinking"),
        BlockIn::RedactedThinking(_) => return Err("redacted_thinking"),
    })
}

/// The proof in a thinking block: our own, or a foreign one that travels in its place.
pub(super) fn signature_seal(signature: String) -> Option<Seal> {
    if signature.is_empty() {
        return None;
    }
    Some(Seal::from_token(&signature).unwrap_or_else(|| Seal::new(ID, SIGNATURE, signature)))
}

/// What stands in `signature` for a proof.
pub(super) fn signature_text(seal: &Seal) -> Cow<'_, str> {
    if seal.belongs_to(ID) { Cow::Borrowed(&seal.data) } else { Cow::Owned(seal.to_token()) }
}

/// The data of a thought that only its maker can read.
pub(super) fn redacted_data(seal: Option<&Seal>) -> Option<&str> {
    seal.filter(|seal| seal.belongs_to(ID) && seal.kind == REDACTED).map(|seal| seal.data.as_str())
}

/// Writes a text block.
pub(super) fn write_text<'a>(text: &'a Text, losses: &mut Losses) -> BlockOut<'a> {
    BlockOut::Text { text: &text.text, extra: text.extras.write(ID, "text", losses) }
}

/// Writes reasoning with whatever proof it has.
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

/// Writes a call under the id and name the other side knows.
pub(super) fn write_call<'a>(
    call: &'a ToolCall,
    id: &'a str,
    name: &'a str,
    losses: &mut Losses,
) -> BlockOut<'a> {
    let extra = call.extras.write(ID, "tool_use", losses);
    BlockOut::ToolUse { id, name, input: input_object(call.kind, &call.arguments, losses), extra }
}

/// Writes a block of one dialect, if it is ours.
pub(super) fn write_opaque<'a>(opaque: &Opaque, losses: &mut Losses) -> Option<BlockOut<'a>> {
    opaque.write(ID, "content", losses).map(|fields| BlockOut::Opaque(fields.clone()))
}

/// Notes that a refusal becomes plain text: this dialect tells it by the stop reason alone.
pub(super) fn report_refusal(losses: &mut Losses) {
    losses.add("refusal", "written as text: the Messages API has no refusal block");
}

fn paragraphs(thinking: String) -> Vec<ReasoningPart> {
    if thinking.is_empty() {
        return Vec::new();
    }
    vec![ReasoningPart { kind: ReasoningKind::Full, text: thinking }]
}

fn without_empty(mut fields: toolgate_model::Fields) -> toolgate_model::Fields {
    fields.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
    fields
}

fn whole(kind: &str, rest: toolgate_model::Fields) -> Opaque {
    let mut fields = toolgate_model::Fields::new();
    fields.insert("type".to_owned(), kind.into());
    fields.extend(rest);
    Opaque { dialect: ID, kind: kind.to_owned(), fields }
}
