//! Token counts. This dialect counts cached tokens inside `prompt_tokens`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_model::{Fields, Losses, Usage};

use super::extras::{extras, take_object};
use super::{ID, marks};
use crate::cost;

/// `usage` to read.
#[derive(Deserialize)]
pub(super) struct UsageIn {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<Fields>,
    completion_tokens_details: Option<Fields>,
    #[serde(flatten)]
    extra: Fields,
}

/// Fields for cached tokens at hosts without `prompt_tokens_details`. They are kept as unknown fields too.
const OTHER_CACHE_FIELDS: [&str; 2] = ["prompt_cache_hit_tokens", "cached_tokens"];

impl UsageIn {
    /// Converts to the model's disjoint counts.
    pub(super) fn into_usage(self) -> Usage {
        let Self {
            prompt_tokens,
            completion_tokens,
            total_tokens,
            prompt_tokens_details,
            completion_tokens_details,
            mut extra,
        } = self;
        let mut prompt = prompt_tokens_details.unwrap_or_default();
        let mut completion = completion_tokens_details.unwrap_or_default();
        let stated = take_count(&mut prompt, "cached_tokens");
        let elsewhere = || OTHER_CACHE_FIELDS.iter().find_map(|name| extra.get(*name)?.as_u64());
        let cached = stated.or_else(elsewhere).unwrap_or_default();
        let all_input = prompt_tokens.unwrap_or_default();
        // Some hosts report more cached tokens than prompt tokens; the prompt's count stays the total.
        if let Some(stated) = stated.filter(|stated| *stated > all_input) {
            prompt.insert("cached_tokens".to_owned(), Value::from(stated));
        }
        let cached = cached.min(all_input);
        let wrote_some =
            prompt.get("cache_write_tokens").and_then(Value::as_u64).is_some_and(|count| count > 0);
        let cache_write =
            wrote_some.then(|| take_count(&mut prompt, "cache_write_tokens")).flatten().unwrap_or_default();
        let output = completion_tokens.unwrap_or_default();
        let mut usage = Usage::from_inclusive(all_input, cached, output);
        usage.cache_write = cache_write.min(usage.input);
        usage.input -= usage.cache_write;
        usage.reasoning = take_count(&mut completion, "reasoning_tokens");
        for (name, details) in [("prompt_tokens_details", prompt), ("completion_tokens_details", completion)]
        {
            if !details.is_empty() {
                extra.insert(name.to_owned(), Value::Object(details));
            }
        }
        // Some hosts count reasoning in the total only.
        if let Some(total) = total_tokens.filter(|total| *total != usage.total()) {
            extra.insert("total_tokens".to_owned(), Value::from(total));
        }
        usage.cost_usd = cost::take(&mut extra);
        // Other dialects count the same tokens, only in less detail.
        usage.extras = extras(extra).all_envelope_fields();
        if stated.is_none() {
            usage.extras.mark(ID, marks::NO_CACHED_TOKENS);
        }
        usage
    }
}

/// Reads `usage`. Counts that cannot be read are ignored: they are no reason to fail the reply.
pub(super) fn from_text(usage: &str) -> Option<Usage> {
    serde_json::from_str::<UsageIn>(usage).ok().map(UsageIn::into_usage)
}

/// The same for a parsed value.
pub(super) fn from_value(usage: &Value) -> Option<Usage> {
    UsageIn::deserialize(usage).ok().map(UsageIn::into_usage)
}

fn take_count(details: &mut Fields, name: &str) -> Option<u64> {
    let count = details.get(name)?.as_u64()?;
    details.shift_remove(name);
    Some(count)
}

/// `usage` to write.
#[derive(Serialize)]
pub(super) struct UsageOut {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: Value,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    prompt_tokens_details: Fields,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    completion_tokens_details: Fields,
    #[serde(flatten)]
    extra: Fields,
}

impl UsageOut {
    /// Converts from the model's counts.
    pub(super) fn new(usage: &Usage, losses: &mut Losses) -> Self {
        let mut extra = usage.extras.write(ID, "usage", losses);
        let mut prompt = take_object(&mut extra, "prompt_tokens_details");
        let mut completion = take_object(&mut extra, "completion_tokens_details");
        if !usage.extras.is_marked(ID, marks::NO_CACHED_TOKENS) && !prompt.contains_key("cached_tokens") {
            prompt.insert("cached_tokens".to_owned(), Value::from(usage.cache_read));
        }
        if usage.cache_write > 0 {
            prompt.insert("cache_write_tokens".to_owned(), Value::from(usage.cache_write));
        }
        if let Some(reasoning) = usage.reasoning {
            completion.insert("reasoning_tokens".to_owned(), Value::from(reasoning));
        }
        cost::put(usage.cost_usd, &mut extra);
        Self {
            prompt_tokens: usage.total_input(),
            completion_tokens: usage.output,
            total_tokens: extra.shift_remove("total_tokens").unwrap_or_else(|| Value::from(usage.total())),
            prompt_tokens_details: prompt,
            completion_tokens_details: completion,
            extra,
        }
    }
}
