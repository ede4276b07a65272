//! What is known about a turn. When the turn is over, it becomes a log line, a usage record and metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use toolgate_backend::{Answer, HostHeaders, Receipt, Recoveries, ReplyOrigin, SessionSlot};
use toolgate_model::observed::{
    Observation, ObservedLoss, SessionState, TurnEnd, TurnEndKind, UsageCounts, stop_reason,
};
use toolgate_model::{ErrorKind, Loss, Losses, TurnError, TurnEvent, Usage};
use toolgate_state::{Label, TokenCount, UnixMillis, UsageRecord};
use uuid::{NoContext, Timestamp, Uuid};

use super::request::{ESTIMATED, RoutedTurn};
use super::watched::WatchedTurn;
use crate::http::{Api, Caller};
use crate::service::Shared;
use crate::session_log::{TurnFacts, TurnNotes};
use crate::telemetry::{FinishedTurn, InFlight};

/// How much of a model's name is logged: the client chooses it.
const MAX_MODEL_BYTES: usize = 128;

/// The record of one turn, published when it is dropped. Without an outcome, the client left (T20).
pub(super) struct TurnRecord {
    shared: Arc<Shared>,
    id: Uuid,
    api: Api,
    caller: Caller,
    at: UnixMillis,
    began: Instant,
    model: Arc<str>,
    upstream: Option<Arc<str>>,
    first_event: Option<Duration>,
    usage: Option<Usage>,
    losses: Losses,
    recoveries: Recoveries,
    /// The host's request id and rate limits.
    host_headers: HostHeaders,
    session: SessionSlot,
    /// What people may watch of it, once its session is known.
    watched: Option<WatchedTurn>,
    stop_reason: Option<String>,
    origin: ReplyOrigin,
    /// Tells the back end whether the client got the reply.
    receipt: Receipt,
    notes: TurnNotes,
    outcome: Option<Outcome>,
    _in_flight: InFlight,
}

struct Outcome {
    status: u16,
    error: Option<String>,
}

impl Outcome {
    /// The outcome of a turn that was dropped before its end.
    fn unfinished() -> Self {
        let (kind, error) = if std::thread::panicking() {
            (ErrorKind::Internal, "answering the turn panicked; please report this")
        } else {
            (ErrorKind::Cancelled, "the client went away")
        };
        Self { status: kind.status(), error: Some(error.to_owned()) }
    }
}

impl TurnRecord {
    pub(super) fn begin(shared: &Arc<Shared>, api: Api, caller: &Caller) -> Self {
        let at = shared.clock.now();
        Self {
            shared: Arc::clone(shared),
            id: new_id(at),
            api,
            caller: caller.clone(),
            at,
            began: Instant::now(),
            model: Arc::default(),
            upstream: None,
            first_event: None,
            usage: None,
            losses: Losses::default(),
            recoveries: Recoveries::default(),
            host_headers: HostHeaders::default(),
            session: SessionSlot::default(),
            watched: None,
            stop_reason: None,
            origin: ReplyOrigin::default(),
            receipt: Receipt::default(),
            notes: TurnNotes::default(),
            outcome: None,
            _in_flight: shared.metrics.begin(api),
        }
    }

    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    pub(super) fn at_seconds(&self) -> u64 {
        u64::try_from(self.at.0 / 1000).unwrap_or_default()
    }

    pub(super) fn upstream(&self) -> Option<&Arc<str>> {
        self.upstream.as_ref()
    }

    /// The host's request id and rate limits.
    pub(super) fn host_headers(&self) -> &HostHeaders {
        &self.host_headers
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The session the turn is in, if its back end keeps one.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.actual()
    }

    /// The slot in which the back end names the session.
    pub(super) fn set_session(&mut self, session: SessionSlot) {
        self.session = session;
    }

    /// The model the client named.
    pub(super) fn set_model(&mut self, model: &str) {
        self.model = model[..model.floor_char_boundary(MAX_MODEL_BYTES)].into();
    }

    /// The turn has a route. An agent reports the start itself, when it knows the session, and its own requests to a
    /// model are part of its turn.
    pub(super) fn watch(&mut self, routed: &RoutedTurn) {
        if self.caller.is_agent() {
            return;
        }
        self.notes.begin(&self.shared.session_log, &routed.turn);
        if !routed.route.keeps_sessions() {
            self.watched = Some(WatchedTurn::start(&self.shared, routed));
        }
    }

    /// Bytes of the reply are sent.
    pub(super) fn add_sent(&mut self, bytes: &Bytes) {
        self.notes.add_sent(bytes);
    }

    /// An event of the reply.
    pub(super) fn watch_event(&mut self, event: &TurnEvent) {
        if let TurnEvent::Finished(finish) = event {
            self.stop_reason = Some(stop_reason(&finish.stop));
        }
        if let Some(watched) = &mut self.watched {
            watched.event(&self.shared, event);
        }
    }

    /// True if a relayed reply should be read for people who watch.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.is_some() && self.shared.bus.is_watched()
    }

    /// A back end answers. If it is not an agent, although the route has one, the start is reported now.
    pub(super) fn watch_answer(&mut self, answer: &Answer, routed: &RoutedTurn) {
        let by_agent = self.session.actual().map(|session| WatchedTurn::by_agent(session, self.id));
        let start = || (!self.caller.is_agent()).then(|| WatchedTurn::start(&self.shared, routed));
        let Some(watched) = self.watched.take().or(by_agent).or_else(start) else { return };
        if !answer.losses.is_empty() {
            let losses = ObservedLoss::list(&answer.losses);
            watched.publish(&self.shared, Observation::Losses { losses });
        }
        self.watched = Some(watched);
    }

    /// True if the reply is that of an earlier turn.
    pub(super) fn is_replay(&self) -> bool {
        self.origin == ReplyOrigin::Record
    }

    /// The first event was received. Takes the answer's receipt.
    pub(super) fn set_answer(&mut self, answer: &mut Answer) {
        self.origin = answer.origin;
        self.receipt = std::mem::take(&mut answer.receipt);
        self.first_event = Some(self.began.elapsed());
        self.upstream = Some(Arc::clone(&answer.upstream));
        self.recoveries = answer.recoveries.clone();
        self.host_headers = answer.headers.clone();
        if !answer.losses.is_empty() {
            self.losses.append(answer.losses.clone());
        }
        self.log_session(SessionState::Running);
    }

    /// Something was lost in translation.
    pub(super) fn add_losses(&mut self, losses: Losses) {
        if !losses.is_empty() {
            self.losses.append(losses);
        }
    }

    /// Token counts; later ones replace earlier ones.
    pub(super) fn set_usage(&mut self, usage: Option<Usage>) {
        if usage.is_some() {
            self.usage = usage;
        }
    }

    /// The last bytes of the reply are about to be written.
    pub(super) fn ending(&mut self) {
        self.receipt.ending();
    }

    /// Takes the receipt, to be told when the last byte was written.
    pub(super) fn take_receipt(&mut self) -> Receipt {
        std::mem::take(&mut self.receipt)
    }

    /// The client got its whole reply.
    pub(super) fn succeed(&mut self) {
        self.outcome.get_or_insert(Outcome { status: 200, error: None });
    }

    /// The client got an error, at the beginning or in the middle of its reply.
    pub(super) fn fail(&mut self, error: &TurnError) {
        // An error is not the reply.
        self.receipt = Receipt::default();
        if let Some(headers) = &error.host_headers {
            self.host_headers = HostHeaders::from_texts(headers);
        }
        self.outcome.get_or_insert_with(|| {
            let mut message = error.message.clone();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                message.push_str(": ");
                message.push_str(&cause.to_string());
                source = cause.source();
            }
            Outcome { status: error.status(), error: Some(message) }
        });
    }

    fn log_session(&mut self, state: SessionState) {
        let facts = TurnFacts {
            scope: self.caller.scope(),
            at: self.at,
            model: &self.model,
            upstream: self.upstream.as_deref(),
            state,
        };
        self.notes.report(&self.shared.session_log, &facts);
    }

    fn is_estimate(&self) -> bool {
        let dialect = self.api.dialect().id();
        self.usage.as_ref().is_some_and(|usage| usage.extras.field(dialect, ESTIMATED).is_some())
    }

    /// Reports the end of the turn, if its start was reported.
    fn publish_end(&mut self, outcome: Outcome) {
        let by_agent = || Some(WatchedTurn::by_agent(self.session.actual()?, self.id));
        let Some(watched) = self.watched.take().or_else(by_agent) else { return };
        let end = TurnEnd {
            outcome: end_kind(outcome.status),
            status: outcome.status,
            duration_ms: millis(self.began.elapsed()),
            first_event_ms: self.first_event.map(millis),
            stop_reason: self.stop_reason.take(),
            usage: self.metered().map(UsageCounts::from),
            upstream: self.upstream.clone(),
            losses: ObservedLoss::list(&self.losses),
            recoveries: self.recoveries.names().into_iter().map(str::to_owned).collect(),
            error: outcome.error,
        };
        watched.publish(&self.shared, Observation::TurnEnded(Box::new(end)));
    }

    /// What the turn cost. A replayed reply was paid for by the turn that gave it.
    fn metered(&self) -> Option<&Usage> {
        self.usage.as_ref().filter(|_| !self.is_replay())
    }

    fn publish(&self, outcome: &Outcome) {
        let duration = self.began.elapsed();
        let recoveries = self.recoveries.names();
        let losses = self.shared.routine_losses.to_log(&self.caller.name(), &self.losses);
        tracing::info!(
            id = %self.id,
            caller = %self.caller.scope(),
            dialect = self.api.name(),
            model = &*self.model,
            upstream = self.upstream.as_deref(),
            upstream_request_id = self.host_headers.request_id(),
            session = self.session(),
            status = outcome.status,
            first_event_ms = self.first_event.map(millis),
            duration_ms = millis(duration),
            replayed = self.is_replay().then_some(true),
            tokens_in = self.metered().map(Usage::total_input),
            tokens_out = self.metered().map(|usage| usage.output),
            cost_usd = self.metered().and_then(|usage| usage.cost_usd),
            tokens_estimated = self.is_estimate().then_some(true),
            losses = (!losses.is_empty()).then(|| joined(&losses)),
            recoveries = (!recoveries.is_empty()).then(|| recoveries.join(",")),
            error = outcome.error.as_deref(),
            "turn"
        );
        self.shared.metrics.count(&FinishedTurn {
            api: self.api,
            model: self.upstream.is_some().then_some(&*self.model),
            status: outcome.status,
            duration,
            first_event: self.first_event,
            usage: self.metered(),
            losses: self.losses.iter().count(),
            recoveries: &recoveries,
        });
        if self.is_replay() {
            return;
        }
        let count = |of: fn(&Usage) -> u64| TokenCount::saturating(self.usage.as_ref().map_or(0, of));
        self.shared.usage.try_record(UsageRecord {
            turn_id: self.id,
            at: self.at,
            caller: self.caller.scope().clone(),
            model: Label::new(Arc::clone(&self.model)),
            upstream: Label::new(self.upstream.clone().unwrap_or_default()),
            dialect: self.api.label(),
            status: outcome.status,
            input: count(|usage| usage.input),
            cache_read: count(|usage| usage.cache_read),
            cache_write: count(|usage| usage.cache_write),
            output: count(|usage| usage.output),
            duration,
            first_event: self.first_event,
        });
    }
}

/// An id that sorts by the time the turn began.
fn new_id(at: UnixMillis) -> Uuid {
    let at = Duration::from_millis(u64::try_from(at.0).unwrap_or_default());
    Uuid::new_v7(Timestamp::from_unix(NoContext, at.as_secs(), at.subsec_nanos()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The losses as one text.
fn joined(losses: &[&Loss]) -> String {
    let losses: Vec<String> = losses.iter().map(ToString::to_string).collect();
    losses.join("; ")
}

/// The outcome for people who watch.
fn end_kind(status: u16) -> TurnEndKind {
    match status {
        200 => TurnEndKind::Finished,
        status if status == ErrorKind::Cancelled.status() => TurnEndKind::Interrupted,
        _ => TurnEndKind::Failed,
    }
}

impl Drop for TurnRecord {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(Outcome::unfinished);
        self.log_session(match end_kind(outcome.status) {
            TurnEndKind::Finished => SessionState::Idle,
            TurnEndKind::Interrupted => SessionState::Interrupted,
            TurnEndKind::Failed => SessionState::Failed,
        });
        self.publish(&outcome);
        self.publish_end(outcome);
    }
}
