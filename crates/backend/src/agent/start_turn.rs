//! Starts a turn: replays a stored reply, or finds a process and gives it the turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use toolgate_dialect::claude_stream_json::HiddenSteps;
use toolgate_model::lineage::PrefixHash;
use toolgate_model::{Block, ErrorKind, Losses, Message, Reply, TurnError};
use uuid::Uuid;

use super::observer::TurnWatch;
use super::opening::Setup;
use super::plan::TurnPlan;
use super::pool::ProcessPool;
use super::process_table::ClaimedProcess;
use super::records::{AgentRecord, read_reply, read_steps};
use super::reply_channel::{ModelCall, ReplyReceiver, reply_channel};
use super::retry::{EarlierRun, IdentifiedRequest, identify};
use super::turn_job::{Beginning, RecordInputs, TurnJob, TurnWork};
use super::turn_steps::resumable;
use crate::turn::{Answer, AnswerBody, Batch, EventStream, ReplyOrigin, Turn};

/// The maximum number of processes tried for one turn. Only a process that has not called the model is replaced.
const MAX_ATTEMPTS: u32 = 3;

/// Starts a turn; resolves with the first event.
pub(super) async fn start(pool: Arc<ProcessPool>, name: Arc<str>, turn: Turn) -> Result<Answer, TurnError> {
    let IdentifiedRequest { turn, mut plan, sent, runs, earlier } = identify(&pool, turn).await?;
    let mut losses = std::mem::take(&mut plan.losses);
    if let EarlierRun::Retried(record) = &earlier {
        enter_session(&pool, &turn, &record.session);
        let answer = Answer::new(name, AnswerBody::Events(replay(record)?));
        let receipt = runs.receipt(&pool, &turn, record.run);
        return Ok(Answer { losses, origin: ReplyOrigin::Record, receipt, ..answer });
    }
    let mut memory = Memory::load(&pool, &plan, &turn).await;
    let run = match &earlier {
        EarlierRun::Interrupted(record) => Run {
            id: record.run,
            session: Some(record.session.clone()),
            unfinished: resumable(read_steps(&record.steps), &plan.tools),
        },
        EarlierRun::None | EarlierRun::Over | EarlierRun::Retried(_) => {
            Run { id: Uuid::now_v7(), session: memory.session.clone(), unfinished: Vec::new() }
        }
    };
    let setup = Setup {
        opening: plan.opening.clone(),
        tools: plan.tools.clone(),
        fingerprint: plan.fingerprint,
        session: turn.session.named().map(str::to_owned).or(run.session).unwrap_or_else(new_session),
        caller: Arc::clone(&turn.caller),
    };
    if matches!(earlier, EarlierRun::Over) {
        // If this run ends without a reply, a retry must not get the reply of the run before.
        pool.records().save(&turn.caller, AgentRecord::begun(run.id, plan.key, setup.session.clone())).await;
    }
    let hidden =
        HiddenSteps { by_reply: std::mem::take(&mut memory.steps_by_reply), unfinished: run.unfinished };
    let mut attempts = 0;
    let mut is_observed = false;
    loop {
        let may_be_live = attempts == 0 && hidden.unfinished.is_empty();
        let live = if may_be_live { live(&pool, &plan, &setup, &mut losses) } else { None };
        let (process, work, session) = if let Some(live) = live {
            live
        } else {
            // Set before waiting for a process, so that the response headers can name the session.
            is_observed |= enter_session(&pool, &turn, &setup.session);
            fresh(&pool, &plan, &setup, hidden.clone(), &mut losses).await?
        };
        let session = turn.session.named().map_or(session, str::to_owned);
        is_observed |= enter_session(&pool, &turn, &session);
        let watch =
            if is_observed { TurnWatch::new(pool.observer(), &session, &turn) } else { TurnWatch::default() };
        let (reply_sender, reply_receiver) = reply_channel();
        let (reply, lineage) = (plan.reply(&hidden.unfinished), plan.lineage.clone());
        let record_inputs = RecordInputs {
            caller: Arc::clone(&turn.caller),
            run: run.id,
            key: plan.key,
            request: Arc::clone(&turn.request),
            earlier_steps: hidden.unfinished.clone(),
            run_guards: runs.clone(),
        };
        let transcript = plan.transcript(session, sent).after(memory.last_reply.as_ref());
        process.begin(TurnJob {
            turn: turn.id,
            transcript,
            work,
            reply,
            watch,
            lineage,
            record_inputs,
            reply_sender,
        });
        attempts += 1;
        match first_event(reply_receiver).await {
            Ok(events) => {
                let receipt = runs.receipt(&pool, &turn, run.id);
                return Ok(Answer { losses, receipt, ..Answer::new(name, AnswerBody::Events(events)) });
            }
            Err((ModelCall::NotStarted, error))
                if error.kind == ErrorKind::Upstream && attempts < MAX_ATTEMPTS =>
            {
                tracing::info!(id = %turn.id, %error, "an agent process failed before it called the model; trying another");
            }
            Err((ModelCall::NotStarted | ModelCall::MaybeStarted, error)) => return Err(error),
        }
    }
}

/// A run of the request: a new one, or an interrupted one that goes on.
struct Run {
    id: Uuid,
    /// The session, if it is known.
    session: Option<String>,
    /// What it did before it was interrupted.
    unfinished: Vec<Value>,
}

/// The recorded reply, which the client gets again.
fn replay(record: &AgentRecord) -> Result<EventStream, TurnError> {
    let reply = record.reply.as_ref().map(read_reply).transpose()?;
    let events = reply.map(Reply::into_events).unwrap_or_default();
    Ok(Box::pin(stream::iter([Ok(Batch::from(events))])))
}

/// Names the session of the turn and reports that the turn starts. Returns false if another sample of the same request
/// did so before: people watch the first one only.
fn enter_session(pool: &ProcessPool, turn: &Turn, session: &str) -> bool {
    let is_first = turn.session.set(session);
    if is_first {
        TurnWatch::new(pool.observer(), session, turn).started(turn);
    }
    is_first
}

/// What the records hold about this conversation.
#[derive(Default)]
struct Memory {
    steps_by_reply: BTreeMap<usize, Vec<Value>>,
    session: Option<String>,
    /// The turn that ended with the last reply of the conversation.
    last_reply: Option<AgentRecord>,
}

impl Memory {
    async fn load(pool: &ProcessPool, plan: &TurnPlan, turn: &Turn) -> Self {
        let replies =
            turn.request.messages.iter().enumerate().filter(|(_, message)| is_nonempty_reply(message));
        let ends: Vec<usize> = replies.map(|(index, _)| index + 1).collect();
        let mut memory = Self::default();
        // Records of the session itself override the others, so they come last.
        for lineage in plan.lineage_without_session.iter().chain([&plan.lineage]) {
            let hashes: Vec<_> = ends.iter().map(|end| lineage.at(*end)).collect();
            if !hashes.is_empty() {
                let records = pool.records().find_by_replies(&turn.caller, hashes.clone()).await;
                memory.add_records(&hashes, records);
            }
        }
        memory
    }

    fn add_records(&mut self, replies: &[PrefixHash], records: Vec<AgentRecord>) {
        for record in records {
            let steps = read_steps(&record.steps);
            let number = replies.iter().position(|reply| Some(*reply) == record.after);
            match number {
                Some(number) if steps.is_empty() => drop(self.steps_by_reply.remove(&number)),
                Some(number) => drop(self.steps_by_reply.insert(number, steps)),
                None => {}
            }
            self.session = Some(record.session.clone());
            if record.after.as_ref() == replies.last() {
                self.last_reply = Some(record);
            }
        }
    }
}

/// True for assistant messages that the dialect writes, which are those with content.
fn is_nonempty_reply(message: &Message) -> bool {
    let Message::Assistant(assistant) = message else { return false };
    assistant.content.iter().any(|block| match block {
        Block::Text(text) | Block::Refusal(text) => !text.text.is_empty(),
        Block::Reasoning(_) | Block::Opaque(_) | Block::ToolCall(_) => true,
    })
}

fn new_session() -> String {
    Uuid::now_v7().to_string()
}

/// A process without a conversation, and the whole conversation as its work.
async fn fresh(
    pool: &Arc<ProcessPool>,
    plan: &TurnPlan,
    setup: &Setup,
    hidden: HiddenSteps,
    losses: &mut Losses,
) -> Result<(ClaimedProcess, TurnWork, String), TurnError> {
    let script = plan.whole(hidden)?;
    losses.append(script.losses);
    let process = pool.fresh(&plan.launch, setup.clone()).await?;
    let beginning =
        Beginning { opening: plan.opening.clone(), tools: plan.tools.clone(), script: script.value };
    Ok((process, TurnWork::Fresh(Box::new(beginning)), setup.session.clone()))
}

/// A live process that holds the start of the conversation, and the rest as its work (A3).
fn live(
    pool: &ProcessPool,
    plan: &TurnPlan,
    setup: &Setup,
    losses: &mut Losses,
) -> Option<(ClaimedProcess, TurnWork, String)> {
    if pool.config().max_budget_usd.is_some() {
        // The program counts its cost per process, but every request gets the full budget.
        return None;
    }
    let found = pool.find(&plan.lineage, &plan.launch, setup)?;
    let work = if found.calls.is_empty() {
        plan.since(found.count).ok().map(|script| {
            losses.append(script.losses);
            TurnWork::Continue { script: script.value }
        })
    } else if pool.config().max_turns.is_none() {
        plan.results(found.count, &found.calls).map(TurnWork::Results)
    } else {
        // The program counts model calls from the last user message, but every request gets the full limit (M7).
        None
    };
    let Some(work) = work else {
        // Only a fresh process can continue this conversation correctly.
        found.process.end();
        return None;
    };
    Some((found.process, work, found.session))
}

async fn first_event(mut reply_receiver: ReplyReceiver) -> Result<EventStream, (ModelCall, TurnError)> {
    match reply_receiver.next().await {
        Some(Ok(first)) => Ok(Box::pin(stream::iter([Ok(first)]).chain(reply_receiver))),
        Some(Err(error)) => Err((reply_receiver.model_call(), error)),
        None => Err((
            reply_receiver.model_call(),
            TurnError::upstream("the agent's reply ended before its first event; send the request again"),
        )),
    }
}
