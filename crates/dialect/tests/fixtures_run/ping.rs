//! Signs of life: before the first event and between events, a client sees a ping it can ignore and nothing else (T19).

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use toolgate_dialect::conformance::context;
use toolgate_model::{ReplyHead, TurnEvent, TurnRequest};

use super::{dialect, frames, load};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PingCase {
    #[serde(rename = "case")]
    _case: String,
    #[serde(rename = "why")]
    _why: String,
    client: String,
    /// The events a client sees; a comment is none.
    expect: Vec<Value>,
    /// The bytes, where they are fixed.
    expect_text: Option<String>,
}

/// Runs one fixture.
pub fn check(path: &Path) -> datatest_stable::Result<()> {
    let case: PingCase = load(path)?;
    let request = Arc::new(TurnRequest::new("some-model", Vec::new()));
    let mut writer = dialect(&case.client)?.client.reply_writer(context(&request));
    let mut before_the_first_event = Vec::new();
    writer.ping(&mut before_the_first_event);
    writer.event(TurnEvent::Started(ReplyHead::default()), &mut Vec::new());
    let mut between_events = Vec::new();
    writer.ping(&mut between_events);
    for ping in [before_the_first_event, between_events] {
        frames::check(&case.expect, &ping)?;
        let text = String::from_utf8(ping)?;
        if case.expect_text.as_ref().is_some_and(|expect| *expect != text) {
            return Err(format!("the ping is {text:?}").into());
        }
    }
    Ok(())
}
