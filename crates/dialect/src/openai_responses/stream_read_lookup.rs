//! Finds the item that an event belongs to. By the specification, events name it by `output_index` and `item_id`. Some
//! hosts omit the index, number items differently in later events, or change the ids with every event.

use super::stream_read_progress::{ItemProgress, ItemState, id_of};
use super::wire::{Content, ContentPart, Item};

/// How an event names its item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemRef<'a> {
    /// `output_index`.
    pub(super) index: Option<u32>,
    /// `item_id`.
    pub(super) id: Option<&'a str>,
}

/// The items of one stream, in the order in which they started. Elsewhere an item is identified by its position here.
#[derive(Default)]
pub(super) struct Items(Vec<ItemProgress>);

impl Items {
    pub(super) fn push(&mut self, item: ItemProgress) -> u32 {
        self.0.push(item);
        position(self.0.len() - 1)
    }

    pub(super) fn get(&mut self, at: u32) -> Option<&mut ItemProgress> {
        self.0.get_mut(at as usize)
    }

    /// The positions of items that the host has not completed.
    pub(super) fn open(&self) -> Vec<u32> {
        let open = self.0.iter().enumerate().filter(|(_, item)| !item.complete);
        open.map(|(at, _)| position(at)).collect()
    }

    /// The item of a delta: its id decides, then its index, and without either the latest item is meant.
    pub(super) fn of_event(&self, event: ItemRef<'_>) -> Option<u32> {
        let latest = || self.0.len().checked_sub(1).filter(|_| event.index.is_none()).map(position);
        self.by_id(event.id).or_else(|| self.by_index(event.index)).or_else(latest)
    }

    /// The item that an `output_item.added` announces again.
    pub(super) fn announced(&self, index: Option<u32>, item: &Item) -> Option<u32> {
        let is_running = |at: &u32| self.0.get(*at as usize).is_some_and(|known| !known.complete);
        self.by_id(id_of(item)).or_else(|| self.by_index(index).filter(is_running))
    }

    /// The item that an `output_item.done` completes. If neither id nor index is known, and one side has no id, the
    /// latest open item of its kind is meant.
    pub(super) fn finished(&self, index: Option<u32>, item: &Item) -> Option<u32> {
        let same_kind = |at: &u32| self.0.get(*at as usize).is_some_and(|known| is_of_kind(known, item));
        let is_unnamed =
            |known: &ItemProgress| known.id.is_none() || id_of(item).is_none() || index.is_none();
        let open = || {
            self.0.iter().rposition(|known| !known.complete && is_of_kind(known, item) && is_unnamed(known))
        };
        let by_index = self.by_index(index).filter(same_kind);
        self.by_id(id_of(item)).or(by_index).or_else(|| open().map(position))
    }

    /// The item that the response's `output` repeats at an index.
    pub(super) fn repeated(&self, index: u32, item: &Item) -> Option<u32> {
        let same =
            || self.0.iter().position(|known| is_of_kind(known, item) && has_streamed_all(known, item));
        self.finished(Some(index), item).or_else(|| same().map(position))
    }

    fn by_id(&self, id: Option<&str>) -> Option<u32> {
        let id = id.filter(|id| !id.is_empty())?;
        self.0.iter().rposition(|item| item.id.as_deref() == Some(id)).map(position)
    }

    fn by_index(&self, index: Option<u32>) -> Option<u32> {
        let index = index?;
        self.0.iter().rposition(|item| item.index == Some(index)).map(position)
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_of_kind(known: &ItemProgress, item: &Item) -> bool {
    matches!(
        (&known.state, item),
        (ItemState::Message { .. }, Item::Message(_))
            | (ItemState::Reasoning(_), Item::Reasoning(_))
            | (ItemState::Call(_), Item::FunctionCall(_) | Item::CustomCall(_) | Item::ToolSearchCall(_))
            | (
                ItemState::Unstreamed,
                Item::Other(..) | Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::ToolSearchOutput(_)
            )
    )
}

/// True if everything that the item contains has been emitted.
fn has_streamed_all(known: &ItemProgress, item: &Item) -> bool {
    match (&known.state, item) {
        (ItemState::Message { parts, .. }, Item::Message(message)) => {
            let texts = texts(&message.content);
            parts.len() == texts.len()
                && parts.iter().zip(texts).all(|(part, text)| part.streamed.is_all_of(text))
        }
        (ItemState::Call(streamed), Item::FunctionCall(call)) => streamed.is_all_of(&call.arguments.0),
        (ItemState::Call(streamed), Item::CustomCall(call)) => streamed.is_all_of(&call.input),
        (ItemState::Call(streamed), Item::ToolSearchCall(call)) => streamed.is_all_of(&call.arguments),
        // Hosts may leave the text out of the repeated item.
        (ItemState::Reasoning(_), Item::Reasoning(_)) => true,
        _ => false,
    }
}

fn texts(content: &Content) -> Vec<&str> {
    match content {
        Content::Text(text) => vec![text],
        Content::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                ContentPart::Text(part) => part.text.as_str(),
                ContentPart::Refusal(part) => part.refusal.as_str(),
                ContentPart::Image(_)
                | ContentPart::File(_)
                | ContentPart::Audio(_)
                | ContentPart::Other(..) => "",
            })
            .collect(),
    }
}
