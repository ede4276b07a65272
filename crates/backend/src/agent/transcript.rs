//! The transcripts of named sessions (E3): they are stored, so that a client can send only its new messages.
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
use super::records::AgentRecord;
use super::turn_job::CallerRecord;
use crate::turn::Turn;

/// The maximum size of a stored transcript.
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

/// The transcript of one session under one system prompt.
#[derive(Clone, Debug)]
pub(super) struct SessionTranscript {
    /// The caller and the agent.
    pub(super) scope: String,
    pub(super) session: String,
    /// As Messages API JSON.
    pub(super) system: Value,
    /// As Messages API JSON.
    pub(super) messages: Vec<Value>,
    /// The turn that the last message begins.
    pub(super) last: TurnKeys,
}

/// What is stored under a key. The serialised names are part of the store's format.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredTranscript {
    /// The transcript.
    #[serde(rename = "said")]
    Messages {
        system: Value,
        #[serde(rename = "said")]
        messages: Vec<Value>,
        /// The hashes of [`TurnKeys`].
        #[serde(default)]
        last: Option<(String, String)>,
    },
    /// The key of the last transcript that has instructions: a client may leave those out too.
    At(String),
    /// The transcript was too long to be stored.
    TooLong,
}

impl SessionTranscript {
    /// The records to save when the agent has replied.
    pub(super) fn into_records(mut self, caller: &Arc<str>, reply: &Value) -> Vec<CallerRecord> {
        let (key, bare_key) = (self.key(), self.key_without_instructions());
        let is_first = self.messages.iter().all(|message| message["role"] != "assistant");
        self.messages.push(json!({ "role": "assistant", "content": reply }));
        let mut records = vec![record(
            caller,
            key,
            &StoredTranscript::Messages {
                system: self.system,
                messages: self.messages,
                last: Some((self.last.sent.to_string(), self.last.request.to_string())),
            },
        )];
        if is_first && key != bare_key {
            records.push(record(caller, bare_key, &StoredTranscript::At(key.to_string())));
        }
        records
    }

    fn key(&self) -> PrefixHash {
        let texts = self.system.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        key(&self.scope, &self.session, &texts.collect::<Vec<_>>().join("\n"))
    }

    fn key_without_instructions(&self) -> PrefixHash {
        key(&self.scope, &self.session, "")
    }
}

fn key(scope: &str, session: &str, instructions: &str) -> PrefixHash {
    Lineage::of(&format!("session\n{scope}\n{session}\n{instructions}"), &[]).whole()
}

fn record(caller: &Arc<str>, key: PrefixHash, entry: &StoredTranscript) -> CallerRecord {
    let text =
        |entry: &StoredTranscript| serde_json::to_value(entry).map(|entry| JsonText::from_value(&entry));
    let whole = text(entry).ok().filter(|text| text.as_str().len() <= MAX_TRANSCRIPT_BYTES);
    let steps =
        whole.or_else(|| text(&StoredTranscript::TooLong).ok()).unwrap_or_else(JsonText::empty_object);
    CallerRecord { caller: Arc::clone(caller), record: AgentRecord::note(key, steps) }
}

async fn load(
    pool: &ProcessPool,
    turn: &Turn,
    transcript: SessionTranscript,
) -> Result<Option<EarlierTurns>, TurnError> {
    let entry = match find(pool, turn, transcript.key()).await {
        Some(StoredTranscript::At(key)) => match PrefixHash::from_hex(&key) {
            Some(key) => find(pool, turn, key).await,
            None => None,
        },
        found => found,
    };
    match entry {
        Some(StoredTranscript::Messages { system, messages, last }) => {
            let last = last.and_then(|(sent, request)| {
                Some(TurnKeys {
                    sent: PrefixHash::from_hex(&sent)?,
                    request: PrefixHash::from_hex(&request)?,
                })
            });
            Ok(Some(EarlierTurns { request: read(&system, &messages)?, last }))
        }
        Some(StoredTranscript::TooLong) => Err(TurnError::invalid_param(
            "messages",
            "messages: the transcript of this session is too long to be stored: send the whole conversation",
        )),
        Some(StoredTranscript::At(_)) | None => Ok(None),
    }
}

async fn find(pool: &ProcessPool, turn: &Turn, key: PrefixHash) -> Option<StoredTranscript> {
    let record = pool.records().find_by_replies(&turn.caller, vec![key]).await.into_iter().next()?;
    serde_json::from_str(record.steps.as_str()).ok()
}

/// The earlier turns of a session.
struct EarlierTurns {
    request: TurnRequest,
    last: Option<TurnKeys>,
}

fn read(system: &Value, messages: &[Value]) -> Result<TurnRequest, TurnError> {
    let body = json!({ "model": "any", "max_tokens": 1, "system": system, "messages": messages }).to_string();
    let dialect = registry::find("anthropic-messages").ok_or_else(unreadable)?;
    Ok(dialect.client.read_request(body.as_bytes())?.value)
}

impl EarlierTurns {
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

fn unreadable() -> TurnError {
    TurnError::new(ErrorKind::Internal, "reading the session's transcript failed; please report this bug")
}
