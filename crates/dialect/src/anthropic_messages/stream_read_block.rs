//! A block of a host's stream between its start and its stop.

use serde_json::Value;
use toolgate_model::sequencer::Sequencer;
use toolgate_model::{
    BlockEnd, BlockStart, CallKind, Delta, Extras, Fields, Opaque, Seal, TurnError, TurnEvent,
};

use super::ID;
use super::citations::{self, CITATIONS};
use super::content_read::{REDACTED, signature_seal};
use super::wire::{BlockIn, RedactedIn, TextIn, ThinkingBlockIn, ToolUseIn, extras};
use super::wire_stream::DeltaIn;

/// The state of an open block.
pub(super) enum OpenBlock {
    Text {
        citations: Vec<Value>,
        extra: Fields,
    },
    Thinking {
        signature: String,
        extra: Fields,
    },
    Redacted {
        data: String,
        extra: Fields,
    },
    Call {
        input: Input,
        extra: Fields,
    },
    /// Collected until its stop, because the model has no deltas for it.
    Opaque {
        opaque: Opaque,
        json: String,
    },
}

/// Where a call's input comes from.
pub(super) enum Input {
    /// The start, unless deltas follow: hosts send `{}` there as a placeholder (T10).
    AtStart(String),
    InDeltas,
}

/// A delta whose type does not fit its block.
pub(super) struct Misfit;

type Blocks = Sequencer<u64>;

impl OpenBlock {
    pub(super) fn start(
        index: u64,
        block: BlockIn,
        blocks: &mut Blocks,
        out: &mut Vec<TurnEvent>,
    ) -> Result<Self, TurnError> {
        Ok(match block {
            BlockIn::Text(TextIn { text, mut extra }) => {
                blocks.start(index, BlockStart::Text, out);
                blocks.delta(index, Delta::Text(text), out);
                let citations = match extra.shift_remove(CITATIONS) {
                    Some(Value::Array(citations)) => citations,
                    _ => Vec::new(),
                };
                Self::Text { citations, extra }
            }
            BlockIn::Thinking(ThinkingBlockIn { thinking, signature, extra }) => {
                blocks.start(index, BlockStart::Reasoning(Extras::NONE), out);
                blocks.delta(index, Delta::Text(thinking), out);
                Self::Thinking { signature: signature.unwrap_or_default(), extra }
            }
            BlockIn::RedactedThinking(RedactedIn { data, extra }) => {
                blocks.start(index, BlockStart::Reasoning(Extras::NONE), out);
                Self::Redacted { data, extra }
            }
            BlockIn::ToolUse(ToolUseIn { id, name, input, extra }) => {
                let kind = CallKind::Function;
                blocks.start(index, BlockStart::ToolCall { id: id.into(), name: name.into(), kind }, out);
                let input = input.map_or_else(|| "{}".to_owned(), |input| input.as_str().to_owned());
                Self::Call { input: Input::AtStart(input), extra }
            }
            BlockIn::Image(fields) => Self::opaque("image", fields),
            BlockIn::Document(fields) => Self::opaque("document", fields),
            BlockIn::Other(opaque) => Self::Opaque { opaque, json: String::new() },
            BlockIn::ToolResult(_) => {
                return Err(TurnError::upstream(
                    "the host's stream contains a tool_result, which only users may send",
                ));
            }
        })
    }

    fn opaque(kind: &str, mut fields: Fields) -> Self {
        fields.insert("type".to_owned(), Value::from(kind));
        Self::Opaque { opaque: Opaque { dialect: ID, kind: kind.to_owned(), fields }, json: String::new() }
    }

    /// Appends a delta. One that does not fit is dropped: it would make the block invalid for every client.
    pub(super) fn delta(
        &mut self,
        index: u64,
        delta: DeltaIn<'_>,
        blocks: &mut Blocks,
        out: &mut Vec<TurnEvent>,
    ) -> Result<(), Misfit> {
        match (self, delta) {
            (Self::Text { .. }, DeltaIn::Text(text)) | (Self::Thinking { .. }, DeltaIn::Thinking(text)) => {
                blocks.delta(index, Delta::Text(text.into_owned()), out);
            }
            (Self::Call { input, .. }, DeltaIn::Json(text)) => {
                if !text.is_empty() {
                    *input = Input::InDeltas;
                }
                blocks.delta(index, Delta::Arguments(text.into_owned()), out);
            }
            (Self::Text { citations, .. }, DeltaIn::Citation(citation)) => citations.push(citation),
            (Self::Thinking { signature, .. }, DeltaIn::Signature(proof)) => *signature = proof,
            (Self::Opaque { opaque, json }, delta) => append_to_opaque(&mut opaque.fields, json, delta),
            (
                Self::Text { extra, .. }
                | Self::Thinking { extra, .. }
                | Self::Redacted { extra, .. }
                | Self::Call { extra, .. },
                DeltaIn::Other(fields),
            ) => extra.extend(fields),
            (Self::Text { .. } | Self::Thinking { .. } | Self::Redacted { .. } | Self::Call { .. }, _) => {
                return Err(Misfit);
            }
        }
        Ok(())
    }

    /// Ends the block; `late` are fields of the stop frame.
    pub(super) fn stop(self, index: u64, late: Fields, blocks: &mut Blocks, out: &mut Vec<TurnEvent>) {
        let mut end = BlockEnd::default();
        let mut extra = match self {
            Self::Text { citations, mut extra } => {
                if !citations.is_empty() {
                    extra.insert(CITATIONS.to_owned(), Value::Array(citations));
                }
                extra.extend(late);
                end.extras = citations::with_notes(extras(extra));
                return blocks.finish(index, end, out);
            }
            Self::Thinking { signature, extra } => {
                end.seal = signature_seal(signature);
                extra
            }
            Self::Redacted { data, extra } => {
                end.seal = Some(Seal::new(ID, REDACTED, data));
                extra
            }
            Self::Call { input, extra } => {
                if let Input::AtStart(input) = input {
                    blocks.delta(index, Delta::Arguments(input), out); // T9
                }
                extra
            }
            Self::Opaque { mut opaque, json } => {
                if let Ok(input) = serde_json::from_str(&json) {
                    opaque.fields.insert("input".to_owned(), input);
                } else if !json.is_empty() {
                    opaque.fields.insert("input".to_owned(), Value::from(json));
                }
                opaque.fields.extend(late);
                blocks.start(index, BlockStart::Opaque(opaque), out);
                return blocks.finish(index, end, out);
            }
        };
        extra.extend(late);
        end.extras = extras(extra);
        blocks.finish(index, end, out);
    }
}

fn append_to_opaque(fields: &mut Fields, json: &mut String, delta: DeltaIn<'_>) {
    match delta {
        DeltaIn::Json(more) => json.push_str(&more),
        DeltaIn::Text(more) => append(fields, "text", &more),
        DeltaIn::Thinking(more) => append(fields, "thinking", &more),
        DeltaIn::Signature(proof) => {
            fields.insert("signature".to_owned(), Value::from(proof));
        }
        DeltaIn::Citation(citation) => match fields.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => {
                fields.insert("citations".to_owned(), Value::Array(vec![citation]));
            }
        },
        // Such as `compaction_delta`: its fields are those of the block. Strings are appended, other values replaced.
        DeltaIn::Other(more) => {
            for (name, value) in more {
                if let Value::String(text) = &value {
                    append(fields, &name, text);
                } else {
                    fields.insert(name, value);
                }
            }
        }
    }
}

fn append(fields: &mut Fields, name: &str, more: &str) {
    match fields.get_mut(name) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            fields.insert(name.to_owned(), Value::from(more));
        }
    }
}
