//! The head of a request for a turn.

use std::sync::Arc;

use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_backend::{RequestIdentity, RetryHint, SessionSlot};
use toolgate_model::TurnError;

use crate::http::{Api, Caller, check_media_type};

/// Names a session of an agent, in requests and responses.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-session-id");

/// The client's own name for a request: the same one means the same request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How often an SDK has sent the request before.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// Headers that choose features of a host. The caller's keys are never among them.
const FORWARDED: [&str; 4] = ["anthropic-beta", "anthropic-version", "openai-beta", "openai-organization"];

/// What the head of a request says about the turn.
pub(crate) struct TurnHead {
    pub(super) api: Api,
    pub(super) caller: Caller,
    /// Headers for a host of the same dialect.
    pub(super) headers: Arc<[(HeaderName, HeaderValue)]>,
    session: Option<HeaderValue>,
    idempotency_key: Option<HeaderValue>,
    retry: RetryHint,
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
            idempotency_key: headers.get(IDEMPOTENCY_KEY).cloned(),
            retry: retry_hint(headers),
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

    /// What tells the request from an equal one (B7).
    pub(super) fn identity(&self) -> Result<RequestIdentity, TurnError> {
        const MAX_BYTES: usize = 255;
        let idempotency_key = match &self.idempotency_key {
            None => None,
            Some(key) => match key.to_str() {
                Ok(key) if (1..=MAX_BYTES).contains(&key.len()) => Some(Arc::from(key)),
                Ok(_) | Err(_) => {
                    return Err(TurnError::invalid(format!(
                        "idempotency-key: use 1 to {MAX_BYTES} visible ASCII characters"
                    )));
                }
            },
        };
        Ok(RequestIdentity { idempotency_key, retry: self.retry, sample: None })
    }
}

/// What the client says about sending the request again. An SDK that retries says so, whatever else is in its headers.
fn retry_hint(headers: &HeaderMap) -> RetryHint {
    let count = headers.get(RETRY_COUNT).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
    let caching = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = caching.flat_map(|value| value.split(','));
    if count.is_some_and(|count| count > 0) {
        RetryHint::Retry
    } else if directives.any(|directive| directive.trim().eq_ignore_ascii_case("no-cache")) {
        RetryHint::Fresh
    } else {
        RetryHint::None
    }
}

/// The headers that go to a host of the same dialect.
pub(super) fn forwarded(headers: &HeaderMap) -> Arc<[(HeaderName, HeaderValue)]> {
    let wanted = headers.keys().filter(|name| FORWARDED.contains(&name.as_str()));
    wanted.filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_that_it_retries_or_wants_a_new_reply() {
        let check = |fields: &[(HeaderName, &'static str)], expected: RetryHint| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            assert_eq!(retry_hint(&fields.collect()), expected);
        };
        check(&[], RetryHint::None);
        check(&[(RETRY_COUNT, "0")], RetryHint::None);
        check(&[(RETRY_COUNT, "1")], RetryHint::Retry);
        for not_a_count in ["", "-1", "one", "99999999999"] {
            check(&[(RETRY_COUNT, not_a_count)], RetryHint::None);
        }
        check(&[(CACHE_CONTROL, "no-cache")], RetryHint::Fresh);
        check(&[(CACHE_CONTROL, "max-age=0, No-Cache")], RetryHint::Fresh);
        check(&[(CACHE_CONTROL, "no-cache-at-all")], RetryHint::None);
        check(&[(CACHE_CONTROL, "no-cache"), (RETRY_COUNT, "2")], RetryHint::Retry);
    }
}
