//! The price of a turn, in `usage`. No vendor defines such a field, so every dialect uses this one.

use serde_json::Value;
use toolgate_model::Fields;

const COST: &str = "cost_usd";

/// Removes the price from the fields of `usage`.
pub(crate) fn take(usage: &mut Fields) -> Option<f64> {
    let cost = usage.get(COST)?.as_f64()?;
    usage.shift_remove(COST);
    Some(cost)
}

/// Adds the price to the fields of `usage`, if it is known.
pub(crate) fn put(cost: Option<f64>, usage: &mut Fields) {
    if let Some(cost) = cost {
        usage.insert(COST.to_owned(), Value::from(cost));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolgate_model::{Finish, ModelName, Reply, TurnRequest, Usage};

    use crate::{ReplyContext, registry};

    #[test]
    fn every_dialect_writes_and_reads_the_price() {
        let usage = Usage { input: 3, output: 4, cost_usd: Some(0.0125), ..Usage::default() };
        let finish = Finish { usage: Some(usage), ..Finish::default() };
        let reply = Reply { finish, ..Reply::default() };
        let request = Arc::new(TurnRequest::new(ModelName::new("m"), Vec::new()));
        for name in ["anthropic-messages", "openai-chat", "openai-responses"] {
            let dialect = registry::find(name).expect("a dialect");
            let context = ReplyContext {
                request: Arc::clone(&request),
                now: 0,
                fallback_id: "id".to_owned(),
                estimated_input: 0,
            };
            let written = dialect.client.write_reply(&reply, &context);
            assert!(written.losses.is_empty(), "{:?}", written.losses);
            let read = dialect.upstream.read_reply(&written.value).expect("a reply").value;
            let read = read.finish.usage.expect("usage");
            assert_eq!((read.cost_usd, read.input, read.output), (Some(0.0125), 3, 4));
        }
    }
}
