//! The minimum rate of a request body.

use tokio::time::Instant;

use crate::config::ClientDeadlines;

/// Watches a body arrive: each window of time must bring its share of bytes.
pub(crate) struct Pace {
    deadlines: ClientDeadlines,
    window_end: Instant,
    /// Bytes received when the window began.
    at_start: usize,
}

impl Pace {
    /// Begins with so many bytes already received.
    pub(crate) fn new(deadlines: &ClientDeadlines, received: usize) -> Self {
        Self { deadlines: *deadlines, window_end: Instant::now() + deadlines.head, at_start: received }
    }

    /// When the bytes of this window are counted.
    pub(crate) fn window_end(&self) -> Instant {
        self.window_end
    }

    /// The window is over. False if it brought too little.
    pub(crate) fn next_window(&mut self, received: usize) -> bool {
        let required = (self.deadlines.body_rate as u64).saturating_mul(self.deadlines.head.as_secs().max(1));
        let is_fast_enough = received.saturating_sub(self.at_start) as u64 >= required;
        self.at_start = received;
        self.window_end = Instant::now() + self.deadlines.head;
        is_fast_enough
    }
}
