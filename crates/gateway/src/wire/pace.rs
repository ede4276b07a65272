//! The minimum rate of a request body.

use std::time::Duration;

use crate::config::ClientDeadlines;

/// Watches a body arrive: each window of time must bring its share of bytes.
pub(crate) struct Pace {
    window: Duration,
    required_bytes: u64,
    /// Bytes received when the window began.
    at_start: usize,
}

impl Pace {
    /// Begins with this many bytes already received.
    pub(crate) fn new(deadlines: &ClientDeadlines, received: usize) -> Self {
        let window = deadlines.head;
        let required_bytes = (deadlines.body_rate as u64).saturating_mul(window.as_secs().max(1));
        Self { window, required_bytes, at_start: received }
    }

    /// How long a window lasts.
    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// A window has ended. False if it brought too little.
    pub(crate) fn next_window(&mut self, received: usize) -> bool {
        let in_window = received.saturating_sub(self.at_start) as u64;
        self.at_start = received;
        in_window >= self.required_bytes
    }
}
