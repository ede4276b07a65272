//! Token counts. The API includes cached tokens in `input_tokens`; the model counts them separately.

use serde_json::{Value, json};
use toolgate_model::{Extras, Fields, Losses, Usage};

use super::ID;
use super::wire::UsageBody;
use crate::cost;

const INPUT_DETAILS: &str = "input_tokens_details";
const OUTPUT_DETAILS: &str = "output_tokens_details";
const CACHED: &str = "cached_tokens";
const CACHE_WRITE: &str = "cache_write_tokens";
const REASONING: &str = "reasoning_tokens";

/// Reads `usage`.
pub(super) fn read(body: UsageBody) -> Usage {
    let mut input_details = body.input_tokens_details.unwrap_or_default();
    let mut output_details = body.output_tokens_details.unwrap_or_default();
    let stated = take(&mut input_details, CACHED);
    let cache_read = stated.min(body.input_tokens);
    // Some hosts report more cached tokens than input tokens; the input's count stays the total.
    if stated > cache_read {
        input_details.insert(CACHED.to_owned(), Value::from(stated));
    }
    // An explicit zero stays among the unknown fields: not every host sends it.
    let cache_write = input_details.get(CACHE_WRITE).and_then(Value::as_u64).unwrap_or_default();
    if cache_write > 0 {
        input_details.shift_remove(CACHE_WRITE);
    }
    let reasoning = output_details.shift_remove(REASONING).and_then(|count| count.as_u64());
    let mut extra = body.extra;
    let sum = body.input_tokens.saturating_add(body.output_tokens);
    if let Some(total) = body.total_tokens.filter(|total| *total != sum) {
        extra.insert("total_tokens".to_owned(), Value::from(total));
    }
    for (name, details) in [(INPUT_DETAILS, input_details), (OUTPUT_DETAILS, output_details)] {
        if !details.is_empty() {
            extra.insert(name.to_owned(), Value::Object(details));
        }
    }
    let has_only_zero = extra.get(INPUT_DETAILS).is_some_and(|details| *details == json!({ CACHE_WRITE: 0 }));
    let cost_usd = cost::take(&mut extra);
    let extras = Extras::marked(ID, extra);
    Usage {
        input: body.input_tokens.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: body.output_tokens,
        reasoning,
        cost_usd,
        extras: if has_only_zero { extras.envelope_fields(&[INPUT_DETAILS]) } else { extras },
    }
}

/// Writes `usage`.
pub(super) fn write(usage: &Usage, losses: &mut Losses) -> Value {
    let mut extra = usage.extras.write(ID, "usage", losses);
    let mut input_details = Fields::new();
    input_details.insert(CACHED.to_owned(), Value::from(usage.cache_read));
    if usage.cache_write > 0 || usage.extras.known_to(ID).is_none() {
        input_details.insert(CACHE_WRITE.to_owned(), Value::from(usage.cache_write));
    }
    let mut output_details = Fields::new();
    output_details.insert(REASONING.to_owned(), Value::from(usage.reasoning.unwrap_or_default()));
    for (name, details) in [(INPUT_DETAILS, &mut input_details), (OUTPUT_DETAILS, &mut output_details)] {
        if let Some(Value::Object(more)) = extra.shift_remove(name) {
            details.extend(more);
        }
    }
    let mut fields = Fields::new();
    fields.insert("input_tokens".to_owned(), Value::from(usage.total_input()));
    fields.insert(INPUT_DETAILS.to_owned(), Value::Object(input_details));
    fields.insert("output_tokens".to_owned(), json!(usage.output));
    fields.insert(OUTPUT_DETAILS.to_owned(), Value::Object(output_details));
    fields.insert("total_tokens".to_owned(), Value::from(usage.total()));
    fields.extend(extra);
    cost::put(usage.cost_usd, &mut fields);
    Value::Object(fields)
}

fn take(details: &mut Fields, name: &str) -> u64 {
    details.shift_remove(name).and_then(|count| count.as_u64()).unwrap_or_default()
}
