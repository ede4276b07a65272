//! Turns interleaved blocks into consecutive ones. A host may fill several blocks at once; the event grammar allows
//! one open block at a time (T5, T6). Blocks that cannot open yet are queued and follow in order of their start.

use std::collections::VecDeque;

use crate::event::{BlockEnd, BlockStart, Delta, TurnEvent};

/// How much memory queued blocks may take. Real replies stay far below it; a host that never ends a block must not
/// exhaust memory.
const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// What ends a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockClosing {
    /// [`Sequencer::finish`], or the start of the next block, unless the open block is a call whose arguments are not
    /// complete JSON yet. If the queue overflows, the open block is closed as it is.
    OnNextStart,
    /// Only [`Sequencer::finish`]: the end of a block carries data that must not be lost. If the queue overflows, the
    /// caller must give up, see [`Sequencer::is_overflowing`].
    OnFinishOnly,
}

/// Orders blocks identified by `K`.
#[derive(Debug)]
pub struct Sequencer<K> {
    closing: BlockClosing,
    open: Option<OpenBlock<K>>,
    queue: VecDeque<QueuedBlock<K>>,
    queued_bytes: usize,
}

#[derive(Debug)]
struct OpenBlock<K> {
    key: K,
    closing: BlockClosing,
    /// The arguments so far, kept for a call that may be closed by the next block's start.
    arguments: Option<String>,
    /// See [`Sequencer::set_end`].
    implicit_end: BlockEnd,
}

#[derive(Debug)]
struct QueuedBlock<K> {
    key: K,
    start: BlockStart,
    deltas: Vec<Delta>,
    end: Option<BlockEnd>,
    implicit_end: BlockEnd,
}

impl<K: Copy + PartialEq> Sequencer<K> {
    /// A sequencer with no block open.
    pub fn new(closing: BlockClosing) -> Self {
        Self { closing, open: None, queue: VecDeque::new(), queued_bytes: 0 }
    }

    /// Opens a block, or queues it behind the open one.
    pub fn start(&mut self, key: K, start: BlockStart, out: &mut Vec<TurnEvent>) {
        if self.open.as_ref().is_some_and(OpenBlock::closes_on_next_start) {
            self.close_open(None, out);
        }
        if self.open.is_none() {
            return self.open_now(key, start, out);
        }
        if self.closing == BlockClosing::OnNextStart {
            self.queue.back_mut().into_iter().for_each(QueuedBlock::end_unless_call);
        }
        let implicit_end = BlockEnd::default();
        self.queue.push_back(QueuedBlock { key, start, deltas: Vec::new(), end: None, implicit_end });
        self.reserve(size_of::<QueuedBlock<K>>(), out);
    }

    /// The key of the open block.
    pub fn open_key(&self) -> Option<K> {
        self.open.as_ref().map(|open| open.key)
    }

    /// The arguments so far of the open block, if it is a call that the next start may close.
    pub fn open_arguments(&self) -> Option<&str> {
        self.open.as_ref()?.arguments.as_deref()
    }

    /// True while the block accepts deltas: it is open, or queued and not finished.
    pub fn is_open(&self, key: K) -> bool {
        self.open_key() == Some(key) || self.queue.iter().any(|block| block.accepts(key))
    }

    /// True if the queued blocks exceed the memory limit. Only happens with [`BlockClosing::OnFinishOnly`].
    pub fn is_overflowing(&self) -> bool {
        self.queued_bytes > MAX_QUEUED_BYTES
    }

    /// Appends to a block. Empty deltas are dropped (T12), and so are deltas for a block that is not open.
    pub fn delta(&mut self, key: K, delta: Delta, out: &mut Vec<TurnEvent>) {
        if delta.is_empty() && !matches!(delta, Delta::Paragraph(_)) {
            return;
        }
        match &mut self.open {
            Some(open) if open.key == key => {
                if let (Some(arguments), Delta::Arguments(more)) = (&mut open.arguments, &delta) {
                    arguments.push_str(more);
                }
                out.push(TurnEvent::BlockDelta(delta));
            }
            Some(_) | None => {
                let Some(block) = self.queue.iter_mut().find(|block| block.accepts(key)) else { return };
                let bytes = queued_size(&delta);
                block.deltas.push(delta);
                self.reserve(bytes, out);
            }
        }
    }

    /// Sets what the end of a block carries if the block is closed without [`Sequencer::finish`].
    pub fn set_end(&mut self, key: K, end: BlockEnd) {
        match &mut self.open {
            Some(open) if open.key == key => open.implicit_end = end,
            Some(_) | None => {
                if let Some(block) = self.queue.iter_mut().find(|block| block.accepts(key)) {
                    block.implicit_end = end;
                }
            }
        }
    }

    /// Ends a block.
    pub fn finish(&mut self, key: K, end: BlockEnd, out: &mut Vec<TurnEvent>) {
        if self.open_key() == Some(key) {
            self.close_open(Some(end), out);
        } else if let Some(block) = self.queue.iter_mut().find(|block| block.accepts(key)) {
            block.end = Some(end);
        }
    }

    /// Ends every block: closes the open one and flushes the queue.
    pub fn finish_all(&mut self, out: &mut Vec<TurnEvent>) {
        while self.open.is_some() {
            self.close_open(None, out);
        }
    }

    /// Counts queued memory. On overflow the host has broken its own protocol.
    fn reserve(&mut self, bytes: usize, out: &mut Vec<TurnEvent>) {
        self.queued_bytes += bytes;
        if self.is_overflowing() && self.closing == BlockClosing::OnNextStart {
            self.close_open(None, out);
        }
    }

    fn open_now(&mut self, key: K, start: BlockStart, out: &mut Vec<TurnEvent>) {
        let is_checked_call =
            self.closing == BlockClosing::OnNextStart && matches!(start, BlockStart::ToolCall { .. });
        self.open = Some(OpenBlock {
            key,
            closing: self.closing,
            arguments: is_checked_call.then(String::new),
            implicit_end: BlockEnd::default(),
        });
        out.push(TurnEvent::BlockStarted(start));
    }

    /// Closes the open block and flushes the queue up to and including the first unfinished block, which stays open.
    fn close_open(&mut self, end: Option<BlockEnd>, out: &mut Vec<TurnEvent>) {
        if let Some(open) = self.open.take() {
            out.push(TurnEvent::BlockFinished(end.unwrap_or(open.implicit_end)));
        }
        while let Some(QueuedBlock { key, start, deltas, end, implicit_end }) = self.queue.pop_front() {
            let bytes = size_of::<QueuedBlock<K>>() + deltas.iter().map(queued_size).sum::<usize>();
            self.queued_bytes = self.queued_bytes.saturating_sub(bytes);
            self.open_now(key, start, out);
            for delta in deltas {
                self.delta(key, delta, out);
            }
            let closes_now =
                !self.queue.is_empty() && self.open.as_ref().is_some_and(OpenBlock::closes_on_next_start);
            let end = match end {
                Some(end) => end,
                None if closes_now => implicit_end,
                None => return self.set_end(key, implicit_end),
            };
            self.open = None;
            out.push(TurnEvent::BlockFinished(end));
        }
    }
}

impl<K> OpenBlock<K> {
    fn closes_on_next_start(&self) -> bool {
        match self.closing {
            BlockClosing::OnNextStart => self.arguments.as_deref().is_none_or(is_complete_json),
            BlockClosing::OnFinishOnly => false,
        }
    }
}

impl<K: Copy + PartialEq> QueuedBlock<K> {
    /// Ends the block, so that what follows the next block does not come before it. A call may still grow.
    fn end_unless_call(&mut self) {
        if self.end.is_none() && !matches!(self.start, BlockStart::ToolCall { .. }) {
            self.end = Some(std::mem::take(&mut self.implicit_end));
        }
    }

    fn accepts(&self, key: K) -> bool {
        self.key == key && self.end.is_none()
    }
}

fn queued_size(delta: &Delta) -> usize {
    size_of::<Delta>() + delta.len()
}

fn is_complete_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests;
