//! The API for people who watch and decide: `/console/api/…`.

mod events;

use http::HeaderMap;
use toolgate_model::{ErrorKind, TurnError};

use crate::http::Caller;

pub(crate) use self::events::{events, snapshot};

/// Admits a request to `/console/api/…`: it shows every caller's conversations, so only the single user of a gateway
/// without keys may use it.
pub(crate) fn authorize(caller: &Caller, _headers: &HeaderMap) -> Result<(), TurnError> {
    if caller.is_only_tenant() {
        return Ok(());
    }
    Err(TurnError::new(
        ErrorKind::Permission,
        "this path shows the conversations of every caller, and a caller's key does not open it",
    ))
}
