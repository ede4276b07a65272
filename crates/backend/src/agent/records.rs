//! The records of an agent's turns: its hidden steps (B6), its replies (B7), and the transcripts of its sessions (E3).
//! They only add to what the client has: losing them all loses nothing of the client's history.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_dialect::{ReplyContext, registry};
use toolgate_model::lineage::PrefixHash;
use toolgate_model::{JsonText, Message, Reply, TurnError, TurnRequest};
use uuid::Uuid;

use super::plan::messages_dialect;

/// Saves and finds records, separately for each caller. The implementation logs failures and treats them as "nothing
/// found".
pub trait AgentRecordStore: Send + Sync {
    /// Saves a record, replacing an earlier one of the same run; resolves when it is durable. A reply that was marked as
    /// delivered stays so.
    fn save(&self, caller: &str, record: AgentRecord) -> BoxFuture<'static, ()>;

    /// The newest record of exactly this request, as long as the client may still be retrying it.
    fn find(&self, caller: &str, request: PrefixHash) -> BoxFuture<'static, Option<AgentRecord>>;

    /// The records of the turns that ended with these replies.
    fn find_by_replies(&self, caller: &str, replies: Vec<PrefixHash>)
    -> BoxFuture<'static, Vec<AgentRecord>>;

    /// The turns that led to the last complete turn of this thread, oldest first.
    fn find_thread(
        &self,
        caller: &str,
        session: &str,
        thread: PrefixHash,
    ) -> BoxFuture<'static, Vec<AgentRecord>>;

    /// The thread of this agent that began last in the session.
    fn find_last_thread(
        &self,
        caller: &str,
        session: &str,
        agent: &str,
    ) -> BoxFuture<'static, Option<PrefixHash>>;

    /// The client has the whole reply of this run; resolves when that is durable.
    fn mark_delivered(&self, caller: &str, run: Uuid) -> BoxFuture<'static, ()>;
}

/// What an agent did in one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// The run: an equal request may run several times, and an interrupted run continues with the next request.
    pub run: Uuid,
    /// Identifies the request.
    pub key: PrefixHash,
    /// The conversation up to and including the reply; `None` while the turn is unfinished.
    pub after: Option<PrefixHash>,
    /// The session of the turn.
    pub session: String,
    /// What the turn adds to the transcript of its session; `None` while it is unfinished.
    pub part: Option<TranscriptPart>,
    /// The agent's steps, in this module's private format.
    pub steps: JsonText,
    /// The reply as the client got it; `None` while the turn is unfinished.
    pub reply: Option<JsonText>,
    /// Whether the client got the whole reply.
    pub delivery: ReplyDelivery,
}

/// What a turn adds to the transcript of its session.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptPart {
    /// The agent.
    pub agent: Arc<str>,
    /// The hash of the agent and the instructions: a session has one transcript for each.
    pub thread: PrefixHash,
    /// The reply that the turn continues; `None` if `messages` are the conversation from its beginning.
    pub continues: Option<PrefixHash>,
    /// The messages since then, in the private format of the transcripts.
    pub messages: JsonText,
}

/// Whether a client got a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyDelivery {
    /// Not to its last byte, as far as is known.
    #[default]
    Incomplete,
    /// The last byte was written to its connection.
    Complete,
}

impl AgentRecord {
    /// A run that has done nothing yet.
    pub(super) fn begun(run: Uuid, key: PrefixHash, session: String) -> Self {
        let (steps, delivery) = (write_steps(Vec::new()), ReplyDelivery::Incomplete);
        Self { run, key, after: None, session, part: None, steps, reply: None, delivery }
    }

    /// A note of the agent's back end under a key, which is no turn. A later note with this key replaces it.
    pub(super) fn note(key: PrefixHash, note: JsonText) -> Self {
        let mut run = [0; 16];
        run.copy_from_slice(&key.as_bytes()[..16]);
        Self {
            run: Uuid::from_bytes(run),
            key,
            after: Some(key),
            // A session id of its own, so that this record does not count as a turn of a session.
            session: key.to_string(),
            part: None,
            steps: note,
            reply: None,
            delivery: ReplyDelivery::Incomplete,
        }
    }
}

/// The content of [`AgentRecord::steps`].
#[derive(Default, Serialize, Deserialize)]
struct RecordedSteps {
    /// The program's messages in this turn, if they differ from what the client saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Value>,
}

/// Writes the program's messages of a turn.
pub(super) fn write_steps(steps: Vec<Value>) -> JsonText {
    serde_json::to_value(RecordedSteps { steps })
        .map_or_else(|_| JsonText::empty_object(), |steps| JsonText::from_value(&steps))
}

/// Reads what [`write_steps`] wrote.
pub(super) fn read_steps(text: &JsonText) -> Vec<Value> {
    serde_json::from_str::<RecordedSteps>(text.as_str()).unwrap_or_default().steps
}

/// Writes a reply as Messages API JSON.
pub(super) fn write_reply(reply: &Reply, request: &Arc<TurnRequest>) -> JsonText {
    let context =
        ReplyContext { request: Arc::clone(request), now: 0, fallback_id: String::new(), estimated_input: 0 };
    let written =
        registry::find("anthropic-messages").map(|dialect| dialect.client.write_reply(reply, &context).value);
    let text = written.and_then(|written| String::from_utf8(written).ok());
    text.and_then(|text| JsonText::parse(&text).ok()).unwrap_or_else(JsonText::empty_object)
}

/// Reads what [`write_reply`] wrote.
pub(super) fn read_reply(text: &JsonText) -> Result<Reply, TurnError> {
    Ok(messages_dialect()?.read_reply(text.as_str().as_bytes())?.value)
}

/// Reads messages from Messages API JSON.
pub(super) fn read_messages(messages: &[Value]) -> Result<Vec<Message>, TurnError> {
    let body = json!({ "model": "any", "max_tokens": 1, "messages": messages }).to_string();
    let dialect = registry::find("anthropic-messages").map(|dialect| dialect.client);
    let read = dialect.map(|dialect| dialect.read_request(body.as_bytes())).transpose()?;
    Ok(read.map(|read| read.value.messages).unwrap_or_default())
}

/// Saves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecords;

impl AgentRecordStore for NoRecords {
    fn save(&self, _: &str, _: AgentRecord) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn find(&self, _: &str, _: PrefixHash) -> BoxFuture<'static, Option<AgentRecord>> {
        Box::pin(std::future::ready(None))
    }

    fn find_by_replies(&self, _: &str, _: Vec<PrefixHash>) -> BoxFuture<'static, Vec<AgentRecord>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn find_thread(&self, _: &str, _: &str, _: PrefixHash) -> BoxFuture<'static, Vec<AgentRecord>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn find_last_thread(&self, _: &str, _: &str, _: &str) -> BoxFuture<'static, Option<PrefixHash>> {
        Box::pin(std::future::ready(None))
    }

    fn mark_delivered(&self, _: &str, _: Uuid) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
