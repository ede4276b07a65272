//! Reads a stream's items into blocks. An item's deltas are emitted as they arrive; its `output_item.done` adds what was not streamed and the fields known only at the end.

use toolgate_model::sequencer::{BlockClosing, Sequencer};
use toolgate_model::{
    BlockEnd, BlockStart, CallKind, Delta, Extras, Fields, Losses, ReasoningKind, TurnError, TurnEvent,
};

use super::client_tools::TOOL_SEARCH;
use super::content_read;
use super::reply_read::SeenBlocks;
use super::stream_read_lookup::{ItemRef, Items};
use super::stream_read_progress::{
    ItemProgress, ItemState, ParagraphProgress, PartProgress, PartState, StreamedText, id_extras, id_of,
};
use super::wire::{Content, ContentPart, Item, MessageItem};
use super::wire_stream::{ArgumentsEvent, DeltaEvent, PartEvent};

/// Where events go.
pub(super) type Out<'a> = &'a mut Vec<TurnEvent>;

/// Identifies a block of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockKey {
    /// The item's position in [`Items`].
    pub(super) item: u32,
    /// `content_index` of a message's part, else zero.
    pub(super) part: u32,
}

impl BlockKey {
    pub(super) fn of_item(item: u32) -> Self {
        Self { item, part: 0 }
    }
}

/// A paragraph of a reasoning item.
#[derive(Clone, Copy)]
pub(super) struct ParagraphKey {
    pub(super) item: u32,
    pub(super) kind: ReasoningKind,
    /// `summary_index` or `content_index`.
    pub(super) index: u32,
}

/// The items of one stream.
pub(super) struct ItemReader {
    pub(super) items: Items,
    pub(super) sequencer: Sequencer<BlockKey>,
    /// The kinds of blocks that completed items held.
    pub(super) seen: SeenBlocks,
    pub(super) losses: Losses,
}

impl ItemReader {
    /// Before the first item.
    pub(super) fn new() -> Self {
        Self {
            items: Items::default(),
            // An item's end carries its id, annotations or seal.
            sequencer: Sequencer::new(BlockClosing::OnFinishOnly),
            seen: SeenBlocks::default(),
            losses: Losses::default(),
        }
    }

    /// Fails if the host keeps filling items behind one that it never ends.
    pub(super) fn check_queue(&self) -> Result<(), TurnError> {
        if self.sequencer.is_overflowing() {
            return Err(TurnError::upstream(
                "the host sent many items at once and never ended the first one: request a smaller reply",
            ));
        }
        Ok(())
    }

    /// The position of the item that an event names.
    pub(super) fn find(&self, event: ItemRef<'_>) -> Option<u32> {
        self.items.of_event(event)
    }

    pub(super) fn item(&mut self, at: u32) -> Option<&mut ItemProgress> {
        self.items.get(at)
    }

    /// `output_item.added`.
    pub(super) fn added(&mut self, index: Option<u32>, item: Item, out: Out<'_>) {
        if self.items.announced(index, &item).is_none() {
            self.start_item(index, item, out);
        }
    }

    pub(super) fn start_item(&mut self, index: Option<u32>, item: Item, out: Out<'_>) -> u32 {
        self.close_plaintext_reasoning(out);
        let id = id_of(&item).map(str::to_owned);
        let (state, start) = match item {
            Item::Message(message) => (ItemState::Message { fields: message.extra, parts: Vec::new() }, None),
            Item::Reasoning(_) => {
                (ItemState::Reasoning(Vec::new()), Some(BlockStart::Reasoning(Extras::NONE)))
            }
            Item::FunctionCall(item) => {
                let id = content_read::call_id(item.call_id, &item.extra).into();
                let name = content_read::called_name(item.name, &item.extra).into();
                let start = BlockStart::ToolCall { id, name, kind: CallKind::Function };
                (ItemState::Call(StreamedText::default()), Some(start))
            }
            Item::CustomCall(item) => {
                let id = content_read::call_id(item.call_id, &item.extra).into();
                let name = content_read::called_name(item.name, &item.extra).into();
                let start = BlockStart::ToolCall { id, name, kind: CallKind::Custom };
                (ItemState::Call(StreamedText::default()), Some(start))
            }
            Item::ToolSearchCall(item) => {
                let (id, name) = (item.call_id.into(), TOOL_SEARCH.into());
                let start = BlockStart::ToolCall { id, name, kind: CallKind::Function };
                (ItemState::Call(StreamedText::default()), Some(start))
            }
            Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::ToolSearchOutput(_) | Item::Other(..) => {
                (ItemState::Unstreamed, None)
            }
        };
        let at = self.items.push(ItemProgress { index, id, state, complete: false });
        if let Some(start) = start {
            self.sequencer.start(BlockKey::of_item(at), start, out);
        }
        at
    }

    /// Ends an open plaintext reasoning item when the next item starts. Hosts that stream plaintext reasoning may
    /// complete the item only after the answer, and the answer must not wait for it. A sealed item waits for its seal.
    fn close_plaintext_reasoning(&mut self, out: Out<'_>) {
        let Some(open) = self.sequencer.open_key() else { return };
        let Some(item) = self.item(open.item) else { return };
        let is_plaintext = matches!(&item.state, ItemState::Reasoning(paragraphs) if !paragraphs.is_empty()
            && paragraphs.iter().all(|paragraph| paragraph.kind == ReasoningKind::Full));
        if is_plaintext {
            item.complete = true;
            let extras = id_extras(item.id.as_deref());
            self.sequencer.finish(open, BlockEnd { seal: None, extras }, out);
        }
    }

    /// A delta of a text or refusal.
    pub(super) fn text_delta(&mut self, start: BlockStart, event: DeltaEvent<'_>, out: Out<'_>) {
        if event.delta.is_empty() {
            return;
        }
        let key = self.part_key(event.item(), event.content_index, out);
        if !self.append_to_part(key, &event.delta) {
            self.open_part(key, start, out);
            if !self.append_to_part(key, &event.delta) {
                return;
            }
        }
        self.sequencer.delta(key, Delta::Text(event.delta.into_owned()), out);
    }

    /// The key of a message's part. An event for an unknown item starts a message.
    fn part_key(&mut self, event: ItemRef<'_>, part: u32, out: Out<'_>) -> BlockKey {
        let item = self.find(event).unwrap_or_else(|| {
            let mut extra = Fields::new();
            extra.extend(event.id.map(|id| ("id".to_owned(), id.into())));
            let message = MessageItem { role: None, content: Content::default(), extra };
            self.start_item(event.index, Item::Message(message), out)
        });
        BlockKey { item, part }
    }

    /// Records a delta of an open part; false if the part is not open.
    fn append_to_part(&mut self, key: BlockKey, delta: &str) -> bool {
        let Some(ItemProgress { state: ItemState::Message { parts, .. }, .. }) = self.item(key.item) else {
            return false;
        };
        let is_open =
            |part: &&mut PartProgress| part.index == key.part && matches!(part.state, PartState::Open(_));
        let Some(part) = parts.last_mut().filter(is_open) else { return false };
        part.streamed.push(delta);
        true
    }

    /// `content_part.added`.
    pub(super) fn part_added(&mut self, event: &PartEvent, out: Out<'_>) {
        match &event.part {
            ContentPart::Text(_) => {
                let key = self.part_key(event.item(), event.content_index, out);
                self.open_part(key, BlockStart::Text, out);
            }
            ContentPart::Refusal(_) => {
                let key = self.part_key(event.item(), event.content_index, out);
                self.open_part(key, BlockStart::Refusal, out);
            }
            ContentPart::Other(kind, _) if kind == "reasoning_text" => {
                self.paragraph_delta(event.item(), (ReasoningKind::Full, event.content_index), "", out);
            }
            ContentPart::Image(_) | ContentPart::File(_) | ContentPart::Audio(_) | ContentPart::Other(..) => {
            }
        }
    }

    /// Opens a part of a message and ends the previous part.
    pub(super) fn open_part(&mut self, key: BlockKey, start: BlockStart, out: Out<'_>) {
        let Some(ItemProgress { state: ItemState::Message { parts, fields }, complete: false, .. }) =
            self.item(key.item)
        else {
            return;
        };
        if parts.iter().any(|part| part.index == key.part) {
            return;
        }
        let previous = parts.last_mut().and_then(|part| Some((part.index, part.end()?)));
        let extras = content_read::text_extras(Fields::new(), key.part as usize, fields);
        parts.push(PartProgress {
            index: key.part,
            streamed: StreamedText::default(),
            state: PartState::Open(extras),
        });
        if let Some((part, extras)) = previous {
            let previous = BlockKey { item: key.item, part };
            self.sequencer.finish(previous, BlockEnd { seal: None, extras }, out);
        }
        self.sequencer.start(key, start, out);
    }

    /// `content_part.done`: stores the part's fields until its block ends.
    pub(super) fn part_done(&mut self, event: PartEvent) {
        let extra = match event.part {
            ContentPart::Text(part) => part.extra,
            ContentPart::Refusal(part) => part.extra,
            ContentPart::Image(_) | ContentPart::File(_) | ContentPart::Audio(_) | ContentPart::Other(..) => {
                return;
            }
        };
        let Some(item) = self.find(ItemRef { index: event.output_index, id: event.item_id.as_deref() })
        else {
            return;
        };
        let Some(ItemProgress { state: ItemState::Message { parts, fields }, .. }) = self.item(item) else {
            return;
        };
        let part = parts.iter_mut().find(|part| part.index == event.content_index);
        if let Some(PartProgress { state: PartState::Open(extras), .. }) = part {
            *extras = content_read::text_extras(extra, event.content_index as usize, fields);
        }
    }

    /// A delta of the paragraph with this kind and index; an empty one only opens the paragraph.
    pub(super) fn paragraph_delta(
        &mut self,
        event: ItemRef<'_>,
        (kind, index): (ReasoningKind, u32),
        delta: &str,
        out: Out<'_>,
    ) {
        if let Some(item) = self.find(event) {
            self.reasoning_delta(ParagraphKey { item, kind, index }, delta, out);
        }
    }

    pub(super) fn reasoning_delta(&mut self, key: ParagraphKey, delta: &str, out: Out<'_>) {
        let ParagraphKey { item, kind, index } = key;
        let Some(ItemProgress { state: ItemState::Reasoning(paragraphs), complete: false, .. }) =
            self.item(item)
        else {
            return;
        };
        let is_new = !paragraphs.iter().any(|paragraph| paragraph.kind == kind && paragraph.index == index);
        if is_new {
            paragraphs.push(ParagraphProgress { kind, index, streamed: StreamedText::default() });
        }
        if let Some(paragraph) = paragraphs.last_mut() {
            paragraph.streamed.push(delta);
        }
        if is_new {
            self.sequencer.delta(BlockKey::of_item(item), Delta::Paragraph(kind), out);
        }
        self.sequencer.delta(BlockKey::of_item(item), Delta::Text(delta.to_owned()), out);
    }

    /// A delta of a call's input.
    pub(super) fn arguments_delta(&mut self, index: u32, delta: &str, out: Out<'_>) {
        let Some(ItemProgress { state: ItemState::Call(streamed), complete: false, .. }) = self.item(index)
        else {
            return;
        };
        streamed.push(delta);
        self.sequencer.delta(BlockKey::of_item(index), Delta::Arguments(delta.to_owned()), out);
    }

    /// The complete input of a call. Some hosts do not stream it before (T34).
    pub(super) fn arguments_done(&mut self, event: &ArgumentsEvent, out: Out<'_>) {
        let Some(item) = self.find(ItemRef { index: event.output_index, id: event.item_id.as_deref() })
        else {
            return;
        };
        let Some(ItemProgress { state: ItemState::Call(streamed), .. }) = self.item(item) else { return };
        let all = if event.input.is_empty() { &event.arguments.0 } else { &event.input };
        let rest = streamed.rest_of(all).to_owned();
        self.arguments_delta(item, &rest, out);
    }
}
