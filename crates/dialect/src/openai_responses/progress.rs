//! How far an item has come: what of it has been told, so that its last event adds only the rest (T34).

use toolgate_model::{Extras, Fields, ReasoningKind};

/// An item that was announced.
pub(super) struct Progress {
    /// `output_index`.
    pub(super) index: u32,
    /// What the host called it first. Some hosts change ids on the way, so items go by their index.
    pub(super) id: Option<String>,
    /// How it is told.
    pub(super) told: Told,
    /// True once all of it is told.
    pub(super) complete: bool,
}

/// How an item is told.
pub(super) enum Told {
    /// Part by part.
    Message {
        /// The message's fields as first announced.
        fields: Fields,
        /// Its parts, by `content_index`.
        parts: Vec<PartProgress>,
    },
    /// Paragraph by paragraph.
    Reasoning(Vec<ParagraphProgress>),
    /// Its arguments as they come: how many bytes.
    Call(usize),
    /// At once, when complete.
    AtOnce,
}

/// A part of a message.
pub(super) struct PartProgress {
    /// `content_index`.
    pub(super) index: u32,
    /// How many bytes were told.
    pub(super) told: usize,
    /// Whether its block is still open.
    pub(super) state: PartState,
}

/// Whether a part's block is open.
pub(super) enum PartState {
    /// It is, with what is known for its end.
    Open(Extras),
    /// It is complete.
    Ended,
}

/// A paragraph of a thought.
pub(super) struct ParagraphProgress {
    /// Which list it stands in.
    pub(super) kind: ReasoningKind,
    /// Its place there.
    pub(super) index: u32,
    /// How many bytes were told.
    pub(super) told: usize,
}

/// What of a complete text has not been told yet.
pub(super) fn untold(text: &str, told: usize) -> &str {
    text.get(told..).unwrap_or_default()
}
