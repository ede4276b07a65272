//! Token counts. A stream sends all of them at its start, and those that changed at its end.

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{Fields, Losses, Usage};

use super::ID;
use super::wire::{UsageIn, extras};
use crate::cost;

impl UsageIn {
    /// Replaces the counts that `later` names. Counts are totals, not increments.
    pub(super) fn update(&mut self, later: Self) {
        let Self {
            input_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            output_tokens,
            output_tokens_details,
            extra,
        } = later;
        self.input_tokens = input_tokens.or(self.input_tokens);
        self.cache_read_input_tokens = cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens = output_tokens.or(self.output_tokens);
        self.output_tokens_details = output_tokens_details.or(self.output_tokens_details.take());
        self.extra.extend(extra.into_iter().filter(|(_, value)| !value.is_null()));
    }

    /// Converts to the model's counts.
    pub(super) fn into_usage(self) -> Usage {
        let mut extra = self.extra;
        let mut details = self.output_tokens_details.unwrap_or_default();
        let reasoning = details.get("thinking_tokens").and_then(Value::as_u64);
        if reasoning.is_some() {
            details.shift_remove("thinking_tokens");
        }
        if !details.is_empty() {
            extra.insert("output_tokens_details".to_owned(), Value::Object(details));
        }
        Usage {
            cost_usd: cost::take(&mut extra),
            input: self.input_tokens.unwrap_or_default(),
            cache_read: self.cache_read_input_tokens.unwrap_or_default(),
            cache_write: self.cache_creation_input_tokens.unwrap_or_default(),
            output: self.output_tokens.unwrap_or_default(),
            reasoning,
            // Other dialects count the same tokens, only in less detail.
            extras: extras(extra).all_envelope_fields(),
        }
    }
}

/// Token counts to write.
#[derive(Serialize)]
pub(super) struct UsageOut {
    input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    output_tokens_details: Fields,
    #[serde(flatten)]
    extra: Fields,
}

impl UsageOut {
    /// The host's counts.
    pub(super) fn of(usage: &Usage, losses: &mut Losses) -> Self {
        let mut extra = usage.extras.write(ID, "usage", losses);
        let mut details = match extra.shift_remove("output_tokens_details") {
            Some(Value::Object(details)) => details,
            _ => Fields::new(),
        };
        if let Some(reasoning) = usage.reasoning {
            details.insert("thinking_tokens".to_owned(), Value::from(reasoning));
        }
        // A host that reports only input and output tokens has no cache.
        let with_cache = usage.cache_read > 0 || usage.cache_write > 0 || !extra.is_empty();
        cost::put(usage.cost_usd, &mut extra);
        Self {
            input_tokens: usage.input,
            cache_creation_input_tokens: with_cache.then_some(usage.cache_write),
            cache_read_input_tokens: with_cache.then_some(usage.cache_read),
            output_tokens: usage.output,
            output_tokens_details: details,
            extra,
        }
    }

    /// The estimate for a host that sent no counts, reported as such.
    pub(super) fn uncounted(input: u64, losses: &mut Losses) -> Self {
        losses.add("usage", "the host sent no counts: the input is estimated");
        Self::estimate(input)
    }

    /// The estimate before the host sends its counts (T18).
    pub(super) fn estimate(input: u64) -> Self {
        Self {
            input_tokens: input,
            cache_creation_input_tokens: None,
            cache_read_input_tokens: None,
            output_tokens: 0,
            output_tokens_details: Fields::new(),
            extra: Fields::new(),
        }
    }
}
