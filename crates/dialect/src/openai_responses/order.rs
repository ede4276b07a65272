//! One block at a time: hosts may fill several items at once, and what is not open yet waits for its turn (T6).

use toolgate_model::{BlockEnd, BlockStart, Delta, TurnError, TurnEvent};

/// A block's place at the host: its item, and its part of the item's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `output_index`.
    pub(super) item: u32,
    /// `content_index` of a message's part, else zero.
    pub(super) part: u32,
}

/// What happens to a block.
#[derive(Debug)]
pub(super) enum Step {
    /// It opens.
    Start(BlockStart),
    /// It grows.
    Grow(Delta),
    /// It is complete.
    End(BlockEnd),
}

/// How much may wait. A reply is far smaller; a host that never ends an item must not take our memory.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;
/// The same for steps, which cost memory even when empty.
const MAX_WAITING_STEPS: usize = 1_000_000;

/// The open block and those that wait.
#[derive(Debug, Default)]
pub(super) struct Order {
    open: Option<Place>,
    waiting: Vec<(Place, Step)>,
    waiting_bytes: usize,
}

impl Order {
    /// The block that is open.
    pub(super) fn open(&self) -> Option<Place> {
        self.open
    }

    /// Takes the next step of a block; it comes out now or when the blocks before it are complete.
    pub(super) fn step(
        &mut self,
        place: Place,
        step: Step,
        out: &mut Vec<TurnEvent>,
    ) -> Result<(), TurnError> {
        if self.open == Some(place) || (self.open.is_none() && self.waiting.is_empty()) {
            if self.emit(place, step, out) {
                self.let_next(out);
            }
            return Ok(());
        }
        if let Step::Grow(delta) = &step {
            self.waiting_bytes = self.waiting_bytes.saturating_add(delta.len());
        }
        self.waiting.push((place, step));
        if self.waiting_bytes > MAX_WAITING_BYTES || self.waiting.len() > MAX_WAITING_STEPS {
            return Err(TurnError::upstream(
                "the host fills many items at once and ends none of them: ask it for smaller replies",
            ));
        }
        Ok(())
    }

    /// Writes a step; true if it was the last of its block.
    fn emit(&mut self, place: Place, step: Step, out: &mut Vec<TurnEvent>) -> bool {
        match step {
            Step::Start(start) => {
                self.open = Some(place);
                out.push(TurnEvent::BlockStarted(start));
                false
            }
            Step::Grow(delta) => {
                out.push(TurnEvent::BlockDelta(delta));
                false
            }
            Step::End(end) => {
                self.open = None;
                out.push(TurnEvent::BlockFinished(end));
                true
            }
        }
    }

    /// Lets the block that waits longest come, and every other that is complete by then.
    fn let_next(&mut self, out: &mut Vec<TurnEvent>) {
        while self.open.is_none() && !self.waiting.is_empty() {
            let first = self.waiting[0].0;
            let (next, rest) =
                std::mem::take(&mut self.waiting).into_iter().partition(|(place, _)| *place == first);
            self.waiting = rest;
            let next: Vec<(Place, Step)> = next;
            for (place, step) in next {
                self.emit(place, step, out);
            }
        }
        if self.waiting.is_empty() {
            self.waiting_bytes = 0;
        }
    }
}
