//! How much of each item has been emitted, so that its last event adds only the rest (T34).

use serde_json::Value;
use toolgate_model::{Extras, Fields, ReasoningKind};

use super::ID;
use super::content_read::ENVELOPE_FIELDS;
use super::wire::{
    Arguments, Content, CustomCallItem, FunctionCallItem, Item, MessageItem, ReasoningItem,
    ToolSearchCallItem,
};

/// An item of the stream.
pub(super) struct ItemProgress {
    /// `output_index`, if the host sends one.
    pub(super) index: Option<u32>,
    /// The id it was announced with.
    pub(super) id: Option<String>,
    pub(super) state: ItemState,
    /// True once all of its blocks have ended.
    pub(super) complete: bool,
}

/// What has been emitted of an item.
pub(super) enum ItemState {
    Message {
        /// The message's fields as announced.
        fields: Fields,
        parts: Vec<PartProgress>,
    },
    Reasoning(Vec<ParagraphProgress>),
    /// The arguments so far.
    Call(StreamedText),
    /// Nothing: the item is emitted in one piece when it is done.
    Unstreamed,
}

impl ItemState {
    /// True if text of a reasoning item has been emitted.
    pub(super) fn has_paragraphs(&self) -> bool {
        matches!(self, Self::Reasoning(paragraphs) if !paragraphs.is_empty())
    }

    /// The part of a reasoning paragraph that has not been emitted; `None` if the paragraph has not been opened.
    pub(super) fn rest_of_paragraph<'a>(
        &self,
        kind: ReasoningKind,
        index: u32,
        text: &'a str,
    ) -> Option<&'a str> {
        let Self::Reasoning(paragraphs) = self else { return Some("") };
        let found = paragraphs.iter().position(|known| known.kind == kind && known.index == index)?;
        // Only the last paragraph can still grow.
        let is_last = found + 1 == paragraphs.len();
        Some(if is_last { paragraphs[found].streamed.rest_of(text) } else { "" })
    }
}

/// A part of a message.
pub(super) struct PartProgress {
    /// `content_index`.
    pub(super) index: u32,
    pub(super) streamed: StreamedText,
    pub(super) state: PartState,
}

impl PartProgress {
    /// Marks the part as ended. Returns the extras for the end of its block, or `None` if it had ended before.
    pub(super) fn end(&mut self) -> Option<Extras> {
        match std::mem::replace(&mut self.state, PartState::Ended) {
            PartState::Open(extras) => Some(extras),
            PartState::Ended => None,
        }
    }
}

/// Whether a part's block is open.
pub(super) enum PartState {
    /// Open, with the extras known so far.
    Open(Extras),
    Ended,
}

/// A paragraph of a reasoning item.
pub(super) struct ParagraphProgress {
    pub(super) kind: ReasoningKind,
    /// `summary_index` or `content_index`.
    pub(super) index: u32,
    pub(super) streamed: StreamedText,
}

/// The length and hash of the text emitted so far. A host's final text may differ from what it streamed; the hash
/// detects that without keeping the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamedText {
    bytes: usize,
    hash: u64,
}

impl Default for StreamedText {
    fn default() -> Self {
        Self { bytes: 0, hash: FNV_START }
    }
}

impl StreamedText {
    /// Records emitted text.
    pub(super) fn push(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash = fnv1a(self.hash, text);
    }

    /// True if exactly this text was emitted.
    pub(super) fn is_all_of(&self, text: &str) -> bool {
        self.bytes == text.len() && fnv1a(FNV_START, text) == self.hash
    }

    /// What is left to emit of the complete text; empty if a different text was streamed.
    pub(super) fn rest_of<'a>(&self, complete: &'a str) -> &'a str {
        match complete.split_at_checked(self.bytes) {
            Some((streamed, rest)) if fnv1a(FNV_START, streamed) == self.hash => rest,
            Some(_) | None => "",
        }
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The extras of an item that never completed: its id.
pub(super) fn id_extras(id: Option<&str>) -> Extras {
    let mut fields = Fields::new();
    fields.extend(id.map(|id| ("id".to_owned(), Value::from(id))));
    Extras::marked(ID, fields).envelope_fields(&ENVELOPE_FIELDS)
}

/// The host's id for the item.
pub(super) fn id_of(item: &Item) -> Option<&str> {
    let fields = match item {
        Item::Message(item) => &item.extra,
        Item::FunctionCall(item) => &item.extra,
        Item::CustomCall(item) => &item.extra,
        Item::FunctionOutput(item) | Item::CustomOutput(item) => &item.extra,
        Item::ToolSearchCall(item) => &item.extra,
        Item::ToolSearchOutput(item) => &item.extra,
        Item::Reasoning(item) => return item.id.as_deref(),
        Item::Other(_, fields) => fields,
    };
    fields.get("id")?.as_str()
}

/// The item as its `output_item.added` would have shown it.
pub(super) fn announcement(item: &Item) -> Item {
    match item {
        Item::Message(item) => Item::Message(MessageItem {
            role: item.role.clone(),
            content: Content::default(),
            extra: item.extra.clone(),
        }),
        Item::FunctionCall(item) => Item::FunctionCall(FunctionCallItem {
            call_id: item.call_id.clone(),
            name: item.name.clone(),
            arguments: Arguments::default(),
            extra: item.extra.clone(),
        }),
        Item::CustomCall(item) => Item::CustomCall(CustomCallItem {
            call_id: item.call_id.clone(),
            name: item.name.clone(),
            input: String::new(),
            extra: item.extra.clone(),
        }),
        Item::Reasoning(item) => Item::Reasoning(ReasoningItem {
            id: item.id.clone(),
            summary: None,
            content: None,
            encrypted_content: None,
            extra: Fields::new(),
        }),
        Item::ToolSearchCall(item) => Item::ToolSearchCall(ToolSearchCallItem {
            call_id: item.call_id.clone(),
            arguments: String::new(),
            extra: item.extra.clone(),
        }),
        Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::ToolSearchOutput(_) | Item::Other(..) => {
            Item::Other(String::new(), Fields::new())
        }
    }
}
