//! Pings: before the first event and between events, a client sees a ping that it can ignore, and the reply still starts
//! once (T19).

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use toolgate_conformance::context;
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
    /// The events of a ping, the start of the reply and another ping; a comment is not an event.
    expect: Vec<Value>,
    /// The bytes of a ping, if it is a comment.
    comment: Option<String>,
}

/// Runs one fixture.
pub(crate) fn check(path: &Path) -> datatest_stable::Result<()> {
    let case: PingCase = load(path)?;
    let request = Arc::new(TurnRequest::new("some-model", Vec::new()));
    let mut writer = dialect(&case.client)?.client.reply_writer(context(&request));
    let (mut early, mut start, mut late) = (Vec::new(), Vec::new(), Vec::new());
    writer.ping(&mut early);
    writer.event(TurnEvent::Started(ReplyHead::default()), &mut start);
    writer.ping(&mut late);
    if let Some(comment) = &case.comment {
        for ping in [&early, &late] {
            let text = std::str::from_utf8(ping)?;
            if text != comment {
                return Err(format!("the ping is {text:?}").into());
            }
        }
    }
    Ok(frames::check(&case.expect, &[early, start, late].concat())?)
}
