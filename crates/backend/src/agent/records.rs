//! What is remembered of an agent's turns: what it did by itself (B6), what it answered (B7), and what was said in its
//! sessions (E3). Losing all of it loses nothing that the client has.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_dialect::{ReplyContext, registry};
use toolgate_model::lineage::PrefixHash;
use toolgate_model::{JsonText, Message, Reply, TurnError, TurnRequest};

use super::plan::messages_dialect;

/// Keeps and finds records, each for one caller. Failures are logged by whoever keeps them, and count as nothing
/// found.
pub trait RecordStore: Send + Sync {
    /// Keeps a record; done when it is safe.
    fn save(&self, caller: &str, record: AgentRecord) -> BoxFuture<'static, ()>;

    /// The record of this very request, while its client may still be trying to get the answer.
    fn find(&self, caller: &str, request: PrefixHash) -> BoxFuture<'static, Option<AgentRecord>>;

    /// The records of turns that ended in these lineages.
    fn find_by_replies(&self, caller: &str, replies: Vec<PrefixHash>)
    -> BoxFuture<'static, Vec<AgentRecord>>;
}

/// What an agent did in one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// Which request it was.
    pub key: PrefixHash,
    /// The conversation with the reply; `None` while the turn is cut short.
    pub after: Option<PrefixHash>,
    /// The session it is in.
    pub session: String,
    /// What the agent did, for this module alone.
    pub steps: JsonText,
    /// The reply as the client got it; `None` while the turn is cut short.
    pub reply: Option<JsonText>,
}

/// The inside of [`AgentRecord::steps`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RecordedSteps {
    /// Messages of the program's own history for this turn, where they differ from what the client saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<Value>,
}

impl RecordedSteps {
    pub(super) fn read(steps: &JsonText) -> Self {
        serde_json::from_str(steps.as_str()).unwrap_or_default()
    }

    pub(super) fn write(&self) -> JsonText {
        serde_json::to_value(self)
            .map_or_else(|_| JsonText::empty_object(), |done| JsonText::from_value(&done))
    }
}

/// A reply as text.
pub(super) fn write_reply(reply: &Reply, request: &Arc<TurnRequest>) -> JsonText {
    let context =
        ReplyContext { request: Arc::clone(request), now: 0, fallback_id: String::new(), estimated_input: 0 };
    let written =
        registry::find("anthropic-messages").map(|dialect| dialect.client.write_reply(reply, &context).value);
    let text = written.and_then(|written| String::from_utf8(written).ok());
    text.and_then(|text| JsonText::parse(&text).ok()).unwrap_or_else(JsonText::empty_object)
}

/// A reply from its text.
pub(super) fn read_reply(text: &JsonText) -> Result<Reply, TurnError> {
    Ok(messages_dialect()?.read_reply(text.as_str().as_bytes())?.value)
}

/// Messages from the text of a conversation.
pub(super) fn read_messages(messages: &[Value]) -> Result<Vec<Message>, TurnError> {
    let body = json!({ "model": "any", "max_tokens": 1, "messages": messages }).to_string();
    let dialect = registry::find("anthropic-messages").map(|dialect| dialect.client);
    let read = dialect.map(|dialect| dialect.read_request(body.as_bytes())).transpose()?;
    Ok(read.map(|read| read.value.messages).unwrap_or_default())
}

/// Remembers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecords;

impl RecordStore for NoRecords {
    fn save(&self, _: &str, _: AgentRecord) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn find(&self, _: &str, _: PrefixHash) -> BoxFuture<'static, Option<AgentRecord>> {
        Box::pin(std::future::ready(None))
    }

    fn find_by_replies(&self, _: &str, _: Vec<PrefixHash>) -> BoxFuture<'static, Vec<AgentRecord>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}
