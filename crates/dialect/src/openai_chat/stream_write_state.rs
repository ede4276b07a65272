//! What a stream's writer keeps in mind between events.

use toolgate_model::{CallKind, Extras};

use super::{ID, marks};

/// Whether the stream ends with this choice.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum StreamEnd {
    WithChoice,
    /// The caller ends it after several choices.
    ByCaller,
}

/// The open block.
#[derive(PartialEq)]
pub(super) enum OpenBlock {
    None,
    Text,
    Refusal,
    /// With its text so far.
    Reasoning(String),
    Call {
        kind: CallKind,
        has_input: bool,
    },
    /// The legacy form has room for one call only.
    SkippedCall,
}

/// What has been written so far, as far as it decides on a paragraph break.
#[derive(PartialEq)]
pub(super) enum WrittenContent {
    NoText,
    Text,
    TextThenCall,
}

/// The field that holds reasoning.
pub(super) enum ReasoningForm {
    ReasoningContent,
    Reasoning,
    ReasoningText,
    Both,
    ContentPart,
    /// In the list that is written when the block ends.
    Details,
}

impl ReasoningForm {
    /// The field it was read from in this dialect.
    pub(super) fn of(reasoning: &Extras) -> Self {
        if reasoning.is_marked(ID, marks::REASONING_PART) {
            Self::ContentPart
        } else if reasoning.is_marked(ID, marks::REASONING_BOTH) {
            Self::Both
        } else if reasoning.is_marked(ID, marks::REASONING) {
            Self::Reasoning
        } else if reasoning.is_marked(ID, marks::REASONING_TEXT) {
            Self::ReasoningText
        } else if reasoning.is_marked(ID, marks::REASONING_DETAILS) {
            Self::Details
        } else {
            Self::ReasoningContent
        }
    }
}
