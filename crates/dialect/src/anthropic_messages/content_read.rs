//! Reads content blocks, in requests and replies.

use toolgate_model::{
    Block, CallKind, Fields, JsonText, Opaque, Part, Reasoning, ReasoningKind, ReasoningPart, Seal, Text,
    ToolCall,
};

use super::ID;
use super::citations;
use super::content_read_as_text as as_text;
use super::content_read_media as media;
use super::wire::{BlockIn, TextIn, ThinkingBlockIn, ToolUseIn, extras};

/// The kinds of this dialect's seals: the signature of readable reasoning, and encrypted reasoning.
pub(super) const SIGNATURE: &str = "signature";

pub(super) const REDACTED: &str = "redacted";

/// Reads a block of an assistant message. `Err` is the type of a block that only users may send.
pub(super) fn read_output_block(block: BlockIn) -> Result<Block, &'static str> {
    Ok(match block {
        BlockIn::Text(TextIn { text, extra }) => {
            Block::Text(Text { text, extras: citations::with_notes(extras(without_empty(extra))) })
        }
        BlockIn::ToolUse(ToolUseIn { id, name, input, extra }) => Block::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            kind: CallKind::Function,
            arguments: input.as_ref().map_or_else(|| "{}".to_owned(), arguments_text),
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

/// Reads a block of a user or system message. `Err` is the type of a block that is not allowed there.
pub(super) fn read_input_block(block: BlockIn) -> Result<Part, &'static str> {
    Ok(match block {
        BlockIn::Text(TextIn { text, extra }) => {
            Part::Text(Text { text, extras: extras(without_empty(extra)) })
        }
        BlockIn::Image(fields) => media::read_image(fields),
        BlockIn::Document(fields) => media::read_document(fields),
        BlockIn::Other(Opaque { kind, fields, dialect }) if kind == "search_result" => {
            as_text::read_search_result(fields)
                .unwrap_or_else(|fields| Part::Opaque(Opaque { dialect, kind, fields }))
        }
        BlockIn::Other(Opaque { kind, fields, dialect }) if kind == "tool_reference" => {
            as_text::read_tool_reference(fields)
                .unwrap_or_else(|fields| Part::Opaque(Opaque { dialect, kind, fields }))
        }
        BlockIn::Other(opaque) => Part::Opaque(opaque),
        BlockIn::ToolUse(_) => return Err("tool_use"),
        BlockIn::ToolResult(_) => return Err("tool_result"),
        BlockIn::Thinking(_) => return Err("thinking"),
        BlockIn::RedactedThinking(_) => return Err("redacted_thinking"),
    })
}

/// The input as text. Some clients send it as a string with JSON in it (T34).
fn arguments_text(input: &JsonText) -> String {
    serde_json::from_str::<String>(input.as_str()).unwrap_or_else(|_| input.as_str().to_owned())
}

/// The seal of a thinking block: this dialect's signature, or a foreign seal's token in its place.
pub(super) fn signature_seal(signature: String) -> Option<Seal> {
    if signature.is_empty() {
        return None;
    }
    Some(Seal::from_token(&signature).unwrap_or_else(|| Seal::new(ID, SIGNATURE, signature)))
}

fn paragraphs(thinking: String) -> Vec<ReasoningPart> {
    if thinking.is_empty() {
        return Vec::new();
    }
    vec![ReasoningPart { kind: ReasoningKind::Full, text: thinking }]
}

fn without_empty(mut fields: Fields) -> Fields {
    fields.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
    fields
}

fn whole(kind: &str, rest: Fields) -> Opaque {
    let mut fields = Fields::new();
    fields.insert("type".to_owned(), kind.into());
    fields.extend(rest);
    Opaque { dialect: ID, kind: kind.to_owned(), fields }
}
