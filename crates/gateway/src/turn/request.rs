//! From a request's body to a turn with a route.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use toolgate_backend::{ClientTurn, Route, SessionSlot};
use toolgate_dialect::{Peek, ReplyContext};
use toolgate_model::{
    Delivery, ModelName, ReplyId, Retention, TurnError, TurnRequest, Usage, UsageReport, estimate,
};

use super::head::TurnHead;
use super::record::TurnRecord;
use super::stored_reply::{self, RelayedReply, ReplyKeeper};
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
        body: &[u8],
    ) -> Option<BoxFuture<'static, ()>> {
        let keeper = self.keeper.take()?;
        let reply = RelayedReply { body: body.to_vec(), context: self.context(), dialect: self.turn.dialect };
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
    let dialect = head.api.dialect();
    let peek = dialect.peek_request(&body)?;
    record.set_model(&peek.model);
    head.caller.check_model(&peek.model)?;
    let route = worker.router.find(&peek.model)?;
    if !uses_stored_replies(head.api, &peek) && route.speaks_only(dialect.id()) {
        let delivery = if peek.stream { Delivery::Stream(UsageReport::Default) } else { Delivery::Whole };
        let turn = ClientTurn {
            id: record.id(),
            dialect,
            model: ModelName::from(&*peek.model),
            delivery,
            request: None,
            body: Some(body.clone()),
            headers: head.headers,
            caller: head.caller.name(),
            session: SessionSlot::default(),
        };
        let now_seconds = record.at_seconds();
        return Ok(RoutedTurn { api: head.api, turn, route, shown: None, now_seconds, keeper: None });
    }
    let caller = head.caller.clone();
    let mut routed = parse(head, body, route, record)?;
    if let Some(previous) = routed.request().previous.clone() {
        recall(worker, &caller, &previous, &mut routed).await?;
    }
    Ok(routed)
}

/// True if the reply is stored, or a stored one is continued: both need the parsed request.
fn uses_stored_replies(api: Api, peek: &Peek<'_>) -> bool {
    api == Api::Responses && (peek.store != Some(false) || peek.continues_reply)
}

fn parse(
    head: TurnHead,
    body: Bytes,
    route: Arc<Route>,
    record: &mut TurnRecord,
) -> Result<RoutedTurn, TurnError> {
    let dialect = head.api.dialect();
    let mut read = dialect.read_unpaired(&body)?;
    let keeps_sessions = route.keeps_sessions();
    // A client that names a session may leave out earlier messages. Only the back end that has them can tell which
    // results have no call.
    if !keeps_sessions || !head.names_session() {
        read.losses.append(dialect.pair(&mut read.value)?);
    }
    let request = Arc::new(read.value);
    record.add_losses(read.losses);
    let session = if keeps_sessions { head.session()? } else { SessionSlot::default() };
    record.set_session(session.clone());
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
    };
    let now_seconds = record.at_seconds();
    Ok(RoutedTurn { api: head.api, turn, route, shown: Some(request), now_seconds, keeper })
}

/// Puts the conversation in front of a request that continues a stored reply by its id.
async fn recall(
    worker: &Worker,
    caller: &Caller,
    previous: &ReplyId,
    routed: &mut RoutedTurn,
) -> Result<(), TurnError> {
    let dialect = routed.turn.dialect;
    if let Some(stored) = stored_reply::find(worker, caller, previous).await? {
        let mut request = TurnRequest::clone(&*routed.turn.request()?);
        dialect.recall(&mut request, &stored.conversation)?;
        routed.turn.request = Some(Arc::new(request));
        routed.turn.body = None;
        return Ok(());
    }
    // A host of the same dialect may have stored it. The host does not know our callers, so callers that must be kept
    // apart may only continue what we stored for them.
    let route = routed.route.speaking(dialect.id()).filter(|_| caller.is_only_tenant());
    routed.route = route.ok_or_else(|| stored_reply::no_such_response(previous.as_str()))?;
    // Without the earlier conversation the reply could not be continued from here.
    routed.keeper = None;
    Ok(())
}
