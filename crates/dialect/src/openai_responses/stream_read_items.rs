//! Reads a stream's items into blocks. Items are identified by their `output_index`. An item's deltas are emitted as
//! they arrive; its `output_item.done` adds what was not streamed and the fields known only at the end.

use toolgate_model::sequencer::{BlockClosing, Sequencer};
use toolgate_model::{
    Block, BlockEnd, BlockStart, CallKind, Delta, Extras, Fields, Losses, Reasoning, ReasoningKind, Seal,
    Text, TurnError, TurnEvent,
};

use super::client_tools::TOOL_SEARCH;
use super::content_read;
use super::reply_read::SeenBlocks;
use super::stream_read_progress::{
    ItemProgress, ItemState, ParagraphProgress, PartProgress, PartState, StreamedText, announcement,
    id_extras, id_of,
};
use super::wire::{Content, ContentPart, Item, MessageItem};
use super::wire_stream::{ArgumentsEvent, DeltaEvent, PartEvent};

/// Where events go.
pub(super) type Out<'a> = &'a mut Vec<TurnEvent>;

/// Identifies a block of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockKey {
    /// `output_index`.
    item: u32,
    /// `content_index` of a message's part, else zero.
    part: u32,
}

impl BlockKey {
    fn of_item(item: u32) -> Self {
        Self { item, part: 0 }
    }
}

/// A paragraph of a reasoning item.
#[derive(Clone, Copy)]
pub(super) struct ParagraphKey {
    /// `output_index`.
    pub(super) item: u32,
    pub(super) kind: ReasoningKind,
    /// `summary_index` or `content_index`.
    pub(super) index: u32,
}

/// The items of one stream.
pub(super) struct ItemReader {
    items: Vec<ItemProgress>,
    sequencer: Sequencer<BlockKey>,
    /// The kinds of blocks that completed items held.
    pub(super) seen: SeenBlocks,
    pub(super) losses: Losses,
}

impl ItemReader {
    /// Before the first item.
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
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

    fn item(&mut self, index: u32) -> Option<&mut ItemProgress> {
        // Deltas nearly always belong to the last item.
        self.items.iter_mut().rev().find(|item| item.index == index)
    }

    /// `output_item.added`.
    pub(super) fn added(&mut self, index: u32, item: Item, out: Out<'_>) {
        if self.item(index).is_some() {
            return;
        }
        self.close_plaintext_reasoning(out);
        let id = id_of(&item).map(str::to_owned);
        let state = match item {
            Item::Message(message) => ItemState::Message { fields: message.extra, parts: Vec::new() },
            Item::Reasoning(_) => {
                let start = BlockStart::Reasoning(Extras::NONE);
                self.sequencer.start(BlockKey::of_item(index), start, out);
                ItemState::Reasoning(Vec::new())
            }
            Item::FunctionCall(item) => {
                let id = content_read::call_id(item.call_id, &item.extra).into();
                let name = content_read::called_name(item.name, &item.extra).into();
                let start = BlockStart::ToolCall { id, name, kind: CallKind::Function };
                self.sequencer.start(BlockKey::of_item(index), start, out);
                ItemState::Call(StreamedText::default())
            }
            Item::CustomCall(item) => {
                let id = content_read::call_id(item.call_id, &item.extra).into();
                let name = content_read::called_name(item.name, &item.extra).into();
                let start = BlockStart::ToolCall { id, name, kind: CallKind::Custom };
                self.sequencer.start(BlockKey::of_item(index), start, out);
                ItemState::Call(StreamedText::default())
            }
            Item::ToolSearchCall(item) => {
                let (id, name) = (item.call_id.into(), TOOL_SEARCH.into());
                let start = BlockStart::ToolCall { id, name, kind: CallKind::Function };
                self.sequencer.start(BlockKey::of_item(index), start, out);
                ItemState::Call(StreamedText::default())
            }
            Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::ToolSearchOutput(_) | Item::Other(..) => {
                ItemState::Unstreamed
            }
        };
        self.items.push(ItemProgress { index, id, state, complete: false });
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
        let key = BlockKey { item: event.output_index, part: event.content_index };
        if !self.append_to_part(key, &event.delta) {
            self.open_part(key, start, out);
            if !self.append_to_part(key, &event.delta) {
                return;
            }
        }
        self.sequencer.delta(key, Delta::Text(event.delta.into_owned()), out);
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
    pub(super) fn part_added(&mut self, event: PartEvent, out: Out<'_>) {
        let key = BlockKey { item: event.output_index, part: event.content_index };
        match event.part {
            ContentPart::Text(_) => self.open_part(key, BlockStart::Text, out),
            ContentPart::Refusal(_) => self.open_part(key, BlockStart::Refusal, out),
            ContentPart::Other(kind, _) if kind == "reasoning_text" => {
                let key = ParagraphKey { item: key.item, kind: ReasoningKind::Full, index: key.part };
                self.reasoning_delta(key, "", out);
            }
            ContentPart::Image(_) | ContentPart::File(_) | ContentPart::Audio(_) | ContentPart::Other(..) => {
            }
        }
    }

    /// Opens a part of a message and ends the previous part.
    fn open_part(&mut self, key: BlockKey, start: BlockStart, out: Out<'_>) {
        if self.item(key.item).is_none() {
            let message = MessageItem { role: None, content: Content::default(), extra: Fields::new() };
            self.added(key.item, Item::Message(message), out);
        }
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
        let Some(ItemProgress { state: ItemState::Message { parts, fields }, .. }) =
            self.item(event.output_index)
        else {
            return;
        };
        let part = parts.iter_mut().find(|part| part.index == event.content_index);
        if let Some(PartProgress { state: PartState::Open(extras), .. }) = part {
            *extras = content_read::text_extras(extra, event.content_index as usize, fields);
        }
    }

    /// A delta of a reasoning paragraph; an empty one only opens the paragraph.
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
        let Some(ItemProgress { state: ItemState::Call(streamed), .. }) = self.item(event.output_index)
        else {
            return;
        };
        let all = if event.input.is_empty() { &event.arguments.0 } else { &event.input };
        let rest = streamed.rest_of(all).to_owned();
        self.arguments_delta(event.output_index, &rest, out);
    }

    /// `output_item.done`: emits what was not streamed and ends the item's blocks.
    pub(super) fn done(&mut self, index: u32, item: Item, out: Out<'_>) {
        if self.item(index).is_none() {
            self.added(index, announcement(&item), out);
        }
        if self.item(index).is_none_or(|known| known.complete) {
            if matches!(&item, Item::Reasoning(item) if item.encrypted_content.is_some()) {
                self.losses.add("reasoning.encrypted_content", "it arrived after the answer had started");
            }
            return;
        }
        for (at, block) in content_read::blocks(item).into_iter().enumerate() {
            self.seen.add(&block);
            let key = BlockKey { item: index, part: u32::try_from(at).unwrap_or(u32::MAX) };
            match block {
                Block::Text(text) => self.complete_part(key, BlockStart::Text, &text, out),
                Block::Refusal(text) => self.complete_part(key, BlockStart::Refusal, &text, out),
                Block::Reasoning(reasoning) => self.complete_reasoning(index, reasoning, out),
                Block::ToolCall(call) => {
                    if let Some(ItemProgress { state: ItemState::Call(streamed), .. }) = self.item(index) {
                        let rest = streamed.rest_of(&call.arguments).to_owned();
                        self.arguments_delta(index, &rest, out);
                    }
                    self.sequencer.finish(key, BlockEnd { seal: None, extras: call.extras }, out);
                }
                Block::Opaque(opaque) => {
                    if !self.has_streamed_parts(index) {
                        self.sequencer.start(key, BlockStart::Opaque(opaque), out);
                        self.sequencer.finish(key, BlockEnd::default(), out);
                    }
                }
            }
        }
        self.close_item(index, out);
    }

    fn has_streamed_parts(&mut self, index: u32) -> bool {
        matches!(self.item(index), Some(ItemProgress { state: ItemState::Message { parts, .. }, .. })
            if !parts.is_empty())
    }

    fn complete_part(&mut self, key: BlockKey, start: BlockStart, text: &Text, out: Out<'_>) {
        self.open_part(key, start, out);
        let Some(ItemProgress { state: ItemState::Message { parts, .. }, .. }) = self.item(key.item) else {
            return;
        };
        let Some(part) = parts.iter_mut().find(|part| part.index == key.part) else { return };
        if part.end().is_none() {
            return;
        }
        let rest = part.streamed.rest_of(&text.text).to_owned();
        self.sequencer.delta(key, Delta::Text(rest), out);
        self.sequencer.finish(key, BlockEnd { seal: None, extras: text.extras.clone() }, out);
    }

    fn complete_reasoning(&mut self, item: u32, reasoning: Reasoning, out: Out<'_>) {
        let (mut summaries, mut full) = (0, 0);
        for part in &reasoning.parts {
            let count = match part.kind {
                ReasoningKind::Summary => &mut summaries,
                ReasoningKind::Full => &mut full,
            };
            let key = ParagraphKey { item, kind: part.kind, index: *count };
            *count += 1;
            let Some(known) = self.item(item) else { continue };
            match known.state.rest_of_paragraph(part.kind, key.index, &part.text) {
                None => self.reasoning_delta(key, &part.text, out),
                Some("") => {}
                Some(rest) => self.reasoning_delta(key, rest, out),
            }
        }
        self.end_reasoning(item, reasoning.seal, reasoning.extras, out);
    }

    fn end_reasoning(&mut self, index: u32, seal: Option<Seal>, extras: Extras, out: Out<'_>) {
        if let Some(item) = self.item(index) {
            item.complete = true;
        }
        self.sequencer.finish(BlockKey::of_item(index), BlockEnd { seal, extras }, out);
    }

    /// Marks an item complete and ends its open parts.
    fn close_item(&mut self, index: u32, out: Out<'_>) {
        let Some(item) = self.item(index) else { return };
        item.complete = true;
        let ItemState::Message { parts, .. } = &mut item.state else { return };
        let ended: Vec<_> = parts.iter_mut().filter_map(|part| Some((part.index, part.end()?))).collect();
        for (part, extras) in ended {
            let key = BlockKey { item: index, part };
            self.sequencer.finish(key, BlockEnd { seal: None, extras }, out);
        }
    }

    /// Completes the items without an `output_item.done` from the response's own `output`.
    pub(super) fn complete_from_output(&mut self, items: Vec<Item>, out: Out<'_>) {
        let nothing_streamed = self.items.is_empty();
        for (at, item) in items.into_iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let has_same_id =
                |known: &&ItemProgress| known.id.is_some() && known.id.as_deref() == id_of(&item);
            let index = self.items.iter().find(has_same_id).map_or(at, |known| known.index);
            let is_open = self.item(index).is_some_and(|known| !known.complete);
            if nothing_streamed || is_open {
                self.done(index, item, out);
            }
        }
        let open: Vec<u32> = self.items.iter().filter(|item| !item.complete).map(|item| item.index).collect();
        for index in open {
            self.abandon(index, out);
        }
    }

    /// Ends an item that the host never completed.
    fn abandon(&mut self, index: u32, out: Out<'_>) {
        let Some(item) = self.item(index) else { return };
        item.complete = true;
        let extras = id_extras(item.id.as_deref());
        match item.state {
            ItemState::Message { .. } => self.close_item(index, out),
            ItemState::Reasoning(_) => self.end_reasoning(index, None, extras, out),
            ItemState::Call(_) => {
                self.sequencer.finish(BlockKey::of_item(index), BlockEnd { seal: None, extras }, out);
            }
            ItemState::Unstreamed => {
                self.losses.add("output[]", "the host announced an item and never sent it");
            }
        }
    }
}
