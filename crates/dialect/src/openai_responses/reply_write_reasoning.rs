//! Gives reasoning of other dialects the form that the client requested: as a summary, and sealed.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::{Block, DialectId, Reasoning, ReasoningKind, ReplyHead, Retention, Seal, TurnRequest};

use super::ID;
use super::request_write::INCLUDE_SEAL;

/// How one reply's reasoning is written. Reasoning of this dialect is not changed.
#[derive(Clone, Copy, Default)]
pub(super) struct ReasoningForm {
    /// Write the reasoning itself as a summary: clients that request a summary show nothing else.
    as_summary: bool,
    /// Seal unsealed reasoning of this dialect: clients that do not store replies return only sealed reasoning.
    sealed_from: Option<DialectId>,
}

impl ReasoningForm {
    /// The form that the request asks for.
    pub(super) fn new(head: &ReplyHead, request: &TurnRequest) -> Self {
        let origin = head.extras.owner();
        if origin == Some(ID) {
            return Self::default();
        }
        let has_summary = request.reasoning.as_ref().is_some_and(|asked| asked.summary.is_some());
        Self { as_summary: has_summary, sealed_from: origin.filter(|_| wants_seals(request)) }
    }

    /// The kind of a paragraph for the client.
    pub(super) fn kind(self, kind: ReasoningKind) -> ReasoningKind {
        if self.as_summary { ReasoningKind::Summary } else { kind }
    }

    /// The seal for the client.
    pub(super) fn seal(self, seal: Option<Seal>) -> Option<Seal> {
        seal.or_else(|| self.sealed_from.map(Seal::origin))
    }

    /// A whole reply's blocks for the client.
    pub(super) fn blocks(self, blocks: &[Block]) -> Cow<'_, [Block]> {
        if !self.as_summary && self.sealed_from.is_none() {
            return Cow::Borrowed(blocks);
        }
        blocks.iter().cloned().map(|block| self.block(block)).collect()
    }

    fn block(self, block: Block) -> Block {
        let Block::Reasoning(Reasoning { mut parts, seal, extras }) = block else { return block };
        for part in &mut parts {
            part.kind = self.kind(part.kind);
        }
        Block::Reasoning(Reasoning { parts, seal: self.seal(seal), extras })
    }
}

/// True if the client asks for seals, or stores nothing that a later request could refer to.
fn wants_seals(request: &TurnRequest) -> bool {
    let include = request.extras.field(ID, "include").and_then(Value::as_array);
    let is_included = include.is_some_and(|values| values.iter().any(|value| value == INCLUDE_SEAL));
    is_included || request.retention == Some(Retention::Discard)
}
