//! Conformance cases for rules.

use futures_util::future::{BoxFuture, join_all};
use toolgate_model::approval::QuestionId;

use super::Case;
use crate::{MAX_STORED_RULES, RuleScope, Store, StoreError, StoredRule, UnixMillis};

pub(super) const CASES: &[Case] = &[
    rules_are_read_back_unchanged_with_the_oldest_first,
    an_expired_rule_is_not_in_force,
    a_revoked_rule_is_not_in_force,
    the_last_use_is_stored,
    adding_again_changes_nothing,
    too_many_rules_are_refused,
    pruning_deletes_only_rules_that_are_over,
];

type Outcome<'a> = BoxFuture<'a, Result<(), StoreError>>;

/// A rule without an end, different for each id.
pub(crate) fn rule(id: &str, created: i64) -> StoredRule {
    StoredRule {
        id: id.to_owned(),
        text: format!("allow Bash(echo {id}:*)"),
        scope: RuleScope::All,
        question: None,
        by: "api".to_owned(),
        created: UnixMillis(created),
        expires: None,
        last_used: None,
    }
}

fn until(id: &str, expires: i64) -> StoredRule {
    StoredRule { expires: Some(UnixMillis(expires)), ..rule(id, 1) }
}

fn rules_are_read_back_unchanged_with_the_oldest_first(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert_eq!(store.rules(UnixMillis(0)).await?, []);
        let whole = StoredRule {
            scope: RuleScope::Project("/srv/it's 🦀".to_owned()),
            question: Some(QuestionId::new("q")),
            expires: Some(UnixMillis(900)),
            last_used: Some(UnixMillis(7)),
            ..rule("c", 5)
        };
        let in_session = StoredRule { scope: RuleScope::Session("s".to_owned()), ..rule("a", 5) };
        for rule in [&rule("d", 9), &whole, &in_session, &rule("b", -1)] {
            store.add_rule(rule).await?;
        }
        let expected = [rule("b", -1), in_session, whole, rule("d", 9)];
        assert_eq!(store.rules(UnixMillis(0)).await?, expected);
        Ok(())
    })
}

fn an_expired_rule_is_not_in_force(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.add_rule(&until("a", 100)).await?;
        assert_eq!(store.rules(UnixMillis(99)).await?, [until("a", 100)]);
        assert_eq!(store.rules(UnixMillis(100)).await?, []);
        Ok(())
    })
}

fn a_revoked_rule_is_not_in_force(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        assert!(!store.revoke_rule("a").await?);
        store.add_rule(&rule("a", 1)).await?;
        store.add_rule(&rule("b", 2)).await?;
        assert!(store.revoke_rule("a").await?);
        assert!(!store.revoke_rule("a").await?);
        assert_eq!(store.rules(UnixMillis(0)).await?, [rule("b", 2)]);
        Ok(())
    })
}

fn the_last_use_is_stored(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.note_rule_use("a", UnixMillis(5)).await?;
        store.add_rule(&rule("a", 1)).await?;
        for (at, last) in [(5, 5), (3, 5), (8, 8)] {
            store.note_rule_use("a", UnixMillis(at)).await?;
            let expected = StoredRule { last_used: Some(UnixMillis(last)), ..rule("a", 1) };
            assert_eq!(store.rules(UnixMillis(0)).await?, [expected]);
        }
        Ok(())
    })
}

fn adding_again_changes_nothing(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        store.add_rule(&rule("a", 1)).await?;
        store.add_rule(&StoredRule { text: "allow *".to_owned(), ..rule("a", 2) }).await?;
        assert_eq!(store.rules(UnixMillis(0)).await?, [rule("a", 1)]);
        Ok(())
    })
}

fn too_many_rules_are_refused(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        // Rules that have ended do not count.
        store.add_rule(&until("ended", 2)).await?;
        let rules: Vec<StoredRule> =
            (0..MAX_STORED_RULES + 8).map(|number| rule(&format!("{number}"), 2)).collect();
        let added = join_all(rules.iter().map(|rule| store.add_rule(rule))).await;
        let refused = added.iter().filter(|added| matches!(added, Err(StoreError::TooManyRules)));
        assert_eq!(refused.count(), 8);
        let in_force = store.rules(UnixMillis(2)).await?;
        assert_eq!(in_force.len(), MAX_STORED_RULES);
        assert!(store.revoke_rule(&in_force[0].id).await?);
        store.add_rule(&rule("next", 2)).await?;
        Ok(())
    })
}

fn pruning_deletes_only_rules_that_are_over(store: &dyn Store) -> Outcome<'_> {
    Box::pin(async move {
        for rule in [&until("old", 99), &until("new", 100), &rule("endless", -5)] {
            store.add_rule(rule).await?;
        }
        assert_eq!(store.prune_rules(UnixMillis(100)).await?, 1);
        assert_eq!(store.prune_rules(UnixMillis(100)).await?, 0);
        assert_eq!(store.rules(UnixMillis(0)).await?, [rule("endless", -5), until("new", 100)]);
        Ok(())
    })
}
