//! Rules that people made while the gateway ran. The rules of the configuration are not stored.

use futures_util::future::BoxFuture;
use toolgate_model::approval::QuestionId;

use crate::{StoreError, UnixMillis};

/// The most rules that may be in force at a time: every rule is tried for every tool use.
pub const MAX_STORED_RULES: usize = 1_000;

/// Stores rules.
pub trait RuleStore: Send + Sync {
    /// Adds a rule. A known id changes nothing, so that repeating the call is safe. Refused when [`MAX_STORED_RULES`] are in
    /// force at the time of the rule's creation.
    fn add_rule<'a>(&'a self, rule: &'a StoredRule) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The rules that have neither expired at this time nor been revoked, oldest first and then by id.
    fn rules(&self, now: UnixMillis) -> BoxFuture<'_, Result<Vec<StoredRule>, StoreError>>;

    /// Revokes a rule. False if there is no such rule, or it is revoked already.
    fn revoke_rule<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Notes that a rule has decided something. An earlier time than the last one changes nothing.
    fn note_rule_use<'a>(&'a self, id: &'a str, at: UnixMillis) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes the rules that expired before `older_than`, and at some time the revoked ones. Returns how many.
    fn prune_rules(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// A rule with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRule {
    /// Identifies the rule.
    pub id: String,
    /// The rule as in the configuration: `allow Bash(npm test:*)`.
    pub text: String,
    /// Where it applies.
    pub scope: RuleScope,
    /// The question whose answer made it, if any.
    pub question: Option<QuestionId>,
    /// Who made it: `console`, `api`, `terminal`.
    pub by: String,
    /// When it was made.
    pub created: UnixMillis,
    /// When it ends; `None` if it does not.
    pub expires: Option<UnixMillis>,
    /// When it last decided something.
    pub last_used: Option<UnixMillis>,
}

/// Where a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// In one session.
    Session(String),
    /// For agents that work in this folder.
    Project(String),
    /// Everywhere.
    All,
}
