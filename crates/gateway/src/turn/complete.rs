//! Completes a request that only names a part of its conversation: a stored reply, items of stored replies, or a
//! conversation.

use serde_json::Value;
use toolgate_backend::Route;
use toolgate_dialect::openai_responses;
use toolgate_model::{TurnError, TurnRequest};

use super::{stored_item, stored_reply};
use crate::http::{Api, Caller};
use crate::service::Worker;

/// A request with everything that is stored here for its caller.
pub(super) struct Completed {
    pub(super) request: TurnRequest,
    /// True if the client's bytes still say the same to a host of its dialect.
    pub(super) is_in_body: bool,
    /// Set if something is not stored here. A host of the client's dialect may have stored it; without such a host, this
    /// is the error.
    pub(super) missing: Option<TurnError>,
}

/// Puts what is stored here in place of its ids. `None` if the request names nothing.
pub(super) async fn complete(
    worker: &Worker,
    caller: &Caller,
    route: &Route,
    request: &TurnRequest,
) -> Result<Option<Completed>, TurnError> {
    let conversation = request.extras.field(openai_responses::ID, "conversation").filter(|id| !id.is_null());
    let has_references = !openai_responses::item_references(request).is_empty();
    if request.previous.is_none() && conversation.is_none() && !has_references {
        return Ok(None);
    }
    let missing = conversation.map(no_such_conversation);
    let mut completed = Completed { request: request.clone(), is_in_body: true, missing };
    if has_references {
        stored_item::resolve(worker, caller, route, &mut completed).await?;
    }
    let Some(previous) = &request.previous else { return Ok(Some(completed)) };
    match stored_reply::find(worker, caller, previous).await? {
        Some(stored) => {
            Api::Responses.dialect().recall(&mut completed.request, &stored.conversation)?;
            completed.is_in_body = false;
        }
        None => completed.missing = Some(stored_reply::no_such_response(previous.as_str())),
    }
    Ok(Some(completed))
}

/// Conversations are kept by hosts only.
fn no_such_conversation(conversation: &Value) -> TurnError {
    const SHOWN_CHARS: usize = 100;
    let id = conversation.as_str().or_else(|| conversation.get("id")?.as_str()).unwrap_or_default();
    let shown: String = id.chars().take(SHOWN_CHARS).collect();
    TurnError::invalid_param(
        "conversation",
        format!(
            "conversation: `{shown}` is not stored here, because the gateway keeps no conversations; send the earlier \
             messages in `input`, or continue a response with `previous_response_id`"
        ),
    )
}
