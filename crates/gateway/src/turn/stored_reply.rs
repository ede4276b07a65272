//! Replies that a later request may continue by their id, stored for the caller who asked for them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_dialect::openai_responses::{self, ReplyItem};
use toolgate_dialect::{ClientDialect, ReplyContext};
use toolgate_model::{ErrorKind, ReplyId, StopReason, TurnError, TurnRequest};
use toolgate_state::{ResponseId, StoreError, StoredResponse};

use super::stored_item::{self, IdIssuer};
use crate::http::Caller;
use crate::service::Worker;

/// What the store holds for one reply.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredReply {
    /// The reply as the client got it.
    pub(crate) response: Box<RawValue>,
    /// The conversation after it, as its dialect remembers it.
    pub(crate) conversation: String,
    /// How many items of the conversation come before the reply.
    #[serde(default)]
    pub(crate) input_count: usize,
}

impl StoredReply {
    /// Reads a stored reply.
    pub(crate) fn read(body: &str) -> Result<Self, TurnError> {
        serde_json::from_str(body).map_err(|error| {
            TurnError::new(
                ErrorKind::Internal,
                "reading a stored response: it is damaged; send the whole conversation instead",
            )
            .caused_by(error)
        })
    }

    /// The input items of the response with this id.
    pub(crate) fn input_items(&self, id: &str) -> Vec<ReplyItem> {
        openai_responses::input_items(&self.conversation, self.input_count, id)
    }
}

/// The reply this caller wants to continue; `None` if it is not stored here.
pub(super) async fn find(
    worker: &Worker,
    caller: &Caller,
    id: &ReplyId,
) -> Result<Option<StoredReply>, TurnError> {
    let id = ResponseId::new(id.as_str());
    let stored = worker.shared.store.response(caller.scope(), &id).await.map_err(store_failed)?;
    stored.map(|stored| StoredReply::read(&stored.body)).transpose()
}

/// Stores one reply for its caller.
#[derive(Clone)]
pub(super) struct ReplyKeeper {
    caller: Caller,
    previous: Option<ReplyId>,
}

impl ReplyKeeper {
    pub(super) fn new(caller: Caller, previous: Option<ReplyId>) -> Self {
        Self { caller, previous }
    }

    /// Stores a reply that was relayed in the host's own bytes.
    pub(super) async fn keep_relayed(
        self,
        worker: Arc<Worker>,
        request: Arc<TurnRequest>,
        relayed: RelayedReply,
    ) {
        let RelayedReply { body, context, dialect, upstream } = relayed;
        let host = toolgate_dialect::registry::find(dialect.id().name).map(|dialect| dialect.upstream);
        let reply = match host.map(|host| host.read_reply(&body)) {
            Some(Ok(read)) => read.value,
            Some(Err(error)) => {
                tracing::warn!(%error, "a relayed response cannot be parsed, so it is not stored and cannot be continued");
                return;
            }
            None => return,
        };
        // A response that still runs in the background is fetched from its host.
        if matches!(reply.finish.stop, StopReason::Other(_)) {
            return;
        }
        let complete = CompleteReply { reply, context, written: Some(body), ids: IdIssuer::Host(upstream) };
        self.keep(worker, dialect, request, complete).await;
    }

    /// Stores a complete reply. A reply that cannot be stored still reaches the client, and the log says why.
    pub(super) async fn keep(
        self,
        worker: Arc<Worker>,
        dialect: &'static dyn ClientDialect,
        request: Arc<TurnRequest>,
        complete: CompleteReply,
    ) {
        let CompleteReply { reply, context, written, ids } = complete;
        let Some(conversation) = dialect.remember(&request, &reply) else { return };
        let written = written.unwrap_or_else(|| dialect.write_reply(&reply, &context).value);
        let items = stored_item::of_reply(&reply, &written, &ids);
        let body = String::from_utf8(written)
            .map_err(|error| error.to_string())
            .and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()))
            .and_then(|response| {
                let input_count = openai_responses::input_count(&conversation, &reply);
                serde_json::to_string(&StoredReply { response, conversation, input_count })
                    .map_err(|error| error.to_string())
            });
        let body = match body {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(error, "a response is not stored: it could not be written as JSON");
                return;
            }
        };
        let id = reply.head.id.as_ref().map_or(context.fallback_id.as_str(), ReplyId::as_str);
        let stored = StoredResponse {
            id: ResponseId::new(id),
            previous: self.previous.map(|id| ResponseId::new(id.as_str())),
            created_at: worker.shared.clock.now(),
            model: context.request.model.as_str().to_owned(),
            body,
        };
        if let Err(error) = worker.shared.store.put_response(self.caller.scope(), stored, &items).await {
            tracing::error!(%error, "storing a response failed: it cannot be continued by its id");
        }
    }
}

/// A complete reply and what its dialect needs to write it.
pub(super) struct CompleteReply {
    pub(super) reply: toolgate_model::Reply,
    pub(super) context: ReplyContext,
    /// The reply in the client's dialect, if it was written already.
    pub(super) written: Option<Vec<u8>>,
    /// Who issued the ids in it.
    pub(super) ids: IdIssuer,
}

/// A complete reply as its host wrote it, in the client's dialect.
pub(super) struct RelayedReply {
    pub(super) body: Vec<u8>,
    pub(super) context: ReplyContext,
    pub(super) dialect: &'static dyn ClientDialect,
    /// The name of its upstream.
    pub(super) upstream: String,
}

/// The id names nothing this caller may see.
pub(crate) fn no_such_response(id: &str) -> TurnError {
    const SHOWN_CHARS: usize = 100;
    let shown: String = id.chars().take(SHOWN_CHARS).collect();
    let mut error = TurnError::new(
        ErrorKind::NotFound,
        format!("response `{shown}` is not stored here; send the whole conversation instead of its id"),
    );
    error.code = Some("previous_response_not_found".to_owned());
    error.param = Some("previous_response_id".into());
    error
}

/// The store failed; the log has the cause.
pub(crate) fn store_failed(error: StoreError) -> TurnError {
    tracing::error!(%error, "the store failed");
    TurnError::new(
        ErrorKind::Internal,
        "reading stored responses failed; try again, and see the gateway's log",
    )
    .caused_by(error)
}
