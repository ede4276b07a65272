//! Tells a stream's items as blocks. Items go by their `output_index`; each is told as its deltas come and completed
//! by its `output_item.done`, which also carries what is known only then.

use toolgate_model::{
    Block, BlockEnd, BlockStart, CallKind, Delta, Extras, Fields, Losses, Reasoning, ReasoningKind, Seal,
    Text, TurnError, TurnEvent,
};

use super::items;
use super::order::{Order, Place, Step};
use super::progress::{
    ParagraphProgress, PartProgress, PartState, Progress, Sent, Told, announcement, id_extras, id_of,
};
use super::reply::Said;
use super::stream_frames::{ArgumentsEvent, DeltaEvent, PartEvent};
use super::wire::{Content, ContentPart, Item, MessageItem};

/// Where events go.
pub(super) type Out<'a> = &'a mut Vec<TurnEvent>;

/// The items of one stream.
#[derive(Default)]
pub(super) struct ItemTeller {
    items: Vec<Progress>,
    order: Order,
    /// What kinds of blocks were told.
    pub(super) said: Said,
    /// What could not be told.
    pub(super) losses: Losses,
}

impl ItemTeller {
    fn item(&mut self, index: u32) -> Option<&mut Progress> {
        // The item at work is nearly always the last.
        self.items.iter_mut().rev().find(|item| item.index == index)
    }

    /// An item begins.
    pub(super) fn announced(&mut self, index: u32, item: Item, out: Out<'_>) -> Result<(), TurnError> {
        if self.item(index).is_some() {
            return Ok(());
        }
        self.raw_thought_yields(out)?;
        let id = id_of(&item).map(str::to_owned);
        let place = Place { item: index, part: 0 };
        let told = match item {
            Item::Message(message) => Told::Message { fields: message.extra, parts: Vec::new() },
            Item::Reasoning(_) => {
                self.order.step(place, Step::Start(BlockStart::Reasoning(Extras::NONE)), out)?;
                Told::Reasoning(Vec::new())
            }
            Item::FunctionCall(item) => {
                let id = items::call_id(item.call_id, &item.extra).into();
                let start = BlockStart::ToolCall { id, name: item.name.into(), kind: CallKind::Function };
                self.order.step(place, Step::Start(start), out)?;
                Told::Call(Sent::default())
            }
            Item::CustomCall(item) => {
                let id = items::call_id(item.call_id, &item.extra).into();
                let start = BlockStart::ToolCall { id, name: item.name.into(), kind: CallKind::Custom };
                self.order.step(place, Step::Start(start), out)?;
                Told::Call(Sent::default())
            }
            Item::FunctionOutput(_) | Item::CustomOutput(_) | Item::Other(..) => Told::AtOnce,
        };
        self.items.push(Progress { index, id, told, complete: false });
        Ok(())
    }

    /// Hosts that stream the thought itself may complete it only after the answer. Such a thought ends when the next
    /// item begins, so that the answer is not held back; a sealed one must wait for its seal.
    fn raw_thought_yields(&mut self, out: Out<'_>) -> Result<(), TurnError> {
        let Some(open) = self.order.open() else { return Ok(()) };
        let Some(item) = self.item(open.item) else { return Ok(()) };
        let is_raw = matches!(&item.told, Told::Reasoning(paragraphs) if !paragraphs.is_empty()
            && paragraphs.iter().all(|paragraph| paragraph.kind == ReasoningKind::Full));
        if !is_raw {
            return Ok(());
        }
        item.complete = true;
        let extras = id_extras(item.id.as_deref());
        self.order.step(open, Step::End(BlockEnd { seal: None, extras }), out)
    }

    /// More of a text or refusal.
    pub(super) fn prose(
        &mut self,
        start: BlockStart,
        event: DeltaEvent<'_>,
        out: Out<'_>,
    ) -> Result<(), TurnError> {
        if event.delta.is_empty() {
            return Ok(());
        }
        let place = Place { item: event.output_index, part: event.content_index };
        if !self.grows(place, &event.delta) {
            self.open_part(place, start, out)?;
            if !self.grows(place, &event.delta) {
                return Ok(());
            }
        }
        self.order.step(place, Step::Grow(Delta::Text(event.delta.into_owned())), out)
    }

    /// Counts more of an open part; false where it is not open.
    fn grows(&mut self, place: Place, delta: &str) -> bool {
        let Some(Progress { told: Told::Message { parts, .. }, .. }) = self.item(place.item) else {
            return false;
        };
        let open =
            |part: &&mut PartProgress| part.index == place.part && matches!(part.state, PartState::Open(_));
        let Some(part) = parts.last_mut().filter(open) else { return false };
        part.told.add(delta);
        true
    }

    /// A part of a message or thought begins.
    pub(super) fn part_added(&mut self, event: PartEvent, out: Out<'_>) -> Result<(), TurnError> {
        let place = Place { item: event.output_index, part: event.content_index };
        match event.part {
            ContentPart::Text(_) => self.open_part(place, BlockStart::Text, out),
            ContentPart::Refusal(_) => self.open_part(place, BlockStart::Refusal, out),
            ContentPart::Other(kind, _) if kind == "reasoning_text" => {
                self.thought((place.item, ReasoningKind::Full, place.part), "", out)
            }
            ContentPart::Image(_) | ContentPart::File(_) | ContentPart::Audio(_) | ContentPart::Other(..) => {
                Ok(())
            }
        }
    }

    /// Opens a part of a message, and completes the one before it.
    fn open_part(&mut self, place: Place, start: BlockStart, out: Out<'_>) -> Result<(), TurnError> {
        if self.item(place.item).is_none() {
            let message = MessageItem { role: None, content: Content::default(), extra: Fields::new() };
            self.announced(place.item, Item::Message(message), out)?;
        }
        let Some(Progress { told: Told::Message { parts, fields }, complete: false, .. }) =
            self.item(place.item)
        else {
            return Ok(());
        };
        if parts.iter().any(|part| part.index == place.part) {
            return Ok(());
        }
        let before = parts.last_mut().and_then(|part| {
            let at = Place { item: place.item, part: part.index };
            match std::mem::replace(&mut part.state, PartState::Ended) {
                PartState::Open(extras) => Some((at, extras)),
                PartState::Ended => None,
            }
        });
        let extras = items::text_extras(Fields::new(), place.part as usize, fields);
        parts.push(PartProgress { index: place.part, told: Sent::default(), state: PartState::Open(extras) });
        if let Some((at, extras)) = before {
            self.order.step(at, Step::End(BlockEnd { seal: None, extras }), out)?;
        }
        self.order.step(place, Step::Start(start), out)
    }

    /// Remembers what a part ends with, in case another follows it.
    pub(super) fn part_done(&mut self, event: PartEvent) {
        let extra = match event.part {
            ContentPart::Text(part) => part.extra,
            ContentPart::Refusal(part) => part.extra,
            ContentPart::Image(_) | ContentPart::File(_) | ContentPart::Audio(_) | ContentPart::Other(..) => {
                return;
            }
        };
        let Some(Progress { told: Told::Message { parts, fields }, .. }) = self.item(event.output_index)
        else {
            return;
        };
        let part = parts.iter_mut().find(|part| part.index == event.content_index);
        if let Some(PartProgress { state: PartState::Open(extras), .. }) = part {
            *extras = items::text_extras(extra, event.content_index as usize, fields);
        }
    }

    /// More of a thought; with an empty text, a paragraph begins.
    pub(super) fn thought(
        &mut self,
        at: (u32, ReasoningKind, u32),
        delta: &str,
        out: Out<'_>,
    ) -> Result<(), TurnError> {
        let (item, kind, index) = at;
        let place = Place { item, part: 0 };
        let Some(Progress { told: Told::Reasoning(paragraphs), complete: false, .. }) = self.item(item)
        else {
            return Ok(());
        };
        let known = paragraphs.iter().any(|paragraph| paragraph.kind == kind && paragraph.index == index);
        if !known {
            paragraphs.push(ParagraphProgress { kind, index, told: Sent::default() });
        }
        if let Some(paragraph) = paragraphs.last_mut() {
            paragraph.told.add(delta);
        }
        if !known {
            self.order.step(place, Step::Grow(Delta::Paragraph(kind)), out)?;
        }
        if delta.is_empty() {
            return Ok(());
        }
        self.order.step(place, Step::Grow(Delta::Text(delta.to_owned())), out)
    }

    /// More of a call's input.
    pub(super) fn arguments(&mut self, index: u32, delta: &str, out: Out<'_>) -> Result<(), TurnError> {
        let Some(Progress { told: Told::Call(told), complete: false, .. }) = self.item(index) else {
            return Ok(());
        };
        if delta.is_empty() {
            return Ok(());
        }
        told.add(delta);
        let place = Place { item: index, part: 0 };
        self.order.step(place, Step::Grow(Delta::Arguments(delta.to_owned())), out)
    }

    /// A call's input is complete: some hosts send it only now (T34).
    pub(super) fn arguments_done(&mut self, event: &ArgumentsEvent, out: Out<'_>) -> Result<(), TurnError> {
        let Some(Progress { told: Told::Call(told), .. }) = self.item(event.output_index) else {
            return Ok(());
        };
        let all = if event.input.is_empty() { &event.arguments.0 } else { &event.input };
        let rest = told.rest(all).to_owned();
        self.arguments(event.output_index, &rest, out)
    }

    /// Tells what of an item is not told yet, and ends its blocks.
    pub(super) fn complete(&mut self, index: u32, item: Item, out: Out<'_>) -> Result<(), TurnError> {
        if self.item(index).is_none() {
            self.announced(index, announcement(&item), out)?;
        }
        if self.item(index).is_none_or(|known| known.complete) {
            if matches!(&item, Item::Reasoning(item) if item.encrypted_content.is_some()) {
                self.losses.add("reasoning.encrypted_content", "it came after the answer that follows it");
            }
            return Ok(());
        }
        for (at, block) in items::blocks(item).into_iter().enumerate() {
            self.said.see(&block);
            let place = Place { item: index, part: u32::try_from(at).unwrap_or(u32::MAX) };
            match block {
                Block::Text(text) => self.complete_part(place, BlockStart::Text, &text, out)?,
                Block::Refusal(text) => self.complete_part(place, BlockStart::Refusal, &text, out)?,
                Block::Reasoning(reasoning) => self.complete_thought(index, reasoning, out)?,
                Block::ToolCall(call) => {
                    if let Some(Progress { told: Told::Call(told), .. }) = self.item(index) {
                        let rest = told.rest(&call.arguments);
                        self.arguments(index, rest, out)?;
                    }
                    self.order.step(place, Step::End(BlockEnd { seal: None, extras: call.extras }), out)?;
                }
                Block::Opaque(opaque) => {
                    let streamed = matches!(self.item(index), Some(Progress { told: Told::Message { parts, .. }, .. })
                        if !parts.is_empty());
                    if !streamed {
                        self.order.step(place, Step::Start(BlockStart::Opaque(opaque)), out)?;
                        self.order.step(place, Step::End(BlockEnd::default()), out)?;
                    }
                }
            }
        }
        self.close(index, out)
    }

    fn complete_part(
        &mut self,
        place: Place,
        start: BlockStart,
        text: &Text,
        out: Out<'_>,
    ) -> Result<(), TurnError> {
        self.open_part(place, start, out)?;
        let Some(Progress { told: Told::Message { parts, .. }, .. }) = self.item(place.item) else {
            return Ok(());
        };
        let Some(part) = parts.iter_mut().find(|part| part.index == place.part) else { return Ok(()) };
        if matches!(part.state, PartState::Ended) {
            return Ok(());
        }
        part.state = PartState::Ended;
        let rest = part.told.rest(&text.text).to_owned();
        if !rest.is_empty() {
            self.order.step(place, Step::Grow(Delta::Text(rest)), out)?;
        }
        self.order.step(place, Step::End(BlockEnd { seal: None, extras: text.extras.clone() }), out)
    }

    fn complete_thought(&mut self, index: u32, thought: Reasoning, out: Out<'_>) -> Result<(), TurnError> {
        let mut counts = (0, 0);
        for part in &thought.parts {
            let count = match part.kind {
                ReasoningKind::Summary => &mut counts.0,
                ReasoningKind::Full => &mut counts.1,
            };
            let at = *count;
            *count += 1;
            let rest = match self.item(index) {
                Some(item) => item.told.rest_of_paragraph(part.kind, at, &part.text),
                None => None,
            };
            match rest {
                None => self.thought((index, part.kind, at), &part.text, out)?,
                Some("") => {}
                Some(rest) => self.thought((index, part.kind, at), rest, out)?,
            }
        }
        self.end_thought(index, thought.seal, thought.extras, out)
    }

    fn end_thought(
        &mut self,
        index: u32,
        seal: Option<Seal>,
        extras: Extras,
        out: Out<'_>,
    ) -> Result<(), TurnError> {
        if let Some(item) = self.item(index) {
            item.complete = true;
        }
        self.order.step(Place { item: index, part: 0 }, Step::End(BlockEnd { seal, extras }), out)
    }

    /// Ends what is still open of an item, with what is known of it.
    fn close(&mut self, index: u32, out: Out<'_>) -> Result<(), TurnError> {
        let Some(item) = self.item(index) else { return Ok(()) };
        item.complete = true;
        let Told::Message { parts, .. } = &mut item.told else { return Ok(()) };
        let mut open = Vec::new();
        for part in parts {
            if let PartState::Open(extras) = std::mem::replace(&mut part.state, PartState::Ended) {
                open.push((Place { item: index, part: part.index }, extras));
            }
        }
        for (place, extras) in open {
            self.order.step(place, Step::End(BlockEnd { seal: None, extras }), out)?;
        }
        Ok(())
    }

    /// Items whose end the host did not send stand in the response itself.
    pub(super) fn tell_unfinished(&mut self, items: Vec<Item>, out: Out<'_>) -> Result<(), TurnError> {
        let nothing_told = self.items.is_empty();
        for (at, item) in items.into_iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let named = |known: &&Progress| known.id.is_some() && known.id.as_deref() == id_of(&item);
            let index = self.items.iter().find(named).map_or(at, |known| known.index);
            let is_open = self.item(index).is_some_and(|known| !known.complete);
            if nothing_told || is_open {
                self.complete(index, item, out)?;
            }
        }
        let open: Vec<u32> = self.items.iter().filter(|item| !item.complete).map(|item| item.index).collect();
        for index in open {
            self.abandon(index, out)?;
        }
        Ok(())
    }

    /// Ends an item of which nothing more will come.
    fn abandon(&mut self, index: u32, out: Out<'_>) -> Result<(), TurnError> {
        let Some(item) = self.item(index) else { return Ok(()) };
        item.complete = true;
        let id = id_extras(item.id.as_deref());
        match item.told {
            Told::Message { .. } => self.close(index, out),
            Told::Reasoning(_) => self.end_thought(index, None, id, out),
            Told::Call(_) => {
                let place = Place { item: index, part: 0 };
                self.order.step(place, Step::End(BlockEnd { seal: None, extras: id }), out)
            }
            Told::AtOnce => {
                self.losses.add("output[]", "the host announced an item and never sent it");
                Ok(())
            }
        }
    }
}
