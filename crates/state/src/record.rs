//! What an agent did in each turn: its own steps, which the client never saw (B6), and the reply, so that a request
//! that comes again is answered again and not run again (B7).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use thiserror::Error;
use toolgate_model::{JsonText, PrefixHash};

use crate::{CallerScope, StoreError, UnixMillis};

/// The largest record kept, steps and reply together: in the order of the largest request a model host accepts,
/// and more than a model's context holds.
pub const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;

/// How long a record is worth keeping. An older conversation goes on all the same, from the client's own history;
/// only the agent's own steps are then missing in it.
pub const RECORD_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The longest session id, in bytes: a client chooses it and it is a header's value.
pub const MAX_SESSION_ID_BYTES: usize = 128;

/// Keeps records of turns, each visible only to the caller whose turn it was.
///
/// Losing a record loses nothing that the client has: its history is the truth, a record only adds to it.
pub trait RecordStore: Send + Sync {
    /// Keeps a record, in place of an earlier one of the same caller and request. A complete turn becomes the last one
    /// of its session; one that was cut short never does, and never takes the place of a complete one.
    ///
    /// When this returns, the record survives a crash of the process. A record over [`MAX_RECORD_BYTES`] is refused,
    /// and where it was complete its session then has no last turn: better none than one that is not the last.
    fn keep_record<'a>(
        &'a self,
        scope: &'a CallerScope,
        record: TurnRecord,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The caller's record of this request.
    fn record_of<'a>(
        &'a self,
        scope: &'a CallerScope,
        request: PrefixHash,
    ) -> BoxFuture<'a, Result<Option<TurnRecord>, StoreError>>;

    /// The caller's records of the turns that ended in one of these lineages, in the order of `replies`; those that
    /// nothing is known of are left out.
    fn records_after<'a>(
        &'a self,
        scope: &'a CallerScope,
        replies: &'a [PrefixHash],
    ) -> BoxFuture<'a, Result<Vec<TurnRecord>, StoreError>>;

    /// The last complete turn of the caller's session. Another caller's session is simply not found.
    fn session_head<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<TurnRecord>, StoreError>>;

    /// Forgets every caller's records from before `older_than`, and says how many those were. See
    /// [`RECORD_LIFETIME`].
    fn prune_records(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// What an agent did in one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRecord {
    /// The lineage of the request's messages: which request it was.
    pub key: PrefixHash,
    /// The lineage with the reply as the client saw it; `None` while the turn is cut short.
    pub after: Option<PrefixHash>,
    /// The session, as `x-session-id` says it.
    pub session: SessionId,
    /// The messages that stand in the agent's history for this turn, its own calls and results included: a JSON
    /// array made and read by the agent back end, opaque here.
    pub steps: JsonText,
    /// The reply as the client got it, opaque here; `None` while the turn is cut short.
    pub reply: Option<JsonText>,
    /// When it began.
    pub at: UnixMillis,
}

impl TurnRecord {
    /// False where the turn was cut short.
    pub(crate) fn is_complete(&self) -> bool {
        self.after.is_some()
    }

    /// What counts against [`MAX_RECORD_BYTES`].
    pub(crate) fn bytes(&self) -> usize {
        self.steps.as_str().len() + self.reply.as_ref().map_or(0, |reply| reply.as_str().len())
    }
}

/// Names a session, as a client or the gateway chose it. Says nothing about whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

/// Why a text is no session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SessionIdError {
    /// Nothing at all.
    #[error("a session id is empty: leave `x-session-id` out to begin a new session")]
    Empty,
    /// Over [`MAX_SESSION_ID_BYTES`].
    #[error("a session id has {0} bytes and at most {MAX_SESSION_ID_BYTES} are taken: use a shorter one")]
    TooLong(usize),
    /// A letter that cannot stand in a header.
    #[error("a session id holds a space or a letter beyond plain ASCII: use letters, digits, `-` and `_`")]
    Letter,
}

impl SessionId {
    /// Takes an id as a client spells it: visible ASCII, since it goes back in a header.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        if text.is_empty() {
            return Err(SessionIdError::Empty);
        }
        if text.len() > MAX_SESSION_ID_BYTES {
            return Err(SessionIdError::TooLong(text.len()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SessionIdError::Letter);
        }
        Ok(Self(text.into()))
    }

    /// The id as a client spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for a record over the bound.
pub(crate) fn too_large(record: &TurnRecord) -> Option<StoreError> {
    let bytes = record.bytes();
    let session = || record.session.clone();
    (bytes > MAX_RECORD_BYTES).then(|| StoreError::RecordTooLarge { session: session(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_can_stand_in_a_header() {
        let check = |text: &str, expect: Result<(), SessionIdError>| {
            assert_eq!(SessionId::parse(text).map(|id| assert_eq!(id.as_str(), text)), expect, "{text:?}");
        };
        check("s-1_A.b:c", Ok(()));
        check(&"x".repeat(MAX_SESSION_ID_BYTES), Ok(()));
        check("", Err(SessionIdError::Empty));
        check(&"x".repeat(MAX_SESSION_ID_BYTES + 1), Err(SessionIdError::TooLong(MAX_SESSION_ID_BYTES + 1)));
        for text in ["a b", "a\nb", "a\u{7f}", "ä"] {
            check(text, Err(SessionIdError::Letter));
        }
    }
}
