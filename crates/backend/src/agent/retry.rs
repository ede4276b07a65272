//! Tells a retry from an equal request (B7).
//!
//! ```text
//!  a run was interrupted                            ─▶ continue after its recorded steps
//!  a run has replied · the request is a retry       ─▶ replay the reply
//!                    · it is not                    ─▶ run again
//! ```

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::{ErrorKind, JsonText, Message, TurnError};
use uuid::Uuid;

use super::partial_results;
use super::plan::{TurnPlan, scope_without_session};
use super::pool::ProcessPool;
use super::records::{AgentRecord, ReplyDelivery};
use super::reply_delivery::RunDelivery;
use super::run_lock::RunGuard;
use super::transcript;
use crate::receipt::Receipt;
use crate::turn::{RetryHint, Turn};

/// A request whose place among earlier ones is known.
pub(super) struct IdentifiedRequest {
    /// With the earlier messages of its session.
    pub(super) turn: Turn,
    pub(super) plan: TurnPlan,
    /// Identifies the request as the client sent it.
    pub(super) sent: PrefixHash,
    pub(super) runs: RunGuards,
    pub(super) earlier: EarlierRun,
}

/// What the records hold about this request.
pub(super) enum EarlierRun {
    None,
    /// It was interrupted.
    Interrupted(AgentRecord),
    /// It has replied, and this request is not a retry of it.
    Over,
    /// It has replied, and this request is a retry.
    Retried(AgentRecord),
}

/// The right to run a request, under each key that a retry of it may have.
#[derive(Clone)]
pub(super) struct RunGuards(Vec<RunGuard>);

impl RunGuards {
    /// The run has ended with a reply, which is on record.
    pub(super) fn complete(&self) {
        self.0.iter().for_each(RunGuard::complete);
    }

    /// Follows the reply of a run to the client.
    pub(super) fn receipt(&self, pool: &Arc<ProcessPool>, turn: &Turn, run: Uuid) -> Receipt {
        Receipt::new(RunDelivery {
            pool: Arc::clone(pool),
            caller: Arc::clone(&turn.caller),
            run,
            notes: self.0.iter().map(RunGuard::follow_delivery).collect(),
        })
    }

    /// Whether this request is a retry of a run that has replied.
    async fn is_retry(&self, record: &AgentRecord, turn: &Turn) -> bool {
        let is_declared = turn.identity.retry == RetryHint::Retry || turn.identity.idempotency_key.is_some();
        if is_declared || self.0.iter().any(RunGuard::has_joined) || !self.was_delivered(record).await {
            return true;
        }
        // The turn that these results continued has consumed them.
        let ends_in_results = matches!(turn.request.messages.last(), Some(Message::ToolResults(_)));
        ends_in_results && turn.identity.retry != RetryHint::Fresh
    }

    async fn was_delivered(&self, record: &AgentRecord) -> bool {
        if record.delivery == ReplyDelivery::Complete {
            return true;
        }
        for run in &self.0 {
            if run.was_delivered(record.run).await {
                return true;
            }
        }
        false
    }
}

/// Completes a request and finds the earlier run of it, if there is one. Waits while that runs.
pub(super) async fn identify(pool: &ProcessPool, turn: Turn) -> Result<IdentifiedRequest, TurnError> {
    let turn = partial_results::complete(pool, turn).await?;
    let plan = TurnPlan::new(&turn, pool.config())?;
    let sent = plan.key;
    let named = NamedRequest::find(pool, &turn, sent).await?;
    let mut runs = RunGuards(vec![pool.run_locks().acquire(sent).await]);
    let context = transcript::with_earlier_turns(pool, &turn, &plan).await?;
    let known_as = named.as_ref().and_then(|named| named.request).or(context.request_sent_as(sent));
    if let Some(request) = known_as
        && let Some(record) = pool.records().find(&turn.caller, request).await
        && record.reply.is_some()
        && runs.is_retry(&record, &turn).await
    {
        return Ok(IdentifiedRequest { turn, plan, sent, runs, earlier: EarlierRun::Retried(record) });
    }
    let (turn, plan) = match context.whole {
        None => (turn, plan),
        Some(whole) => {
            let turn = partial_results::complete(pool, whole.value).await?;
            let mut plan = TurnPlan::new(&turn, pool.config())?;
            plan.losses.append(whole.losses);
            if plan.key != sent {
                runs.0.push(pool.run_locks().acquire(plan.key).await);
            }
            (turn, plan)
        }
    };
    if let Some(named) = named {
        named.save(pool, &turn, sent, plan.key).await;
    }
    let earlier = match pool.records().find(&turn.caller, plan.key).await {
        None => EarlierRun::None,
        Some(record) if record.reply.is_none() => EarlierRun::Interrupted(record),
        Some(record) if runs.is_retry(&record, &turn).await => EarlierRun::Retried(record),
        Some(_) => EarlierRun::Over,
    };
    Ok(IdentifiedRequest { turn, plan, sent, runs, earlier })
}

/// A request to which the client gave a name, its idempotency key.
struct NamedRequest {
    key: PrefixHash,
    /// Identifies the request of this name that was answered, with the earlier messages of its session.
    request: Option<PrefixHash>,
    /// Two requests of one name are checked one after the other.
    _checking: RunGuard,
}

/// What is stored about a name, with hashes as text.
#[derive(Serialize, Deserialize)]
struct StoredName {
    sent: String,
    request: String,
}

impl NamedRequest {
    /// Checks that the name does not belong to another request.
    async fn find(pool: &ProcessPool, turn: &Turn, sent: PrefixHash) -> Result<Option<Self>, TurnError> {
        let Some(name) = &turn.identity.idempotency_key else { return Ok(None) };
        let sample = turn.identity.sample.unwrap_or_default();
        let scope = scope_without_session(turn, pool.config());
        let key = Lineage::of(&format!("idempotency key\n{scope}\n{sample}\n{name}"), &[]).whole();
        let checking = pool.run_locks().acquire(key).await;
        let note = pool.records().find(&turn.caller, key).await;
        let stored = note.and_then(|note| serde_json::from_str::<StoredName>(note.steps.as_str()).ok());
        let request = match stored {
            Some(stored) if stored.sent != sent.to_string() => return Err(name_is_taken()),
            Some(stored) => PrefixHash::from_hex(&stored.request),
            None => None,
        };
        Ok(Some(Self { key, request, _checking: checking }))
    }

    async fn save(self, pool: &ProcessPool, turn: &Turn, sent: PrefixHash, request: PrefixHash) {
        let stored = StoredName { sent: sent.to_string(), request: request.to_string() };
        let note = serde_json::to_value(stored)
            .map_or_else(|_| JsonText::empty_object(), |stored| JsonText::from_value(&stored));
        pool.records().save(&turn.caller, AgentRecord::note(self.key, note)).await;
    }
}

/// Not 409, which client libraries take as a reason to try again.
fn name_is_taken() -> TurnError {
    const UNPROCESSABLE: u16 = 422;
    let mut error = TurnError::new(
        ErrorKind::InvalidRequest,
        "idempotency-key: another request was sent with this key; use a new key for each request, and the same one \
         only to retry it",
    );
    error.status = Some(UNPROCESSABLE);
    error.code = Some("idempotency_key_reused".to_owned());
    error
}
