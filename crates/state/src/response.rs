//! Stored responses of the Responses API: `store` writes one, `previous_response_id` reads it back, and an
//! `item_reference` reads one of its items.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::{StoreError, UnixMillis};

/// The largest stored body. A body contains the whole conversation so far, so this is about the largest request a model
/// host accepts.
pub const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// How long a stored response can be continued by its id: the same as at OpenAI.
pub const RESPONSE_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// Stores responses, each visible only to the caller who created it.
pub trait ResponseStore: Send + Sync {
    /// Stores a response and its items, replacing an earlier response and earlier items of the same caller and id.
    ///
    /// When this returns, both survive a crash of the process. A body over [`MAX_RESPONSE_BYTES`], or items that are
    /// larger together, are refused.
    fn put_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        response: StoredResponse,
        items: &'a [StoredItem],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The caller's response with this id. Another caller's id is not found.
    fn response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, StoreError>>;

    /// The caller's items with these ids, each once, in any order. Unknown ids and those of other callers are missing.
    fn response_items<'a>(
        &'a self,
        scope: &'a CallerScope,
        ids: &'a BTreeSet<ItemId>,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, StoreError>>;

    /// Deletes the caller's response with this id and its items. Responses that continue it stay, because each contains
    /// its whole conversation.
    fn delete_response<'a>(
        &'a self,
        scope: &'a CallerScope,
        id: &'a ResponseId,
    ) -> BoxFuture<'a, Result<Deletion, StoreError>>;

    /// Deletes all callers' responses created before `older_than`, with their items, and returns how many responses.
    ///
    /// Deletes in chunks, so that other writers do not wait long; a crash in between leaves the rest for the next prune.
    fn prune_responses(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// A response with everything needed to continue from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The id that the client knows.
    pub id: ResponseId,
    /// The response it continued, if any.
    pub previous: Option<ResponseId>,
    /// When it was created.
    pub created_at: UnixMillis,
    /// The model that the client asked for.
    pub model: String,
    /// The conversation so far and the reply: JSON written and read by the gateway, opaque here.
    pub body: String,
}

/// An item of a stored response, which a later request may name instead of repeating it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// The id that the client knows.
    pub id: ItemId,
    /// The item: JSON written and read by the gateway, opaque here.
    pub body: String,
}

/// The id of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(Arc<str>);

/// The id of a response.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseId(Arc<str>);

/// The owner of stored data. Callers never see each other's data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerScope(Arc<str>);

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It existed and is deleted.
    Deleted,
    /// The caller has nothing with that id.
    NotFound,
}

impl ItemId {
    /// Wraps an id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ResponseId {
    /// Wraps an id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
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
    /// The name, shared instead of copied.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The scope of the caller whose key has this name.
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

/// Every store checks this before it writes.
pub(crate) fn refuse_oversized(response: &StoredResponse, items: &[StoredItem]) -> Result<(), StoreError> {
    let bytes = response.body.len().max(items.iter().map(|item| item.body.len()).sum());
    if bytes > MAX_RESPONSE_BYTES {
        return Err(StoreError::ResponseTooLarge { id: response.id.clone(), bytes });
    }
    Ok(())
}
