//! Token counts in fields that add up, so nobody has to remember which host includes what.

use crate::extras::Extras;

/// The token counts of one turn. The four input and output counts are disjoint: their sum is the total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// How many of the output tokens were reasoning, if the host states it.
    pub reasoning: Option<u64>,
    /// The price in US dollars, if known.
    pub cost_usd: Option<f64>,
    /// Fields of its own dialect.
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

    /// The sum, for a turn that consists of several replies. Extras do not add up, so those of `self` are kept.
    #[must_use]
    pub fn plus(self, more: &Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_write: self.cache_write.saturating_add(more.cache_write),
            output: self.output.saturating_add(more.output),
            reasoning: sum(self.reasoning, more.reasoning, u64::saturating_add),
            cost_usd: sum(self.cost_usd, more.cost_usd, std::ops::Add::add),
            extras: self.extras,
        }
    }

    /// The counts of a host that includes cached tokens in its input count.
    pub fn from_inclusive(input: u64, cache_read: u64, output: u64) -> Self {
        Self { input: input.saturating_sub(cache_read), cache_read, output, ..Self::default() }
    }
}

/// An unknown count is zero, unless both are unknown.
fn sum<N>(one: Option<N>, other: Option<N>, add: impl FnOnce(N, N) -> N) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_a_count_unknown_on_both_sides_stays_unknown() {
        let one = Usage { input: u64::MAX, output: 1, reasoning: Some(1), ..Usage::default() };
        let other = Usage { input: 1, output: 2, cost_usd: Some(0.5), ..Usage::default() };
        let both = one.plus(&other);
        assert_eq!((both.input, both.output, both.reasoning), (u64::MAX, 3, Some(1)));
        assert_eq!((both.cost_usd, other.clone().plus(&other).cost_usd), (Some(0.5), Some(1.0)));
        assert_eq!(other.clone().plus(&other).reasoning, None);
    }
}
