//! How far an item has come: what of it has been told, so that its last event adds only the rest (T34).

use serde_json::Value;
use toolgate_model::{Extras, Fields, ReasoningKind};

use super::ID;
use super::wire::{Arguments, Content, CustomCallItem, FunctionCallItem, Item, MessageItem, ReasoningItem};

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
    /// Its arguments as they come.
    Call(Sent),
    /// At once, when complete.
    AtOnce,
}

impl Told {
    /// What of a thought's paragraph has not been told yet; `None` where it was not even begun.
    pub(super) fn rest_of_paragraph<'a>(
        &self,
        kind: ReasoningKind,
        index: u32,
        text: &'a str,
    ) -> Option<&'a str> {
        let Self::Reasoning(paragraphs) = self else { return Some("") };
        let found = paragraphs.iter().position(|known| known.kind == kind && known.index == index)?;
        // Only the last paragraph can still grow.
        Some(if found + 1 == paragraphs.len() { paragraphs[found].told.rest(text) } else { "" })
    }
}

/// A part of a message.
pub(super) struct PartProgress {
    /// `content_index`.
    pub(super) index: u32,
    /// What of it was told.
    pub(super) told: Sent,
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
    /// What of it was told.
    pub(super) told: Sent,
}

/// How much of a text was told. Hosts may end a text with another one than they streamed; a hash shows it without
/// keeping the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    bytes: usize,
    hash: u64,
}

impl Default for Sent {
    fn default() -> Self {
        Self { bytes: 0, hash: FNV_START }
    }
}

impl Sent {
    /// More was told.
    pub(super) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash = fnv1a(self.hash, text);
    }

    /// What of the complete text has not been told yet; nothing, if another text was told.
    pub(super) fn rest<'a>(&self, text: &'a str) -> &'a str {
        match text.split_at_checked(self.bytes) {
            Some((told, rest)) if fnv1a(FNV_START, told) == self.hash => rest,
            Some(_) | None => "",
        }
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What is known of an item that never ended: its id.
pub(super) fn id_extras(id: Option<&str>) -> Extras {
    let mut fields = Fields::new();
    fields.extend(id.map(|id| ("id".to_owned(), Value::from(id))));
    Extras::marked(ID, fields).wrapped_by(&super::items::WRAPPING)
}

/// What the host calls the item.
pub(super) fn id_of(item: &Item) -> Option<&str> {
    let fields = match item {
        Item::Message(item) => &item.extra,
        Item::FunctionCall(item) => &item.extra,
        Item::CustomCall(item) => &item.extra,
        Item::FunctionOutput(item) | Item::CustomOutput(item) => &item.extra,
        Item::Reasoning(item) => return item.id.as_deref(),
        Item::Other(_, fields) => fields,
    };
    fields.get("id")?.as_str()
}

/// The item as it would have been announced.
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
        Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::Other(..) => {
            Item::Other(String::new(), Fields::new())
        }
    }
}
