//! Sessions: one row each, beside the turns in it (see [`crate::RecordStore`]).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use thiserror::Error;
use toolgate_model::observed::SessionState;

use crate::{AgentTurnRecord, CallerScope, Deletion, Label, StoreError, UnixMillis};

/// The longest session id in bytes. The client chooses it and it is sent in a header, so it needs a bound.
pub const MAX_SESSION_ID_BYTES: usize = 128;

/// The most sessions or turns in one page.
pub const MAX_PAGE_ROWS: usize = 200;

/// A page of turns ends after the turn with which it has more bytes than this.
pub(crate) const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Stores sessions, each visible only to the caller who began it.
pub trait SessionStore: Send + Sync {
    /// Changes a session, and creates it if it is new.
    fn update_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        change: SessionChange,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Replaces the title; `false` if the caller has no such session.
    fn rename_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        title: Label,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The caller's session with this id.
    fn session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>>;

    /// Sessions, the last updated first, after the given one. At most `limit`, which is itself limited to
    /// [`MAX_PAGE_ROWS`].
    ///
    /// A session that is updated while somebody turns the pages moves to the front: it may be missing on later pages, but
    /// no session is listed twice without having been updated.
    fn sessions<'a>(
        &'a self,
        callers: Callers<'a>,
        after: Option<&'a SessionCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<SessionPage, StoreError>>;

    /// All turns of a session in the order in which they were last written, of all threads and branches. At most `limit`,
    /// which is itself limited to [`MAX_PAGE_ROWS`], and fewer if they are large.
    fn session_turns<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
        after: Option<TurnCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<TurnPage, StoreError>>;

    /// Deletes a session with all its turns.
    fn delete_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>>;
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The caller who began it.
    pub caller: CallerScope,
    /// Its id, unique for the caller.
    pub id: SessionId,
    /// What it is about; empty until known.
    pub title: Label,
    /// The model that the client asked for last; empty until known.
    pub model: Label,
    /// The agent that answered last; empty if no agent did.
    pub agent: Label,
    /// What it is doing.
    pub state: SessionState,
    /// When it began.
    pub created: UnixMillis,
    /// When it last changed.
    pub updated: UnixMillis,
}

/// A change of a session. `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChange {
    /// The title, if the session has none yet.
    pub suggested_title: Option<Label>,
    /// The model that the client asks for.
    pub model: Option<Label>,
    /// The agent that answers.
    pub agent: Option<Label>,
    /// What the session is doing now.
    pub state: Option<SessionState>,
    /// The time of the change. An earlier one than that of the last change does not move the session back.
    pub at: UnixMillis,
}

/// Whose sessions are listed.
#[derive(Debug, Clone, Copy)]
pub enum Callers<'a> {
    /// Those of one caller.
    One(&'a CallerScope),
    /// Everybody's, for the operator.
    All,
}

/// Sessions in the order of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionRecord>,
    /// Where the next page begins; `None` after the last session.
    pub next: Option<SessionCursor>,
}

/// Turns in the order of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnPage {
    /// The turns.
    pub turns: Vec<AgentTurnRecord>,
    /// Where the next page begins; `None` after the last turn.
    pub next: Option<TurnCursor>,
}

/// The place of a session in the list of all sessions. Its text form is a page token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionCursor {
    pub(crate) updated: UnixMillis,
    pub(crate) caller: CallerScope,
    pub(crate) id: SessionId,
}

/// The place of a turn among all turns. Its number is a page token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnCursor(pub i64);

/// A text that is no page token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this is not a page token: use one from the page before, or none for the first page")]
pub struct CursorError;

impl SessionRecord {
    /// Where this session is in the list of all sessions.
    pub fn cursor(&self) -> SessionCursor {
        SessionCursor { updated: self.updated, caller: self.caller.clone(), id: self.id.clone() }
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, change: SessionChange) {
        let SessionChange { suggested_title, model, agent, state, at } = change;
        if self.title.as_str().is_empty() {
            self.title = suggested_title.unwrap_or_else(|| self.title.clone());
        }
        self.model = model.unwrap_or_else(|| self.model.clone());
        self.agent = agent.unwrap_or_else(|| self.agent.clone());
        self.state = state.unwrap_or(self.state);
        self.updated = self.updated.max(at);
    }
}

/// A session of which only the time is known.
pub(crate) fn new_session(scope: &CallerScope, id: &SessionId, at: UnixMillis) -> SessionRecord {
    SessionRecord {
        caller: scope.clone(),
        id: id.clone(),
        title: Label::new(""),
        model: Label::new(""),
        agent: Label::new(""),
        state: SessionState::Idle,
        created: at,
        updated: at,
    }
}

const STATES: [SessionState; 6] = [
    SessionState::Starting,
    SessionState::Running,
    SessionState::Waiting,
    SessionState::Idle,
    SessionState::Failed,
    SessionState::Interrupted,
];

/// The state as it is stored.
pub(crate) fn state_name(state: SessionState) -> &'static str {
    match state {
        SessionState::Starting => "starting",
        SessionState::Running => "running",
        SessionState::Waiting => "waiting",
        SessionState::Idle => "idle",
        SessionState::Failed => "failed",
        SessionState::Interrupted => "interrupted",
    }
}

/// The state with this name.
pub(crate) fn state_named(name: &str) -> Option<SessionState> {
    STATES.into_iter().find(|state| state_name(*state) == name)
}

impl SessionChange {
    /// Changes nothing but the time.
    pub fn at(at: UnixMillis) -> Self {
        Self { suggested_title: None, model: None, agent: None, state: None, at }
    }
}

impl SessionPage {
    /// The first `limit` of these sessions.
    pub(crate) fn of(mut sessions: Vec<SessionRecord>, limit: usize) -> Self {
        let is_last = sessions.len() <= limit;
        sessions.truncate(limit);
        let next = if is_last { None } else { sessions.last().map(SessionRecord::cursor) };
        Self { sessions, next }
    }
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A session id has no spaces; a caller's name may.
        write!(f, "{} {} {}", self.updated.0, self.id, self.caller)
    }
}

impl FromStr for SessionCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().ok_or(CursorError);
        let updated = next()?.parse().map_err(|_| CursorError)?;
        let id = SessionId::parse(next()?).map_err(|_| CursorError)?;
        Ok(Self { updated: UnixMillis(updated), caller: CallerScope::new(next()?), id })
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

    #[test]
    fn a_page_token_is_parsed_from_its_text() {
        let cursor = |caller: &str| SessionCursor {
            updated: UnixMillis(-7),
            caller: CallerScope::new(caller),
            id: SessionId::parse("s/1").unwrap(),
        };
        for caller in ["alice", "two words", "", "ä 7"] {
            assert_eq!(cursor(caller).to_string().parse(), Ok(cursor(caller)), "{caller:?}");
        }
        for text in ["", "7", "7 s", "x s alice", "7  alice", "9223372036854775808 s alice"] {
            assert_eq!(text.parse::<SessionCursor>(), Err(CursorError), "{text:?}");
        }
    }
}
