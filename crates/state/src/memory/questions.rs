//! Questions and rules in memory.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use toolgate_model::approval::{Question, QuestionId, Resolution};

use super::MemoryStore;
use crate::question::{MAX_QUESTIONS_PER_PAGE, write_question, write_resolution};
use crate::rule::MAX_STORED_RULES;
use crate::{QuestionStore, Resolved, RuleStore, StoreError, StoredQuestion, StoredRule, UnixMillis};

/// The most resolved questions that are kept.
const MAX_RESOLVED: usize = 10_000;

/// All questions and rules.
#[derive(Debug, Default)]
pub(super) struct ApprovalTables {
    questions: Mutex<BTreeMap<QuestionId, StoredQuestion>>,
    rules: Mutex<Vec<StoredRule>>,
}

impl QuestionStore for MemoryStore {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            write_question(question)?;
            let stored = StoredQuestion { question: question.clone(), resolution: None };
            let mut questions = self.approvals.questions.lock();
            questions.entry(question.id.clone()).or_insert(stored);
            evict(&mut questions);
            Ok(())
        })
    }

    fn resolve<'a>(
        &'a self,
        id: &'a QuestionId,
        resolution: &'a Resolution,
    ) -> BoxFuture<'a, Result<Resolved, StoreError>> {
        Box::pin(async move {
            write_resolution(resolution)?;
            let mut questions = self.approvals.questions.lock();
            let Some(stored) = questions.get_mut(id) else { return Ok(Resolved::Unknown) };
            if let Some(before) = &stored.resolution {
                return Ok(Resolved::Before(before.clone()));
            }
            stored.resolution = Some(resolution.clone());
            Ok(Resolved::Now)
        })
    }

    fn set_deadline<'a>(
        &'a self,
        id: &'a QuestionId,
        deadline: Option<UnixMillis>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let mut questions = self.approvals.questions.lock();
            let waiting = questions.get_mut(id).filter(|stored| stored.resolution.is_none());
            let Some(stored) = waiting else { return Ok(false) };
            stored.question.deadline = deadline.map(|UnixMillis(at)| at);
            Ok(true)
        })
    }

    fn question<'a>(
        &'a self,
        id: &'a QuestionId,
    ) -> BoxFuture<'a, Result<Option<StoredQuestion>, StoreError>> {
        Box::pin(async move { Ok(self.approvals.questions.lock().get(id).cloned()) })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, StoreError>> {
        Box::pin(async move {
            let questions = self.approvals.questions.lock();
            let waiting = questions.values().filter(|stored| stored.resolution.is_none());
            let mut waiting: Vec<Question> = waiting.map(|stored| stored.question.clone()).collect();
            waiting.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
            waiting.truncate(MAX_QUESTIONS_PER_PAGE);
            Ok(waiting)
        })
    }

    fn resolved(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredQuestion>, StoreError>> {
        Box::pin(async move {
            let questions = self.approvals.questions.lock();
            let mut resolved: Vec<StoredQuestion> = questions
                .values()
                .filter(|stored| resolved_at(stored).is_some_and(|at| at < before.0))
                .cloned()
                .collect();
            resolved.sort_by_key(|stored| std::cmp::Reverse(resolved_at(stored)));
            resolved.truncate(limit.min(MAX_QUESTIONS_PER_PAGE));
            Ok(resolved)
        })
    }

    fn prune_questions(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut questions = self.approvals.questions.lock();
            let before = questions.len();
            questions.retain(|_, stored| resolved_at(stored).is_none_or(|at| at >= older_than.0));
            Ok(u64::try_from(before - questions.len()).unwrap_or(u64::MAX))
        })
    }
}

fn resolved_at(stored: &StoredQuestion) -> Option<i64> {
    stored.resolution.as_ref().map(|resolution| resolution.at)
}

/// Keeps every waiting question, and the newest of the others.
fn evict(questions: &mut BTreeMap<QuestionId, StoredQuestion>) {
    while questions.len() > MAX_RESOLVED {
        let oldest = questions
            .values()
            .filter(|stored| stored.resolution.is_some())
            .min_by_key(|stored| resolved_at(stored));
        let Some(id) = oldest.map(|stored| stored.question.id.clone()) else { return };
        questions.remove(&id);
    }
}

impl RuleStore for MemoryStore {
    fn add_rule<'a>(&'a self, rule: &'a StoredRule) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut rules = self.approvals.rules.lock();
            let in_force = rules.iter().filter(|other| is_in_force(other, rule.created)).count();
            if in_force >= MAX_STORED_RULES {
                return Err(StoreError::TooManyRules);
            }
            if rules.iter().all(|other| other.id != rule.id) {
                rules.push(rule.clone());
                rules.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
            }
            Ok(())
        })
    }

    fn rules(&self, now: UnixMillis) -> BoxFuture<'_, Result<Vec<StoredRule>, StoreError>> {
        Box::pin(async move {
            let rules = self.approvals.rules.lock();
            Ok(rules.iter().filter(|rule| is_in_force(rule, now)).cloned().collect())
        })
    }

    fn revoke_rule<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let mut rules = self.approvals.rules.lock();
            let before = rules.len();
            rules.retain(|rule| rule.id != id);
            Ok(rules.len() < before)
        })
    }

    fn note_rule_use<'a>(&'a self, id: &'a str, at: UnixMillis) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut rules = self.approvals.rules.lock();
            if let Some(rule) = rules.iter_mut().find(|rule| rule.id == id) {
                rule.last_used = rule.last_used.max(Some(at));
            }
            Ok(())
        })
    }

    fn prune_rules(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut rules = self.approvals.rules.lock();
            let before = rules.len();
            rules.retain(|rule| rule.expires.is_none_or(|end| end >= older_than));
            Ok(u64::try_from(before - rules.len()).unwrap_or(u64::MAX))
        })
    }
}

fn is_in_force(rule: &StoredRule, now: UnixMillis) -> bool {
    rule.expires.is_none_or(|end| end > now)
}
