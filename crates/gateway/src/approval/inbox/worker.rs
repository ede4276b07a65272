//! What happens to questions without a person: deadlines pass and agents leave. Runs on a thread of its own, so that it
//! depends on no agent and no client.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_model::approval::{Outcome, QuestionId, Resolution};
use toolgate_state::Resolved;

use super::super::webhook::WebhookWorker;
use super::waiting::Withdrawal;
use super::{BY_AGENT, BY_TIMEOUT, Inbox};

/// The longest sleep until deadlines are checked again: the time of day may jump, and a machine may be suspended.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// Ends questions that nobody answers.
pub(crate) struct InboxWorker {
    pub(super) inbox: Arc<Inbox>,
    pub(super) withdrawals: mpsc::Receiver<Withdrawal>,
    pub(super) webhook: Option<WebhookWorker>,
}

impl InboxWorker {
    /// Runs until `stop` is cancelled. By then every agent must have ended, so that no question is left.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let Self { inbox, mut withdrawals, webhook } = self;
        if let Err(error) = inbox.recover().await {
            tracing::warn!(%error, "questions of an earlier run could not be closed; the next question tries again");
        }
        let serve = async {
            loop {
                tokio::select! {
                    biased;
                    Some(withdrawal) = withdrawals.recv() => inbox.withdraw(&withdrawal.id).await,
                    () = stop.cancelled() => return,
                    () = inbox.deadline_passed() => inbox.expire().await,
                }
            }
        };
        match webhook {
            None => serve.await,
            Some(webhook) => {
                tokio::join!(serve, webhook.run(stop.clone()));
            }
        }
    }
}

impl Inbox {
    /// Ready when a deadline has passed.
    async fn deadline_passed(&self) {
        loop {
            let next = self.open.lock().values().filter_map(|open| open.deadline).min();
            let left = next.map(|deadline| deadline - self.clock.now().0);
            if left.is_some_and(|left| left <= 0) {
                return;
            }
            let left = left.and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis);
            tokio::select! {
                () = tokio::time::sleep(left.unwrap_or(MAX_SLEEP).min(MAX_SLEEP)) => {}
                () = self.deadlines_changed.notified() => {}
            }
        }
    }

    async fn expire(&self) {
        let at = self.clock.now().0;
        let overdue: Vec<QuestionId> = {
            let open = self.open.lock();
            let overdue =
                open.iter().filter(|(_, open)| open.deadline.is_some_and(|deadline| deadline <= at));
            overdue.map(|(id, _)| id.clone()).collect()
        };
        for id in overdue {
            let resolution = Resolution { outcome: Outcome::TimedOut, by: BY_TIMEOUT.to_owned(), at };
            match self.resolve(&id, &resolution).await {
                Ok(Resolved::Now) => {}
                // Another gateway with the same store has ended it.
                Ok(Resolved::Before(before)) => self.deliver(&id, &before).await,
                Ok(Resolved::Unknown) => self.deliver(&id, &resolution).await,
                Err(error) => {
                    tracing::warn!(%error, question = %id, "the end of a question could not be stored");
                    self.deliver(&id, &resolution).await;
                }
            }
        }
    }

    async fn withdraw(&self, id: &QuestionId) {
        let resolution =
            Resolution { outcome: Outcome::Withdrawn, by: BY_AGENT.to_owned(), at: self.clock.now().0 };
        if let Err(error) = self.resolve(id, &resolution).await {
            tracing::warn!(%error, question = %id, "the withdrawal of a question could not be stored");
        }
    }
}
