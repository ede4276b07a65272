//! The head of a request for a turn.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_backend::SessionSlot;
use toolgate_model::TurnError;

use crate::http::{Api, Caller, check_media_type};

/// Names a session of an agent, in requests and responses.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-session-id");

/// Headers that choose features of a host. The caller's keys are never among them.
const FORWARDED: [&str; 4] = ["anthropic-beta", "anthropic-version", "openai-beta", "openai-organization"];

/// What the head of a request says about the turn.
pub(crate) struct TurnHead {
    pub(super) api: Api,
    pub(super) caller: Caller,
    /// Headers for a host of the same dialect.
    pub(super) headers: Arc<[(HeaderName, HeaderValue)]>,
    session: Option<HeaderValue>,
    /// Whether the body has a media type that can be read.
    media_type: Result<(), TurnError>,
}

impl TurnHead {
    /// Reads the headers of an admitted request.
    pub(crate) fn new(api: Api, caller: Caller, headers: &HeaderMap) -> Self {
        Self {
            api,
            caller,
            headers: forwarded(headers),
            session: headers.get(SESSION).cloned(),
            media_type: check_media_type(headers),
        }
    }

    /// Refuses a body of another media type than JSON.
    pub(super) fn check_media_type(&self) -> Result<(), TurnError> {
        self.media_type.clone()
    }

    /// True if the client names a session.
    pub(super) fn names_session(&self) -> bool {
        self.session.is_some()
    }

    /// The session the client names, so that it need not repeat earlier messages (E3).
    pub(super) fn session(&self) -> Result<SessionSlot, TurnError> {
        const MAX_BYTES: usize = 128;
        let Some(named) = &self.session else { return Ok(SessionSlot::new(None)) };
        let name = named.to_str().ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()));
        match name {
            Some(name) if (1..=MAX_BYTES).contains(&name.len()) => Ok(SessionSlot::new(Some(name))),
            Some(_) | None => Err(TurnError::invalid(format!(
                "x-session-id: use 1 to {MAX_BYTES} visible ASCII characters without spaces"
            ))),
        }
    }
}

/// The headers that go to a host of the same dialect.
pub(super) fn forwarded(headers: &HeaderMap) -> Arc<[(HeaderName, HeaderValue)]> {
    let wanted = headers.keys().filter(|name| FORWARDED.contains(&name.as_str()));
    wanted.filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}
