//! Completes the items of a stream: emits what was not streamed and ends their blocks.

use toolgate_model::{Block, BlockEnd, BlockStart, Delta, Extras, Reasoning, ReasoningKind, Seal, Text};

use super::stream_read_items::{BlockKey, ItemReader, Out, ParagraphKey};
use super::stream_read_progress::{ItemProgress, ItemState, announcement, id_extras};
use super::wire::Item;
use super::{ID, content_read};

impl ItemReader {
    /// `output_item.done`: emits what was not streamed and ends the item's blocks.
    pub(super) fn done(&mut self, index: Option<u32>, item: Item, out: Out<'_>) {
        let known = self.items.finished(index, &item);
        self.complete(known, index, item, out);
    }

    /// Completes the item at a position, or a new one.
    fn complete(&mut self, known: Option<u32>, index: Option<u32>, item: Item, out: Out<'_>) {
        let index = known.unwrap_or_else(|| self.start_item(index, announcement(&item), out));
        if self.item(index).is_none_or(|known| known.complete) {
            if matches!(&item, Item::Reasoning(item) if item.encrypted_content.is_some()) {
                self.losses.add("reasoning.encrypted_content", "it arrived after the answer had started");
            }
            return;
        }
        for (at, block) in content_read::blocks(item).into_iter().enumerate() {
            self.seen.add(&block);
            let key = BlockKey { item: index, part: self.streamed_part(index, at) };
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

    /// The `content_index` under which a part of a message was streamed. The finished item may number its parts
    /// differently, but has them in the same order.
    fn streamed_part(&mut self, index: u32, at: usize) -> u32 {
        let Some(ItemProgress { state: ItemState::Message { parts, .. }, .. }) = self.item(index) else {
            return 0;
        };
        let next = parts.iter().map(|part| part.index + 1).max().unwrap_or_default();
        parts.get(at).map_or(next, |part| part.index)
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
        // A token repeats the whole text.
        let is_token = reasoning.seal.as_ref().is_some_and(|seal| !seal.came_from(ID));
        let has_streamed = self.item(item).is_some_and(|known| known.state.has_paragraphs());
        for part in reasoning.parts.iter().filter(|_| !(is_token && has_streamed)) {
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

    /// Completes the items without an `output_item.done` from the response's own `output`, and adds those that were
    /// not streamed.
    pub(super) fn complete_from_output(&mut self, items: Vec<Item>, out: Out<'_>) {
        for (at, item) in items.into_iter().enumerate() {
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            let known = self.items.repeated(index, &item);
            let is_complete = known.and_then(|known| self.item(known)).is_some_and(|known| known.complete);
            if !is_complete {
                self.complete(known, Some(index), item, out);
            }
        }
        for index in self.items.open() {
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
