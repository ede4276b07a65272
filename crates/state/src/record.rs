//! Records of agent turns: the agent's own steps, which the client never sees (B6), and the reply, so that a repeated
//! request is answered from the record instead of running the agent again (B7).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use thiserror::Error;
use toolgate_model::{JsonText, PrefixHash};

use crate::{CallerScope, StoreError, UnixMillis};

/// The largest record, steps and reply together: about the largest request a model host accepts, and more than a
/// model's context holds.
pub const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;

/// How long a record is kept. An older conversation still continues from the client's history; only the agent's own
/// steps are missing then.
pub const RECORD_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The longest session id in bytes. The client chooses it and it is sent in a header, so it needs a bound.
pub const MAX_SESSION_ID_BYTES: usize = 128;

/// Stores records of agent turns, each visible only to the caller who made the request.
///
/// Records are an addition: the client's history remains complete without them.
pub trait RecordStore: Send + Sync {
    /// Stores a record, replacing an earlier one of the same caller and request. A complete turn becomes the head of its
    /// session. An incomplete one never does, and never replaces a complete one.
    ///
    /// When this returns, the record survives a crash of the process. A record over [`MAX_RECORD_BYTES`] is refused; if
    /// it was complete, the session loses its head, because the old head is no longer the last turn.
    fn put_record<'a>(
        &'a self,
        scope: &'a CallerScope,
        record: AgentTurnRecord,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The caller's record of this request.
    fn record_for_request<'a>(
        &'a self,
        scope: &'a CallerScope,
        request: PrefixHash,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>>;

    /// The caller's records of the turns whose reply ends in one of these lineages, in the order of `replies`; unknown
    /// lineages are skipped.
    fn records_after<'a>(
        &'a self,
        scope: &'a CallerScope,
        replies: &'a [PrefixHash],
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>>;

    /// The last complete turn of the caller's session. Another caller's session is not found.
    fn session_head<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>>;

    /// Deletes all callers' records from before `older_than` and returns how many. See [`RECORD_LIFETIME`].
    fn prune_records(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// One turn of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTurnRecord {
    /// The lineage of the request's messages, which identifies the request.
    pub key: PrefixHash,
    /// The lineage including the reply as the client saw it; `None` if the turn is incomplete.
    pub after: Option<PrefixHash>,
    /// The session, as in `x-session-id`.
    pub session: SessionId,
    /// The messages of this turn in the agent's history, including its own calls and results: a JSON array written and
    /// read by the agent back end, opaque here.
    pub steps: JsonText,
    /// The reply as the client got it, opaque here; `None` if the turn is incomplete.
    pub reply: Option<JsonText>,
    /// When the turn began.
    pub at: UnixMillis,
}

impl AgentTurnRecord {
    /// Whether the turn ended with a reply.
    pub(crate) fn is_complete(&self) -> bool {
        self.after.is_some()
    }

    /// The size that [`MAX_RECORD_BYTES`] limits.
    pub(crate) fn bytes(&self) -> usize {
        self.steps.as_str().len() + self.reply.as_ref().map_or(0, |reply| reply.as_str().len())
    }
}

/// A session id chosen by a client or by the gateway. It does not identify the caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

/// Why a text is not a session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionIdError {
    /// The text is empty.
    #[error("the session id is empty: omit `x-session-id` to start a new session")]
    Empty,
    /// Over [`MAX_SESSION_ID_BYTES`].
    #[error("the session id has {0} bytes, the limit is {MAX_SESSION_ID_BYTES}: use a shorter one")]
    TooLong(usize),
    /// A character that a header value cannot carry.
    #[error("the session id contains a space or a non-ASCII character: use letters, digits, `-` and `_`")]
    InvalidCharacter,
}

impl SessionId {
    /// Reads an id: visible ASCII, because it is sent back in a header.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        if text.is_empty() {
            return Err(SessionIdError::Empty);
        }
        if text.len() > MAX_SESSION_ID_BYTES {
            return Err(SessionIdError::TooLong(text.len()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SessionIdError::InvalidCharacter);
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for a record over [`MAX_RECORD_BYTES`].
pub(crate) fn too_large(record: &AgentTurnRecord) -> Option<StoreError> {
    let bytes = record.bytes();
    let session = || record.session.clone();
    (bytes > MAX_RECORD_BYTES).then(|| StoreError::RecordTooLarge { session: session(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_a_valid_header_value() {
        let check = |text: &str, expect: Result<(), SessionIdError>| {
            assert_eq!(SessionId::parse(text).map(|id| assert_eq!(id.as_str(), text)), expect, "{text:?}");
        };
        check("s-1_A.b:c", Ok(()));
        check(&"x".repeat(MAX_SESSION_ID_BYTES), Ok(()));
        check("", Err(SessionIdError::Empty));
        check(&"x".repeat(MAX_SESSION_ID_BYTES + 1), Err(SessionIdError::TooLong(MAX_SESSION_ID_BYTES + 1)));
        for text in ["a b", "a\nb", "a\u{7f}", "ä"] {
            check(text, Err(SessionIdError::InvalidCharacter));
        }
    }
}
