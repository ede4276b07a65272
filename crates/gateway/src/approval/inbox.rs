//! The inbox: every question that waits for a person, and the one outcome of each.
//!
//! ```text
//!  agent ─▶ rules ─▶ ask ─▶ store ─▶ waits ◀── answer (HTTP, terminal)
//!                                      ▲ ▲──── deadline
//!                                      └────── withdrawn: turn over, client gone, gateway restarted
//! ```
//!
//! The store decides which outcome counts: the first one. Everything here only carries the news.

#[cfg(test)]
mod tests;
mod waiting;
mod worker;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, OnceCell, Semaphore, mpsc, oneshot, watch};
use toolgate_backend::Tls;
use toolgate_model::approval::{Decision, Outcome, Question, QuestionId, Resolution, ToolUse};
use toolgate_model::observed::{Observation, Subject};
use toolgate_state::{Bus, Resolved, Store, StoreError, StoredRule};
use uuid::Uuid;

use super::ApprovalConfig;
use super::folder::Folder;
use super::message;
use super::verdict::{self, ASK_USER, DecidingRule, Verdict};
use super::webhook::Webhook;
use crate::clock::Clock;
use waiting::{Waiting, Withdrawal};

pub(crate) use worker::InboxWorker;

/// The maximum number of questions that wait at a time. More than this is a flood, not work for people.
pub const MAX_WAITING: usize = 1_000;

/// The questions of this gateway.
pub(crate) struct Inbox {
    pub(super) config: ApprovalConfig,
    pub(super) store: Arc<dyn Store>,
    bus: Arc<Bus>,
    pub(super) clock: Arc<dyn Clock>,
    open: Mutex<HashMap<QuestionId, OpenQuestion>>,
    slots: Arc<Semaphore>,
    withdrawals: mpsc::Sender<Withdrawal>,
    /// Wakes the worker when the next deadline may have changed.
    deadlines_changed: Notify,
    /// Counts what was asked and decided, for those who wait for news.
    changes: watch::Sender<u64>,
    /// Distinguishes the changes of this run from those of an earlier one.
    epoch: Uuid,
    recovered: OnceCell<()>,
    webhook: Option<Webhook>,
}

/// A question whose agent waits.
struct OpenQuestion {
    tool_use: ToolUse,
    folder: Folder,
    deadline: Option<i64>,
    resolution: oneshot::Sender<Resolution>,
}

/// How a tool use was decided.
#[derive(Debug, PartialEq)]
pub(crate) enum Conclusion {
    /// By a rule or a person.
    Decided(Decision),
    /// Nobody answered in time.
    Unanswered,
}

/// Who resolved a question, beside people: they are named by the way they answered.
const BY_TIMEOUT: &str = "timeout";
const BY_AGENT: &str = "agent";
const BY_RESTART: &str = "restart";
pub(super) const BY_RULE: &str = "rule: ";

impl Inbox {
    pub(crate) fn new(
        config: ApprovalConfig,
        store: Arc<dyn Store>,
        bus: Arc<Bus>,
        clock: Arc<dyn Clock>,
        tls: &Tls,
    ) -> (Arc<Self>, InboxWorker) {
        let (withdrawals, withdrawn) = mpsc::channel(MAX_WAITING);
        let webhook = config.webhook.clone().map(|config| Webhook::new(config, tls, Arc::clone(&clock)));
        let (webhook, webhook_worker) = webhook.unzip();
        let inbox = Arc::new(Self {
            config,
            store,
            bus,
            clock,
            open: Mutex::default(),
            slots: Arc::new(Semaphore::new(MAX_WAITING)),
            withdrawals,
            deadlines_changed: Notify::new(),
            changes: watch::channel(0).0,
            epoch: Uuid::now_v7(),
            recovered: OnceCell::new(),
            webhook,
        });
        let worker =
            InboxWorker { inbox: Arc::clone(&inbox), withdrawals: withdrawn, webhook: webhook_worker };
        (inbox, worker)
    }

    /// Decides about a tool use. That nobody answered in time is a denial that says so.
    pub(super) async fn decide(self: Arc<Self>, tool_use: ToolUse, folder: Folder) -> Decision {
        let (session, tool, input) =
            (tool_use.session.clone(), tool_use.tool.clone(), tool_use.input.clone());
        let decision = match Arc::clone(&self).conclude(tool_use, folder.clone()).await {
            Conclusion::Decided(decision) => decision,
            Conclusion::Unanswered => message::timed_out(&self.config),
        };
        if let Decision::Allow { input: edited, .. } = &decision {
            folder.note_allowed(&session, &tool, edited.as_ref().unwrap_or(&input));
        }
        decision
    }

    /// Concludes about a tool use: by the rules, or by a person. Dropping the future withdraws the question.
    pub(crate) async fn conclude(self: Arc<Self>, tool_use: ToolUse, folder: Folder) -> Conclusion {
        let verdict = match self.judge(&tool_use, &folder).await {
            Ok(verdict) => verdict,
            Err(error) => return Conclusion::Decided(store_failed(&error)),
        };
        let (decision, rule) = match verdict {
            Verdict::Allow(rule) => (Decision::ALLOW, rule),
            Verdict::Deny(rule) => (Decision::deny(message::denied_by_rule(&rule.text)), rule),
            Verdict::Ask { why, rule: _ } => return self.ask(tool_use, folder, why).await,
        };
        let resolution = self.resolution_by_rule(decision.clone(), &rule);
        let outcome = message::outcome(&resolution.outcome);
        tracing::info!(
            tool = tool_use.tool,
            session = tool_use.session,
            outcome,
            by = resolution.by,
            "a rule decided"
        );
        let observed = Observation::decided(None, &tool_use, &resolution);
        self.bus.publish(self.clock.now(), Subject::of_tool_use(&tool_use), observed);
        self.note_use(&rule).await;
        Conclusion::Decided(decision)
    }

    fn resolution_by_rule(&self, decision: Decision, rule: &DecidingRule) -> Resolution {
        let by = format!("{BY_RULE}{}", rule.text);
        Resolution { outcome: Outcome::Decided(decision), by, at: self.clock.now().0 }
    }

    /// Applies the rules that are in force now.
    pub(super) async fn judge(&self, tool_use: &ToolUse, folder: &Folder) -> Result<Verdict, StoreError> {
        let stored = self.store.rules(self.clock.now()).await?;
        Ok(self.judge_by(&stored, tool_use, folder))
    }

    fn judge_by(&self, stored: &[StoredRule], tool_use: &ToolUse, folder: &Folder) -> Verdict {
        verdict::judge(&self.config.rules, stored, tool_use, &folder.workdir(&tool_use.session))
    }

    async fn note_use(&self, rule: &DecidingRule) {
        let Some(id) = &rule.id else { return };
        if let Err(error) = self.store.note_rule_use(id, self.clock.now()).await {
            tracing::warn!(%error, "the last use of a rule could not be stored");
        }
    }

    async fn ask(self: Arc<Self>, tool_use: ToolUse, folder: Folder, why: String) -> Conclusion {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            tracing::warn!(
                tool = tool_use.tool,
                session = tool_use.session,
                "denied a tool use: too many questions wait"
            );
            return Conclusion::Decided(Decision::deny(message::too_many(&why)));
        };
        let question = self.new_question(tool_use, why);
        let stored = async {
            self.recover().await?;
            // Registered before it is stored, so that no answer comes too early.
            let waiting = Waiting::register(&self, &question, folder, slot);
            self.store.ask(&question).await?;
            Ok(waiting)
        };
        let (waiting, resolution) = match stored.await {
            Ok(waiting) => waiting,
            Err(error) => return Conclusion::Decided(store_failed(&error)),
        };
        self.announce_asked(&question);
        let resolution = resolution.await;
        drop(waiting);
        match resolution {
            Ok(Resolution { outcome: Outcome::Decided(decision), by, at: _ }) => {
                Conclusion::Decided(message::decision(decision, &by))
            }
            Ok(Resolution { outcome: Outcome::TimedOut | Outcome::Withdrawn, .. }) => Conclusion::Unanswered,
            // The sender is dropped only with the inbox.
            Err(_) => Conclusion::Decided(Decision::deny(message::STOPPING)),
        }
    }

    fn new_question(&self, tool_use: ToolUse, why: String) -> Question {
        let asked_at = self.clock.now().0;
        // A model that asks a person cannot go on without the answer.
        let timeout = self.config.timeout.filter(|_| tool_use.tool != ASK_USER);
        let deadline = timeout.map(|timeout| asked_at.saturating_add(millis(timeout)));
        let id = QuestionId::new(Uuid::now_v7().simple().to_string());
        Question { id, tool_use, why, asked_at, deadline }
    }

    /// Gives the outcome of questions that an earlier run of the gateway left waiting: their agents are gone.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        let recover = || async {
            loop {
                let left = self.store.waiting().await?;
                if left.is_empty() {
                    return Ok(());
                }
                for question in left {
                    let now = self.clock.now().0;
                    let resolution = if question.deadline.is_some_and(|deadline| deadline <= now) {
                        Resolution { outcome: Outcome::TimedOut, by: BY_TIMEOUT.to_owned(), at: now }
                    } else {
                        Resolution { outcome: Outcome::Withdrawn, by: BY_RESTART.to_owned(), at: now }
                    };
                    self.resolve(&question.id, &resolution).await?;
                }
            }
        };
        self.recovered.get_or_try_init(recover).await.copied()
    }

    /// Resolves a question, unless it is resolved already, and tells its agent.
    pub(super) async fn resolve(
        &self,
        id: &QuestionId,
        resolution: &Resolution,
    ) -> Result<Resolved, StoreError> {
        let resolved = self.store.resolve(id, resolution).await?;
        if resolved == Resolved::Now {
            self.deliver(id, resolution).await;
        }
        Ok(resolved)
    }

    /// Tells everybody how a question ended. Called once, after the question was resolved.
    pub(super) async fn deliver(&self, id: &QuestionId, resolution: &Resolution) {
        let open = self.open.lock().remove(id);
        tracing::info!(question = %id, by = resolution.by, outcome = message::outcome(&resolution.outcome), "a question ended");
        // Before the agent continues, so that everybody sees the decision before the tool runs.
        self.announce_resolved(id, resolution).await;
        if let Some(open) = open {
            // The agent may have left in the meantime.
            drop(open.resolution.send(resolution.clone()));
        }
    }

    /// Allows what the rules allow now: a new rule may cover questions that wait.
    pub(super) async fn apply_new_rules(&self) -> Result<(), StoreError> {
        let stored = self.store.rules(self.clock.now()).await?;
        let waiting: Vec<(QuestionId, ToolUse, Folder)> = {
            let open = self.open.lock();
            open.iter().map(|(id, open)| (id.clone(), open.tool_use.clone(), open.folder.clone())).collect()
        };
        for (id, tool_use, folder) in waiting {
            let (decision, rule) = match self.judge_by(&stored, &tool_use, &folder) {
                Verdict::Allow(rule) => (Decision::ALLOW, rule),
                Verdict::Deny(rule) => (Decision::deny(message::denied_by_rule(&rule.text)), rule),
                Verdict::Ask { .. } => continue,
            };
            self.note_use(&rule).await;
            self.resolve(&id, &self.resolution_by_rule(decision, &rule)).await?;
        }
        Ok(())
    }

    /// The questions that wait, oldest first.
    pub(crate) async fn waiting(&self) -> Result<Vec<Question>, StoreError> {
        self.recover().await?;
        self.store.waiting().await
    }

    /// The folder of a question whose agent waits, as text.
    pub(crate) fn folder_text(&self, id: &QuestionId) -> Option<String> {
        self.folder_of(id)?.as_str().map(str::to_owned)
    }

    /// Which rule would decide about a tool use, and why, as the API shows it.
    pub(crate) async fn try_rules(&self, tool_use: &ToolUse, folder: &Folder) -> Result<Value, StoreError> {
        let (decision, rule, why) = match self.judge(tool_use, folder).await? {
            Verdict::Allow(rule) => ("allow", Some(rule), "a rule allows it".to_owned()),
            Verdict::Deny(rule) => ("deny", Some(rule), "a rule denies it".to_owned()),
            Verdict::Ask { why, rule } => ("ask", rule, why),
        };
        let (text, id) = rule.map(|rule| (rule.text, rule.id)).unzip();
        Ok(json!({ "decision": decision, "why": why, "rule": text, "id": id.flatten() }))
    }

    /// The folder of a question whose agent waits.
    pub(super) fn folder_of(&self, id: &QuestionId) -> Option<Folder> {
        self.open.lock().get(id).map(|open| open.folder.clone())
    }

    /// Lets a question wait for ever. False if it does not wait any more.
    pub(super) async fn hold(&self, id: &QuestionId) -> Result<bool, StoreError> {
        let held = self.store.set_deadline(id, None).await?;
        if held {
            if let Some(open) = self.open.lock().get_mut(id) {
                open.deadline = None;
            }
            self.changed();
        }
        Ok(held)
    }

    /// Ends a question that can no longer be answered: its deadline has passed, or its agent is gone.
    pub(super) async fn end_overdue(&self, question: &Question) -> Result<(), StoreError> {
        let at = self.clock.now().0;
        let is_overdue = question.deadline.is_some_and(|deadline| deadline <= at);
        let resolution = if is_overdue {
            Resolution { outcome: Outcome::TimedOut, by: BY_TIMEOUT.to_owned(), at }
        } else if self.open.lock().contains_key(&question.id) {
            return Ok(());
        } else {
            Resolution { outcome: Outcome::Withdrawn, by: BY_AGENT.to_owned(), at }
        };
        self.resolve(&question.id, &resolution).await.map(drop)
    }

    /// Changes whenever something is asked, decided or put on hold.
    pub(crate) fn cursor(&self) -> String {
        format!("{}.{}", self.epoch.simple(), *self.changes.borrow())
    }

    /// Waits until something has changed since this cursor, at most for `longest`.
    pub(crate) async fn wait_for_change(&self, since: &str, longest: Duration) {
        let mut news = self.changes.subscribe();
        let out_of_date = async {
            while self.cursor() == since {
                if news.changed().await.is_err() {
                    return;
                }
            }
        };
        // Nothing new is an answer, too.
        tokio::time::timeout(longest, out_of_date).await.unwrap_or_default();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
        self.deadlines_changed.notify_one();
    }

    fn announce_asked(&self, question: &Question) {
        tracing::info!(
            question = %question.id, tool = question.tool_use.tool, session = question.tool_use.session, why = question.why,
            "a tool use waits for approval"
        );
        let subject = Subject::of_tool_use(&question.tool_use);
        self.bus.publish(self.clock.now(), subject, Observation::asked(question));
        self.changed();
        if let Some(webhook) = &self.webhook {
            webhook.send(message::asked(question));
        }
    }

    async fn announce_resolved(&self, id: &QuestionId, resolution: &Resolution) {
        self.changed();
        let question = match self.store.question(id).await {
            Ok(Some(stored)) => stored.question,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, question = %id, "the end of a question is not announced: it could not be read");
                return;
            }
        };
        let observed = Observation::decided(Some(id), &question.tool_use, resolution);
        self.bus.publish(self.clock.now(), Subject::of_tool_use(&question.tool_use), observed);
        if let Some(webhook) = &self.webhook {
            webhook.send(message::resolved(&question, resolution));
        }
    }
}

fn store_failed(error: &StoreError) -> Decision {
    tracing::error!(%error, "denied a tool use: the store failed");
    Decision::deny(message::STORE_FAILED)
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
