//! From a request's body to a turn with a route.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use toolgate_backend::{ClientTurn, RequestIdentity, Route, SessionSlot};
use toolgate_dialect::{Peek, ReplyContext};
use toolgate_model::{
    Delivery, Losses, ModelName, Retention, Translated, TurnError, TurnRequest, Usage, UsageReport, estimate,
};

use super::complete::{Completed, complete};
use super::head::TurnHead;
use super::record::TurnRecord;
use super::stored_reply::{RelayedReply, ReplyKeeper};
use crate::http::{Api, Caller};
use crate::service::Worker;

/// Marks token counts that are an estimate.
pub(super) const ESTIMATED: &str = "estimated";

/// A turn with the back ends that can answer it.
pub(super) struct RoutedTurn {
    pub(super) api: Api,
    pub(super) turn: ClientTurn,
    pub(super) route: Arc<Route>,
    /// The request before a stored conversation was put in front of it, for dialects that repeat the request in their
    /// reply. `None` if it was not parsed.
    shown: Option<Arc<TurnRequest>>,
    now_seconds: u64,
    /// An agent's process sent it, as part of a client's turn.
    pub(super) is_from_agent: bool,
    /// Stores the reply, if a later request may continue it.
    pub(super) keeper: Option<ReplyKeeper>,
}

impl RoutedTurn {
    /// What the reply's writer needs to know.
    pub(super) fn context(&self) -> ReplyContext {
        let request = self.request();
        ReplyContext {
            estimated_input: estimate::input_tokens(&request),
            request: self.shown.clone().unwrap_or(request),
            now: self.now_seconds,
            fallback_id: self.api.reply_id(self.turn.id),
        }
    }

    /// The usage of a turn whose host reported none, marked as the estimate it is. Asking the host for counts that the
    /// client did not ask for would change the request, and some hosts refuse that.
    pub(super) fn estimated_usage(&self, content_bytes: usize) -> Usage {
        let input = estimate::input_tokens(&self.request());
        let mut usage = Usage { input, output: estimate::byte_tokens(content_bytes), ..Usage::default() };
        usage.extras.insert(self.turn.dialect.id(), ESTIMATED, true.into());
        usage
    }

    /// Stores a complete reply in the host's own bytes, if it is to be stored.
    pub(super) fn keep_relayed(
        &mut self,
        worker: &Arc<Worker>,
        upstream: &str,
        body: &[u8],
    ) -> Option<BoxFuture<'static, ()>> {
        let keeper = self.keeper.take()?;
        let reply = RelayedReply {
            body: body.to_vec(),
            context: self.context(),
            dialect: self.turn.dialect,
            upstream: upstream.to_owned(),
        };
        Some(Box::pin(keeper.keep_relayed(Arc::clone(worker), self.request(), reply)))
    }

    /// The request, parsed now if it was not parsed before. A relayed request may have quirks that its host accepts and
    /// our parser does not: then only the model is known.
    pub(super) fn request(&self) -> Arc<TurnRequest> {
        self.turn.request().unwrap_or_else(|_| {
            let mut request = TurnRequest::new(self.turn.model.clone(), Vec::new());
            request.delivery = self.turn.delivery;
            Arc::new(request)
        })
    }
}

/// Admits a request and finds its route. If every target speaks the client's dialect, the host gets the body as it is
/// and validates it; otherwise the request is parsed.
pub(super) async fn route(
    worker: &Worker,
    head: TurnHead,
    body: Bytes,
    record: &mut TurnRecord,
) -> Result<RoutedTurn, TurnError> {
    head.check_media_type()?;
    let body = head.caller.model_request(body);
    let dialect = head.api.dialect();
    let peek = dialect.peek_request(&body)?;
    record.set_model(&peek.model);
    let route = head.caller.route(&worker.router, &peek.model)?;
    let relays = route.speaks_only(dialect.id());
    if relays && !uses_stored_replies(head.api, &peek) {
        return Ok(relayed(head, &body, &peek, route, record));
    }
    let caller = head.caller.clone();
    let read = match dialect.read_unpaired(&body) {
        Ok(read) => read,
        // Never refused for a quirk that its host would take. What other callers stored at the host stays hidden.
        Err(error) if relays && (caller.is_only_tenant() || !names_stored_parts(&peek)) => {
            tracing::warn!(%error, "a request cannot be parsed; it is relayed as it is, and its response is not stored");
            return Ok(relayed(head, &body, &peek, route, record));
        }
        Err(error) => return Err(error),
    };
    let Translated { value: mut routed, mut losses } = parse(head, body, read, route, record)?;
    if routed.api == Api::Responses {
        losses.append(add_stored_parts(worker, &caller, &mut routed).await?);
    }
    // Hosts that get the client's bytes lose nothing.
    if routed.turn.body.is_none() || !routed.route.speaks_only(dialect.id()) {
        record.add_losses(losses);
    }
    Ok(routed)
}

/// The turn of a request that every target takes as it is.
fn relayed(
    head: TurnHead,
    body: &Bytes,
    peek: &Peek<'_>,
    route: Arc<Route>,
    record: &TurnRecord,
) -> RoutedTurn {
    let delivery = if peek.stream { Delivery::Stream(UsageReport::Default) } else { Delivery::Whole };
    let is_from_agent = head.caller.is_agent();
    let turn = ClientTurn {
        id: record.id(),
        dialect: head.api.dialect(),
        model: ModelName::from(&*peek.model),
        delivery,
        request: None,
        body: Some(body.clone()),
        headers: head.headers,
        caller: head.caller.name(),
        session: SessionSlot::default(),
        identity: RequestIdentity::default(),
    };
    let now_seconds = record.at_seconds();
    RoutedTurn { api: head.api, turn, route, shown: None, now_seconds, is_from_agent, keeper: None }
}

/// True if the reply is stored, or the request continues or refers to stored ones: all need the parsed request.
fn uses_stored_replies(api: Api, peek: &Peek<'_>) -> bool {
    api == Api::Responses && (peek.store != Some(false) || names_stored_parts(peek))
}

/// True if a part of the conversation is only named by its id.
pub(super) fn names_stored_parts(peek: &Peek<'_>) -> bool {
    peek.continues_reply || peek.has_references
}

fn parse(
    head: TurnHead,
    body: Bytes,
    mut read: Translated<TurnRequest>,
    route: Arc<Route>,
    record: &mut TurnRecord,
) -> Result<Translated<RoutedTurn>, TurnError> {
    let dialect = head.api.dialect();
    let keeps_sessions = route.keeps_sessions();
    // A client that names a session may leave out earlier messages. Only the back end that has them can tell which
    // results have no call.
    if !keeps_sessions || !head.names_session() {
        read.losses.append(dialect.pair(&mut read.value)?);
    }
    let request = Arc::new(read.value);
    let (session, identity) = if keeps_sessions {
        (head.session()?, head.identity()?)
    } else {
        (SessionSlot::default(), RequestIdentity::default())
    };
    record.set_session(session.clone());
    let is_from_agent = head.caller.is_agent();
    let stores_reply = head.api == Api::Responses && request.retention != Some(Retention::Discard);
    let keeper = stores_reply.then(|| ReplyKeeper::new(head.caller.clone(), request.previous.clone()));
    let turn = ClientTurn {
        id: record.id(),
        dialect,
        model: request.model.clone(),
        delivery: request.delivery,
        request: Some(Arc::clone(&request)),
        body: Some(body),
        headers: head.headers,
        caller: head.caller.name(),
        session,
        identity,
    };
    let now_seconds = record.at_seconds();
    let routed =
        RoutedTurn { api: head.api, turn, route, shown: Some(request), now_seconds, is_from_agent, keeper };
    Ok(Translated { value: routed, losses: read.losses })
}

/// Adds the parts of the conversation that the request only names.
async fn add_stored_parts(
    worker: &Worker,
    caller: &Caller,
    routed: &mut RoutedTurn,
) -> Result<Losses, TurnError> {
    let dialect = routed.turn.dialect;
    let mut losses = Losses::default();
    let Some(completed) = complete(worker, caller, &routed.route, &*routed.turn.request()?).await? else {
        return Ok(losses);
    };
    let Completed { mut request, is_in_body, missing } = completed;
    if let Some(missing) = missing {
        // A host of the same dialect may have stored it. The host does not know our callers, so callers that must be
        // kept apart may only name what we stored for them.
        let route = routed.route.speaking(dialect.id()).filter(|_| caller.is_only_tenant());
        routed.route = route.ok_or(missing)?;
        // Without the earlier messages the reply could not be continued from here.
        routed.keeper = None;
    }
    // Results find their calls only now. In a session that the client names, the back end has further calls.
    if routed.turn.session.named().is_none() {
        losses.append(dialect.pair(&mut request)?);
    }
    routed.turn.request = Some(Arc::new(request));
    if !is_in_body {
        routed.turn.body = None;
    }
    Ok(losses)
}
