//! Token counts in fields that add up, so nobody has to remember which host includes what.

use crate::extras::Extras;

/// What one turn cost. The four input and output counts are disjoint: their sum is the total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Input tokens that no cache served or stored.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// How many of the output tokens were reasoning, where the host says so.
    pub reasoning: Option<u64>,
    /// Figures only one dialect knows.
    pub extras: Extras,
}

impl Usage {
    /// All input tokens, cached or not: what OpenAI calls `prompt_tokens`.
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.total_input().saturating_add(self.output)
    }

    /// Builds from a host that counts cached tokens inside its input figure.
    pub fn from_inclusive(input: u64, cache_read: u64, output: u64) -> Self {
        Self { input: input.saturating_sub(cache_read), cache_read, output, ..Self::default() }
    }
}
