//! The transcripts of sessions (E3): each turn stores what it adds, so that a client can send only its new messages.
//!
//! A session has one transcript per system prompt. Some clients use one session id for everything, also for making a
//! title or a summary, and these must not mix with the main conversation (M5).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_dialect::registry;
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::{
    Block, CallId, ErrorKind, JsonText, Message, ToolResults, Translated, TurnError, TurnRequest,
};

use super::plan::TurnPlan;
use super::pool::ProcessPool;
use super::records::{AgentRecord, TranscriptPart};
use crate::turn::Turn;

/// The maximum size of a transcript.
const MAX_TRANSCRIPT_BYTES: usize = 16 * 1024 * 1024;

/// What a session adds to a request.
#[derive(Default)]
pub(super) struct SessionContext {
    /// The turn with the earlier messages; `None` if they change nothing.
    pub(super) whole: Option<Translated<Turn>>,
    /// The last turn of the session.
    last: Option<TurnKeys>,
}

/// Identifies a turn of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnKeys {
    /// The request as the client sent it.
    pub(super) sent: PrefixHash,
    /// The request with the earlier messages.
    pub(super) request: PrefixHash,
}

impl SessionContext {
    /// The whole request of the last turn, if the client sent the same for it as it does now.
    pub(super) fn request_sent_as(&self, sent: PrefixHash) -> Option<PrefixHash> {
        self.last.filter(|last| last.sent == sent).map(|last| last.request)
    }
}

/// Prepends the earlier turns of the session that the client names, and pairs its results with their calls.
pub(super) async fn with_earlier_turns(
    pool: &ProcessPool,
    turn: &Turn,
    plan: &TurnPlan,
) -> Result<SessionContext, TurnError> {
    let Some(session) = turn.session.named() else { return Ok(SessionContext::default()) };
    let mut request = TurnRequest::clone(&turn.request);
    let mut last = None;
    if !request.messages.iter().any(|message| matches!(message, Message::Assistant(_))) {
        match load(pool, turn, plan.transcript(session.to_owned(), plan.key)).await? {
            Some(earlier) => {
                last = earlier.last;
                earlier.prepend_to(&mut request);
            }
            None if has_only_results(&request) => return Err(unknown_session(session)),
            None => {}
        }
    }
    let dialect = registry::find(turn.dialect.name).ok_or_else(unreadable)?;
    let losses = dialect.client.pair(&mut request)?;
    let changed = request != *turn.request;
    let value = Turn { request: Arc::new(request), ..turn.clone() };
    Ok(SessionContext { whole: changed.then_some(Translated { value, losses }), last })
}

/// True if a conversation begins with results, so the calls are missing.
fn has_only_results(request: &TurnRequest) -> bool {
    let mut messages = request.messages.iter().filter(|message| !matches!(message, Message::System(_)));
    matches!(messages.next(), Some(Message::ToolResults(_)))
}

/// The transcript of one session under one system prompt, up to the request of a turn.
#[derive(Clone, Debug)]
pub(super) struct SessionTranscript {
    pub(super) agent: Arc<str>,
    /// The caller and the agent.
    pub(super) scope: String,
    pub(super) session: String,
    /// As Messages API JSON.
    pub(super) system: Value,
    /// As Messages API JSON.
    pub(super) messages: Vec<Value>,
    /// Identifies the request as the client sent it.
    pub(super) sent: PrefixHash,
    /// The last reply in it, if the turn that gave it is on record in the same transcript.
    pub(super) continues: Option<PrefixHash>,
}

/// What is stored of one turn. The serialised names are part of the store's format.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPart {
    /// The messages since the reply before.
    Messages {
        /// Only in the first turn.
        #[serde(default)]
        system: Value,
        messages: Vec<Value>,
        /// The hash of the request as the client sent it.
        sent: String,
    },
    /// They were too long to be stored.
    TooLong,
}

impl SessionTranscript {
    /// The same, after a reply that is on record. A turn of another session or with other instructions does not count.
    pub(super) fn after(mut self, last_reply: Option<&AgentRecord>) -> Self {
        let is_same = |record: &&AgentRecord| {
            record.session == self.session
                && record.part.as_ref().is_some_and(|part| part.thread == self.thread())
        };
        self.continues = last_reply.filter(is_same).and_then(|record| record.after);
        self
    }

    /// What the turn adds to the transcript.
    pub(super) fn into_part(mut self) -> TranscriptPart {
        let (thread, continues) = (self.thread(), self.continues);
        if continues.is_some() {
            let is_reply = |message: &Value| message["role"] == "assistant";
            let new = self.messages.iter().rposition(is_reply).map_or(0, |last| last + 1);
            self.messages.drain(..new);
            self.system = Value::Null;
        }
        let sent = self.sent.to_string();
        let part = StoredPart::Messages { system: self.system, messages: self.messages, sent };
        let text = |part: &StoredPart| serde_json::to_value(part).map(|part| JsonText::from_value(&part));
        let whole = text(&part).ok().filter(|text| text.as_str().len() <= MAX_TRANSCRIPT_BYTES);
        let messages =
            whole.or_else(|| text(&StoredPart::TooLong).ok()).unwrap_or_else(JsonText::empty_object);
        TranscriptPart { agent: self.agent, thread, continues, messages }
    }

    fn thread(&self) -> PrefixHash {
        let instructions = self.instructions();
        Lineage::of(&format!("thread\n{}\n{instructions}", self.scope), &[]).whole()
    }

    fn instructions(&self) -> String {
        let texts = self.system.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

async fn load(
    pool: &ProcessPool,
    turn: &Turn,
    transcript: SessionTranscript,
) -> Result<Option<EarlierTurns>, TurnError> {
    let (records, session) = (pool.records(), transcript.session.as_str());
    let mut turns = records.find_thread(&turn.caller, session, transcript.thread()).await;
    if turns.is_empty() && transcript.instructions().is_empty() {
        // A client may leave its instructions out too.
        let last = records.find_last_thread(&turn.caller, session, &transcript.agent).await;
        if let Some(thread) = last {
            turns = records.find_thread(&turn.caller, session, thread).await;
        }
    }
    EarlierTurns::read(&turns)
}

/// The earlier turns of a session.
struct EarlierTurns {
    request: TurnRequest,
    last: Option<TurnKeys>,
}

impl EarlierTurns {
    /// Joins the parts of a transcript; `None` if its beginning is missing.
    fn read(turns: &[AgentRecord]) -> Result<Option<Self>, TurnError> {
        let (mut instructions, mut conversation, mut last, mut bytes) = (Value::Null, Vec::new(), None, 0);
        for turn in turns {
            let (Some(part), Some(reply)) = (&turn.part, &turn.reply) else { return Err(too_long()) };
            bytes += part.messages.as_str().len() + reply.as_str().len();
            let stored = serde_json::from_str(part.messages.as_str()).map_err(|_| unreadable())?;
            let StoredPart::Messages { system, messages, sent } = stored else { return Err(too_long()) };
            match (part.continues, conversation.is_empty()) {
                (None, true) => instructions = system,
                (Some(_), false) => {}
                (None, false) | (Some(_), true) => return Ok(None),
            }
            conversation.extend(messages);
            conversation.push(json!({ "role": "assistant", "content": reply.to_value()["content"] }));
            last = PrefixHash::from_hex(&sent).map(|sent| TurnKeys { sent, request: turn.key });
        }
        if turns.is_empty() {
            return Ok(None);
        }
        if bytes > MAX_TRANSCRIPT_BYTES {
            return Err(too_long());
        }
        let body =
            json!({ "model": "any", "max_tokens": 1, "system": instructions, "messages": conversation });
        let dialect = registry::find("anthropic-messages").ok_or_else(unreadable)?;
        let request = dialect.client.read_request(body.to_string().as_bytes())?.value;
        Ok(Some(Self { request, last }))
    }

    fn prepend_to(self, request: &mut TurnRequest) {
        let is_instruction = |message: &&Message| matches!(message, Message::System(_));
        let given = request.messages.iter().take_while(is_instruction).count();
        let new = request.messages.split_off(given);
        let mut earlier = self.request.messages;
        if let Some(Message::ToolResults(results)) = new.first() {
            // Results follow their calls. If the calls already have results, the client is retrying or going back.
            let calls = earlier.iter().rposition(|message| has_call_answered_by(message, results));
            earlier.truncate(calls.map_or(earlier.len(), |at| at + 1));
        }
        request.messages.extend(earlier.into_iter().chain(new));
        if given == 0 && request.system.is_empty() {
            request.system = self.request.system;
        }
    }
}

fn has_call_answered_by(message: &Message, results: &ToolResults) -> bool {
    let Message::Assistant(assistant) = message else { return false };
    let is_answered = |id: &CallId| results.results.iter().any(|result| result.call == *id);
    assistant.content.iter().any(|block| matches!(block, Block::ToolCall(call) if is_answered(&call.id)))
}

/// E7
fn unknown_session(session: &str) -> TurnError {
    let mut error = TurnError::new(
        ErrorKind::NotFound,
        format!(
            "x-session-id: no conversation with these instructions is stored for the session `{session}`, so the calls \
             of these results are unknown; send the whole conversation"
        ),
    );
    error.code = Some("session_not_found".to_owned());
    error
}

fn too_long() -> TurnError {
    TurnError::invalid_param(
        "messages",
        "messages: the transcript of this session is too long to be stored: send the whole conversation",
    )
}

fn unreadable() -> TurnError {
    TurnError::new(ErrorKind::Internal, "reading the session's transcript failed; please report this bug")
}
