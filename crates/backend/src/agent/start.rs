//! One turn: whether it was answered already, which process serves it, and with what.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use toolgate_dialect::claude_stream_json::OwnSteps;
use toolgate_model::lineage::PrefixHash;
use toolgate_model::{Block, ErrorKind, Losses, Message, TurnError};
use uuid::Uuid;

use super::job::{Beginning, Job, Notes, Work};
use super::opening::Setup;
use super::outbox::{Asked, Inbox, outbox};
use super::parts;
use super::plan::Plan;
use super::pool::Pool;
use super::records::{AgentRecord, Done, read_reply};
use super::roster::Claimed;
use super::running::Alone;
use super::session;
use super::steps::resumable;
use crate::host_headers::HostHeaders;
use crate::turn::{Answer, AnswerBody, Batch, EventStream, Rescues, Turn};

/// How many processes may be tried for one turn, each gone before it had asked the model.
const MAX_TRIES: u32 = 3;

/// Begins a turn; ready when the first event is there.
pub(super) async fn start(pool: Arc<Pool>, name: Arc<str>, turn: Turn) -> Result<Answer, TurnError> {
    let answer = |losses, events| Answer {
        upstream: name,
        losses,
        rescues: Rescues::default(),
        headers: HostHeaders::default(),
        body: AnswerBody::Events(events),
    };
    let mut turn = parts::complete(&pool, turn).await?;
    let mut plan = Plan::new(&turn, pool.config())?;
    let mut alone = pool.running().alone(plan.key).await;
    let mut known = pool.records().of(&turn.caller, plan.key).await;
    if known.is_none()
        && let Some(whole) = session::continued(&pool, &turn, &plan).await?
    {
        turn = parts::complete(&pool, whole.value).await?;
        plan = Plan::new(&turn, pool.config())?;
        plan.losses.append(whole.losses);
        alone = pool.running().alone(plan.key).await;
        known = pool.records().of(&turn.caller, plan.key).await;
    }
    let mut losses = std::mem::take(&mut plan.losses);
    if let Some(AgentRecord { reply: Some(reply), session, .. }) = &known {
        // B7: the client asks again for what was answered.
        turn.session.tell(session);
        let batch = Batch::from(read_reply(reply)?.into_events());
        return Ok(answer(losses, Box::pin(stream::iter([Ok(batch)]))));
    }
    let unfinished =
        known.map(|record| resumable(Done::read(&record.steps).steps, &plan.tools)).unwrap_or_default();
    let memory = Memory::of(&pool, &plan, &turn).await;
    let setup = Setup {
        opening: plan.opening.clone(),
        tools: plan.tools.clone(),
        wording: plan.wording,
        session: turn.session.asked().map(str::to_owned).or(memory.session).unwrap_or_else(new_session),
    };
    let own = OwnSteps { seen: memory.seen, unfinished };
    let mut tries = 0;
    loop {
        let may_be_live = tries == 0 && own.unfinished.is_empty();
        let live = if may_be_live { live(&pool, &plan, &setup, &mut losses) } else { None };
        let (process, work, session) = if let Some(live) = live {
            live
        } else {
            // Known before a free process is waited for, so that the response can name it when it begins.
            turn.session.tell(&setup.session);
            fresh(&pool, &plan, &setup, own.clone(), &mut losses).await?
        };
        let session = turn.session.asked().map_or(session, str::to_owned);
        turn.session.tell(&session);
        let (outbox, inbox) = outbox();
        let (reply, lineage) = (plan.reply(&own.unfinished), plan.lineage.clone());
        let (notes, talk) = (notes(&plan, &turn, &own, &alone), plan.talk(session));
        process.begin(Job { turn: turn.id, talk, work, reply, lineage, notes, outbox });
        tries += 1;
        match first_event(inbox).await {
            Ok(events) => return Ok(answer(losses, events)),
            Err((Asked::NotYet, error)) if error.kind == ErrorKind::Upstream && tries < MAX_TRIES => {
                tracing::info!(id = %turn.id, %error, "an agent process was gone before it had asked; trying another");
            }
            Err((Asked::NotYet | Asked::Perhaps, error)) => return Err(error),
        }
    }
}

/// What is remembered of this conversation.
#[derive(Default)]
struct Memory {
    seen: std::collections::BTreeMap<usize, Vec<serde_json::Value>>,
    session: Option<String>,
}

impl Memory {
    async fn of(pool: &Pool, plan: &Plan, turn: &Turn) -> Self {
        let said = turn.request.messages.iter().enumerate().filter(|(_, message)| says_something(message));
        let ends: Vec<usize> = said.map(|(index, _)| index + 1).collect();
        let mut memory = Self::default();
        // What is known of the session itself counts more, so it comes last.
        for lineage in plan.nameless.iter().chain([&plan.lineage]) {
            let replies: Vec<_> = ends.iter().map(|end| lineage.at(*end)).collect();
            if !replies.is_empty() {
                memory.learn(&replies, pool.records().after(&turn.caller, replies.clone()).await);
            }
        }
        memory
    }

    fn learn(&mut self, replies: &[PrefixHash], records: Vec<AgentRecord>) {
        for record in records {
            let steps = Done::read(&record.steps).steps;
            let number = replies.iter().position(|reply| Some(*reply) == record.after);
            match number {
                Some(number) if steps.is_empty() => drop(self.seen.remove(&number)),
                Some(number) => drop(self.seen.insert(number, steps)),
                None => {}
            }
            self.session = Some(record.session);
        }
    }
}

/// True for the assistant messages that are written out.
fn says_something(message: &Message) -> bool {
    let Message::Assistant(assistant) = message else { return false };
    assistant.content.iter().any(|block| match block {
        Block::Text(text) | Block::Refusal(text) => !text.text.is_empty(),
        Block::Reasoning(_) | Block::Opaque(_) | Block::ToolCall(_) => true,
    })
}

fn notes(plan: &Plan, turn: &Turn, own: &OwnSteps, alone: &Alone) -> Notes {
    Notes {
        caller: Arc::clone(&turn.caller),
        key: plan.key,
        request: Arc::clone(&turn.request),
        earlier: own.unfinished.clone(),
        alone: Arc::clone(alone),
    }
}

fn new_session() -> String {
    Uuid::now_v7().to_string()
}

/// A process that knows nothing yet, and everything it must be told.
async fn fresh(
    pool: &Arc<Pool>,
    plan: &Plan,
    setup: &Setup,
    own: OwnSteps,
    losses: &mut Losses,
) -> Result<(Claimed, Work, String), TurnError> {
    let script = plan.whole(own)?;
    losses.append(script.losses);
    let process = pool.fresh(&plan.launch, setup.clone()).await?;
    let beginning =
        Beginning { opening: plan.opening.clone(), tools: plan.tools.clone(), script: script.value };
    Ok((process, Work::Fresh(Box::new(beginning)), setup.session.clone()))
}

/// A live process that knows the beginning, and what it is still to be told (A3).
fn live(pool: &Pool, plan: &Plan, setup: &Setup, losses: &mut Losses) -> Option<(Claimed, Work, String)> {
    if pool.config().max_budget_usd.is_some() {
        // The program counts what it spent since it began, and every request is to have all of its budget.
        return None;
    }
    let found = pool.find(&plan.lineage, &plan.launch, setup)?;
    let work = if found.calls.is_empty() {
        plan.since(found.count).ok().map(|script| {
            losses.append(script.losses);
            Work::Continue { script: script.value }
        })
    } else if pool.config().max_turns.is_none() {
        plan.results(found.count, &found.calls).map(Work::Results)
    } else {
        // The program counts its steps from the user's words on, and every request is to have all of them (M7).
        None
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
