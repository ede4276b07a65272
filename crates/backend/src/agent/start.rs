//! One turn: which process serves it, and with what.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use toolgate_model::{ErrorKind, Losses, TurnError};
use uuid::Uuid;

use super::core::{Beginning, Job, Work};
use super::outbox::{Asked, Inbox, outbox};
use super::plan::Plan;
use super::pool::{Claimed, Pool, Setup};
use crate::turn::{Answer, AnswerBody, EventStream, Rescues, Turn};

/// How many processes may be tried for one turn, each gone before it had asked the model.
const MAX_TRIES: u32 = 3;

/// Begins a turn; ready when the first event is there.
pub(super) async fn start(pool: Arc<Pool>, name: Arc<str>, turn: Turn) -> Result<Answer, TurnError> {
    let mut plan = Plan::new(&turn, pool.config())?;
    let mut losses = std::mem::take(&mut plan.losses);
    let setup = Setup {
        opening: plan.opening.clone(),
        model: plan.model.clone(),
        tools: plan.tools.clone(),
        session: turn.session.asked().map_or_else(|| Uuid::now_v7().to_string(), str::to_owned),
    };
    let mut tries = 0;
    loop {
        let live = if tries == 0 { live(&pool, &plan, &setup, &mut losses) } else { None };
        let (process, work, session) = match live {
            Some(live) => live,
            None => fresh(&pool, &plan, &setup, &turn, &mut losses).await?,
        };
        turn.session.tell(&session);
        let (outbox, inbox) = outbox();
        let (reply, lineage) = (plan.reply(), plan.lineage.clone());
        process.begin(Job { turn: turn.id, session, work, reply, lineage, outbox });
        tries += 1;
        match first_event(inbox).await {
            Ok(events) => {
                let body = AnswerBody::Events(events);
                return Ok(Answer { upstream: name, losses, rescues: Rescues::default(), body });
            }
            Err((Asked::NotYet, error)) if error.kind == ErrorKind::Upstream && tries < MAX_TRIES => {
                tracing::info!(id = %turn.id, %error, "an agent process was gone before it had asked; trying another");
            }
            Err((Asked::NotYet | Asked::Perhaps, error)) => return Err(error),
        }
    }
}

/// A process that knows nothing yet, and everything it must be told.
async fn fresh(
    pool: &Arc<Pool>,
    plan: &Plan,
    setup: &Setup,
    turn: &Turn,
    losses: &mut Losses,
) -> Result<(Claimed, Work, String), TurnError> {
    // Known before a free process is waited for, so that the response can name it when it begins.
    turn.session.tell(&setup.session);
    let script = plan.whole(BTreeMap::new())?;
    losses.append(script.losses);
    let process = pool.fresh(&plan.launch, setup.clone()).await?;
    let beginning = Beginning {
        opening: plan.opening.clone(),
        model: plan.model.clone(),
        tools: plan.tools.clone(),
        script: script.value,
    };
    Ok((process, Work::Fresh(Box::new(beginning)), setup.session.clone()))
}

/// A live process that knows the beginning, and what it is still to be told (A3).
fn live(pool: &Pool, plan: &Plan, setup: &Setup, losses: &mut Losses) -> Option<(Claimed, Work, String)> {
    let found = pool.find(&plan.lineage, &plan.launch, setup)?;
    let work = if found.calls.is_empty() {
        plan.since(found.count).ok().map(|script| {
            losses.append(script.losses);
            Work::Continue { script: script.value }
        })
    } else {
        plan.results(found.count, &found.calls).map(Work::Results)
    };
    let Some(work) = work else {
        // The conversation has gone past it in a way only a fresh process gets right.
        found.process.end();
        return None;
    };
    Some((found.process, work, found.session))
}

async fn first_event(mut inbox: Inbox) -> Result<EventStream, (Asked, TurnError)> {
    match inbox.next().await {
        Some(Ok(first)) => Ok(Box::pin(stream::iter([Ok(first)]).chain(inbox))),
        Some(Err(error)) => Err((inbox.asked(), error)),
        None => Err((inbox.asked(), TurnError::upstream("the agent said nothing; send the request again"))),
    }
}
