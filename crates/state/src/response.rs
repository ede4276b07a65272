//! Responses kept for the Responses API: `store` writes one, `previous_response_id` reads it back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::{StoreError, UnixMillis};

/// The largest body kept for one response. A body holds the conversation so far, so this is in the order of
/// the largest request a model host accepts.
pub const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// How long a stored response can be continued by its id: as long as the API it comes from keeps its own.
pub const RESPONSE_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// Keeps responses, each visible only to the caller who made it.
pub trait ResponseStore: Send + Sync {
    /// Keeps a response, in place of an earlier one of the same caller and id.
    ///
    /// When this returns, the response survives a crash of the process. A body over
    /// [`MAX_RESPONSE_BYTES`] is refused.
    fn put_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        response: StoredResponse,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The caller's response of that id. Another caller's id is simply not found.
    fn response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>>;

    /// Forgets the caller's response of that id. Responses that continue it stay: each holds its whole
    /// conversation.
    fn delete_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>>;

    /// Forgets every caller's responses created before `older_than`, and says how many those were.
    ///
    /// Large prunes are done in pieces so that nobody waits long; a crash in between leaves some for the
    /// next prune.
    fn prune_responses(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// One response with everything needed to continue from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// Its id, as the client knows it.
    pub id: ResponseId,
    /// The response it continued, if any.
    pub previous: Option<ResponseId>,
    /// When it was made.
    pub created_at: UnixMillis,
    /// The model that the client asked for.
    pub model: String,
    /// The conversation so far and the reply: JSON text made and read by the gateway, opaque here.
    pub body: String,
}

/// The id of a response.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseId(Arc<str>);

/// Whose data it is: one caller never sees what belongs to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerScope(Arc<str>);

/// What came of deleting something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It was there and is gone.
    Deleted,
    /// The caller has nothing of that id.
    NotFound,
}

impl ResponseId {
    /// Takes the id as a client spells it.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as a client spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl CallerScope {
    /// The scope of a caller, by the name of the caller's key.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The caller's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The bound every store sets before it writes.
pub(crate) fn refuse_oversized(response: &StoredResponse) -> Result<(), StoreError> {
    let bytes = response.body.len();
    if bytes > MAX_RESPONSE_BYTES {
        return Err(StoreError::ResponseTooLarge { id: response.id.clone(), bytes });
    }
    Ok(())
}
