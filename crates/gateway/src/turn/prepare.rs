//! From a request's bytes to a turn with a route.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_backend::{Route, SessionSlot, Turn};
use toolgate_dialect::ReplyContext;
use toolgate_model::{Retention, TurnError, TurnRequest, Usage, estimate};

use super::Asking;
use super::keep::{self, Keeper, Relayed};
use super::record::TurnRecord;
use crate::http::{Api, Caller};
use crate::service::Worker;

/// Headers that choose features of a host. The caller's keys are never among them.
const FORWARDED: [&str; 4] = ["anthropic-beta", "anthropic-version", "openai-beta", "openai-organization"];

/// Marks token counts that are an estimate.
pub(super) const ESTIMATED: &str = "estimated";

/// Names a session of an agent, in requests and responses.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-session-id");

/// A turn that somebody can answer.
pub(super) struct Asked {
    pub(super) api: Api,
    pub(super) turn: Turn,
    pub(super) route: Arc<Route>,
    /// As the client wrote it, for dialects that repeat the request in their reply.
    pub(super) shown: Arc<TurnRequest>,
    pub(super) now_seconds: u64,
    /// Where the reply is to be kept.
    pub(super) keeper: Option<Keeper>,
}

impl Asked {
    /// What the reply's writer needs to know.
    pub(super) fn context(&self) -> ReplyContext {
        ReplyContext {
            request: Arc::clone(&self.shown),
            now: self.now_seconds,
            fallback_id: self.api.reply_id(self.turn.id),
            estimated_input: estimate::input_tokens(&self.turn.request),
        }
    }

    /// What a turn cost whose host did not say, marked as the estimate it is. Asking the host for counts the client
    /// did not ask for would change the request, and some hosts refuse it.
    pub(super) fn estimated_usage(&self, said_bytes: usize) -> Usage {
        let input = estimate::input_tokens(&self.turn.request);
        let mut usage = Usage { input, output: estimate::byte_tokens(said_bytes), ..Usage::default() };
        usage.extras.insert(self.turn.dialect, ESTIMATED, true.into());
        usage
    }

    /// Keeps a complete reply in its host's own words, where it is to be kept.
    pub(super) fn keep_relayed(
        &mut self,
        worker: &Arc<Worker>,
        body: &[u8],
    ) -> Option<BoxFuture<'static, ()>> {
        let keeper = self.keeper.take()?;
        let relayed = Relayed { body: body.to_vec(), context: self.context(), dialect: self.api.dialect() };
        let request = Arc::clone(&self.turn.request);
        Some(Box::pin(keeper.keep_relayed(Arc::clone(worker), request, relayed)))
    }
}

/// Reads the request, lets it in and finds who answers.
pub(super) fn prepare(
    worker: &Worker,
    asking: &Asking,
    body: Bytes,
    record: &mut TurnRecord,
) -> Result<Asked, TurnError> {
    let Asking { api, caller, headers, session, checked: _ } = asking;
    let dialect = api.dialect();
    let mut read = dialect.read_unpaired(&body)?;
    let route = worker.router.find(read.value.model.as_str());
    let keeps_session = route.as_ref().is_ok_and(|route| route.keeps_sessions());
    // What was said in a session before is not here: only who keeps it can tell which results have no call.
    if !keeps_session || session.is_none() {
        read.losses.append(dialect.pair(&mut read.value)?);
    }
    let request = Arc::new(read.value);
    record.asked(request.model.as_str());
    record.lost(read.losses);
    caller.check_model(request.model.as_str())?;
    let route = route?;
    let session = if keeps_session { session_slot(session.as_ref())? } else { SessionSlot::default() };
    record.in_session(session.clone());
    let wants_keeping = *api == Api::Responses && request.retention != Some(Retention::Discard);
    let keeper = wants_keeping.then(|| Keeper::new(caller.clone(), request.previous.clone()));
    let shown = Arc::clone(&request);
    let turn = Turn {
        id: record.id(),
        request,
        dialect: dialect.id(),
        original: Some(body),
        model: None,
        headers: Arc::clone(headers),
        caller: caller.name(),
        session,
    };
    Ok(Asked { api: *api, turn, route, shown, now_seconds: record.at_seconds(), keeper })
}

/// Brings back the conversation that a request continues by the id of its last reply.
pub(super) async fn recall(worker: &Worker, caller: &Caller, asked: &mut Asked) -> Result<(), TurnError> {
    let Some(previous) = asked.turn.request.previous.clone() else { return Ok(()) };
    let dialect = asked.api.dialect();
    if let Some(kept) = keep::find(worker, caller, &previous).await? {
        let mut request = TurnRequest::clone(&asked.turn.request);
        dialect.recall(&mut request, &kept.conversation)?;
        asked.turn.request = Arc::new(request);
        asked.turn.original = None;
        return Ok(());
    }
    // A host of the same dialect may have kept it. Whose it is there nobody can tell, so callers that must be kept
    // apart may only continue what we kept for them.
    let route = asked.route.speaking(dialect.id()).filter(|_| caller.is_alone());
    asked.route = route.ok_or_else(|| keep::no_such_response(previous.as_str()))?;
    // Without what came before it the reply could not be continued from here.
    asked.keeper = None;
    Ok(())
}

/// The session a client names, so that it need not send what was said there before (E3).
fn session_slot(named: Option<&HeaderValue>) -> Result<SessionSlot, TurnError> {
    const MAX_BYTES: usize = 128;
    let Some(named) = named else { return Ok(SessionSlot::new(None)) };
    let is_plain = |byte: &u8| byte.is_ascii_graphic();
    let name = named.as_bytes();
    match std::str::from_utf8(name) {
        Ok(text) if (1..=MAX_BYTES).contains(&name.len()) && name.iter().all(is_plain) => {
            Ok(SessionSlot::new(Some(text)))
        }
        _ => Err(TurnError::invalid(format!(
            "x-session-id: a session's name has 1 to {MAX_BYTES} letters, digits or signs and no spaces"
        ))),
    }
}

/// The headers that go on to a host of the same dialect.
pub(super) fn forwarded(headers: &HeaderMap) -> Arc<[(HeaderName, HeaderValue)]> {
    let wanted = headers.keys().filter(|name| FORWARDED.contains(&name.as_str()));
    wanted.filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}
