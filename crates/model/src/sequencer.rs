//! Puts interleaved blocks one after the other: hosts may fill several calls at once, clients take one block at a
//! time (T5, T6). What cannot be sent yet waits here and follows in order.

use std::collections::VecDeque;

use crate::event::{BlockEnd, BlockStart, Delta, TurnEvent};

/// How much may wait for an open call to finish. Past this the open call is closed as it is: its host has broken
/// its own protocol, and memory stays bounded.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// Orders blocks named by `K`.
#[derive(Debug)]
pub struct Sequencer<K> {
    open: Option<Open<K>>,
    waiting: VecDeque<Waiting<K>>,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct Open<K> {
    key: K,
    /// `Some` for a call: its arguments so far, which tell whether it is complete.
    arguments: Option<String>,
}

#[derive(Debug)]
struct Waiting<K> {
    key: K,
    start: BlockStart,
    deltas: Vec<Delta>,
    end: Option<BlockEnd>,
}

impl<K> Default for Sequencer<K> {
    fn default() -> Self {
        Self { open: None, waiting: VecDeque::new(), waiting_bytes: 0 }
    }
}

impl<K: Copy + PartialEq> Sequencer<K> {
    /// Nothing open.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new block begins. An open prose block ends here; an open call ends if its arguments are complete JSON, else
    /// the newcomer waits for it.
    pub fn start(&mut self, key: K, start: BlockStart, out: &mut Vec<TurnEvent>) {
        if self.open.as_ref().is_some_and(Open::yields) {
            self.close_open(BlockEnd::default(), out);
        }
        if self.open.is_none() {
            self.open_now(key, start, out);
        } else {
            self.waiting.push_back(Waiting { key, start, deltas: Vec::new(), end: None });
        }
    }

    /// True while deltas for this block are welcome: it is open, or waits and is not finished.
    pub fn is_open(&self, key: K) -> bool {
        self.open.as_ref().is_some_and(|open| open.key == key)
            || self.waiting.iter().any(|block| block.takes(key))
    }

    /// The block grows. Empty deltas are dropped (T12), and so are those for a block that is not open.
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
            _ => self.wait(key, delta, out),
        }
    }

    /// The block is complete.
    pub fn finish(&mut self, key: K, end: BlockEnd, out: &mut Vec<TurnEvent>) {
        if self.open.as_ref().is_some_and(|open| open.key == key) {
            self.close_open(end, out);
        } else if let Some(block) = self.waiting.iter_mut().find(|block| block.takes(key)) {
            block.end = Some(end);
        }
    }

    /// Everything is complete: closes what is open and sends what waits.
    pub fn finish_all(&mut self, out: &mut Vec<TurnEvent>) {
        while self.open.is_some() {
            self.close_open(BlockEnd::default(), out);
        }
    }

    fn wait(&mut self, key: K, delta: Delta, out: &mut Vec<TurnEvent>) {
        let Some(block) = self.waiting.iter_mut().find(|block| block.takes(key)) else { return };
        self.waiting_bytes += delta.len();
        block.deltas.push(delta);
        if self.waiting_bytes > MAX_WAITING_BYTES {
            self.close_open(BlockEnd::default(), out);
        }
    }

    fn open_now(&mut self, key: K, start: BlockStart, out: &mut Vec<TurnEvent>) {
        let arguments = matches!(start, BlockStart::ToolCall { .. }).then(String::new);
        self.open = Some(Open { key, arguments });
        out.push(TurnEvent::BlockStarted(start));
    }

    /// Closes the open block and lets those that wait follow, up to the first unfinished one.
    fn close_open(&mut self, end: BlockEnd, out: &mut Vec<TurnEvent>) {
        if self.open.take().is_some() {
            out.push(TurnEvent::BlockFinished(end));
        }
        while let Some(block) = self.waiting.pop_front() {
            self.open_now(block.key, block.start, out);
            for delta in block.deltas {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(delta.len());
                self.delta(block.key, delta, out);
            }
            let followed = !self.waiting.is_empty() && self.open.as_ref().is_some_and(Open::yields);
            match block.end {
                Some(end) => {
                    self.open = None;
                    out.push(TurnEvent::BlockFinished(end));
                }
                None if followed => {
                    self.open = None;
                    out.push(TurnEvent::BlockFinished(BlockEnd::default()));
                }
                None => return,
            }
        }
    }
}

impl<K> Open<K> {
    /// Whether the block can end because another begins.
    fn yields(&self) -> bool {
        self.arguments.as_deref().is_none_or(is_complete_json)
    }
}

impl<K: Copy + PartialEq> Waiting<K> {
    fn takes(&self, key: K) -> bool {
        self.key == key && self.end.is_none()
    }
}

fn is_complete_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests;
