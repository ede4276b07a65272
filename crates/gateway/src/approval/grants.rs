//! Rules that people make while the gateway runs: from a suggestion they ticked, by hand, or for a limited time.

use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;
use toolgate_model::approval::{AgentRule, PermissionUpdate, QuestionId, RuleChange, UpdateDestination};
use toolgate_state::{RuleScope, StoreError, StoredRule, UnixMillis};
use uuid::Uuid;

use super::folder::Folder;
use super::inbox::{Inbox, millis};
use super::rule::Rule;

/// The only mode that can be granted, as a rule: all edits in the working directory.
const ACCEPT_EDITS: &str = "acceptEdits";

/// Where a new rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScopeName {
    /// In the session.
    Session,
    /// For agents that work in the same folder.
    Project,
    /// Everywhere.
    All,
}

impl ScopeName {
    /// The scope, for a session and a folder. The error says what is missing.
    pub(crate) fn scope(self, session: Option<&str>, folder: Option<&str>) -> Result<RuleScope, String> {
        match self {
            Self::Session => {
                let session = session.ok_or("a rule for a session needs the `session`")?;
                Ok(RuleScope::Session(session.to_owned()))
            }
            Self::Project => {
                let folder = folder.ok_or("a rule for a project needs its `folder`")?;
                Ok(RuleScope::Project(folder.to_owned()))
            }
            Self::All => Ok(RuleScope::All),
        }
    }
}

/// A rule that a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewRule {
    pub(crate) text: String,
    pub(crate) scope: RuleScope,
    /// The question whose answer it is part of.
    pub(crate) question: Option<QuestionId>,
    pub(crate) by: String,
    /// How long it applies; `None` until it is revoked.
    pub(crate) lifetime: Option<Duration>,
}

/// Why a rule was not added.
#[derive(Debug, Error)]
pub(crate) enum RuleRefused {
    #[error("the rule `{text}`: {why}")]
    Invalid { text: String, why: String },
    #[error("the rule could not be stored")]
    Store(#[from] StoreError),
}

impl Inbox {
    /// Adds rules and applies them to the questions that wait.
    pub(crate) async fn add_rules(&self, rules: Vec<NewRule>) -> Result<Vec<StoredRule>, RuleRefused> {
        let now = self.clock.now();
        let in_force = self.store.rules(now).await?;
        let mut added = Vec::new();
        for rule in rules {
            let parsed = parse(&rule.text)?;
            let stored = StoredRule {
                id: Uuid::now_v7().simple().to_string(),
                text: parsed.to_string(),
                scope: rule.scope,
                question: rule.question,
                by: rule.by,
                created: now,
                expires: rule.lifetime.map(|lifetime| UnixMillis(now.0.saturating_add(millis(lifetime)))),
                last_used: None,
            };
            let same = |other: &&StoredRule| {
                other.text == stored.text && other.scope == stored.scope && other.expires.is_none()
            };
            if let Some(same) = in_force.iter().find(same) {
                added.push(same.clone());
                continue;
            }
            self.store.add_rule(&stored).await?;
            tracing::info!(rule = stored.text, by = stored.by, "a rule was added");
            added.push(stored);
        }
        self.apply_new_rules().await?;
        Ok(added)
    }

    /// Revokes a rule. False if there is none with this id.
    pub(crate) async fn revoke_rule(&self, id: &str) -> Result<bool, StoreError> {
        let revoked = self.store.revoke_rule(id).await?;
        if revoked {
            tracing::info!(rule = id, "a rule was revoked");
        }
        Ok(revoked)
    }

    /// The rules of people that are in force, oldest first.
    pub(crate) async fn stored_rules(&self) -> Result<Vec<StoredRule>, StoreError> {
        self.store.rules(self.clock.now()).await
    }

    /// The operator's rules.
    pub(crate) fn operator_rules(&self) -> impl Iterator<Item = &Rule> {
        self.config.rules.iter()
    }
}

fn parse(text: &str) -> Result<Rule, RuleRefused> {
    Rule::parse(text).map_err(|why| RuleRefused::Invalid { text: text.to_owned(), why: why.to_string() })
}

/// Where the updates of an answer apply.
pub(super) struct UpdateContext<'a> {
    /// Chosen by the person; `None` to follow each suggestion.
    pub(super) scope: Option<ScopeName>,
    pub(super) session: &'a str,
    pub(super) folder: &'a Folder,
    pub(super) question: &'a QuestionId,
    pub(super) by: &'a str,
}

/// The rules that ticked updates mean. The error says which of them cannot be granted.
pub(super) fn rules_of(
    updates: &[PermissionUpdate],
    context: &UpdateContext<'_>,
) -> Result<Vec<NewRule>, String> {
    let mut rules = Vec::new();
    for update in updates {
        match update {
            PermissionUpdate::AddRules(RuleChange { rules: chosen, behavior, destination }) => {
                let scope = context.scope.unwrap_or(scope_of(*destination));
                let scope = scope.scope(Some(context.session), context.folder.as_str())?;
                for AgentRule { tool_name, rule_content } in chosen {
                    let rule = Rule::from_update(tool_name, rule_content.as_deref(), *behavior);
                    let rule = rule.map_err(|why| format!("the rule for {tool_name}: {why}"))?;
                    rules.push(context.rule(rule.to_string(), scope.clone()));
                }
            }
            PermissionUpdate::SetMode { mode, destination: _ } if mode == ACCEPT_EDITS => {
                let folder = context.folder.as_str().ok_or("the agent's folder is not known")?;
                let text = format!("allow Edit({}/**)", folder.trim_end_matches('/'));
                rules.push(context.rule(text, RuleScope::Session(context.session.to_owned())));
            }
            PermissionUpdate::SetMode { mode, destination: _ } => {
                return Err(format!("the mode `{mode}` cannot be granted here: add rules instead"));
            }
            // The agent gets these itself, for its session.
            PermissionUpdate::AddDirectories { .. } => {}
            PermissionUpdate::ReplaceRules(_) | PermissionUpdate::RemoveRules(_) => {
                return Err("rules are removed with DELETE /console/api/rules/ID".to_owned());
            }
            PermissionUpdate::RemoveDirectories { .. } => {
                return Err("folders cannot be removed from a running session".to_owned());
            }
        }
    }
    for rule in &rules {
        parse(&rule.text).map_err(|refused| refused.to_string())?;
    }
    Ok(rules)
}

impl UpdateContext<'_> {
    fn rule(&self, text: String, scope: RuleScope) -> NewRule {
        NewRule { text, scope, question: Some(self.question.clone()), by: self.by.to_owned(), lifetime: None }
    }
}

fn scope_of(destination: UpdateDestination) -> ScopeName {
    match destination {
        UpdateDestination::Session | UpdateDestination::CliArg => ScopeName::Session,
        UpdateDestination::LocalSettings | UpdateDestination::ProjectSettings => ScopeName::Project,
        UpdateDestination::UserSettings => ScopeName::All,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules(updates: Value, scope: Option<ScopeName>) -> Result<Vec<(String, RuleScope)>, String> {
        let updates: Vec<PermissionUpdate> = serde_json::from_value(updates).expect("updates");
        let (folder, question) = (Folder::new(std::path::Path::new("/w")), QuestionId::new("q"));
        let context = UpdateContext { scope, session: "s", folder: &folder, question: &question, by: "api" };
        let rules = rules_of(&updates, &context)?;
        Ok(rules.into_iter().map(|rule| (rule.text, rule.scope)).collect())
    }

    fn add_rules(tool: &str, content: &str, destination: &str) -> Value {
        json!([{ "type": "addRules", "rules": [{ "toolName": tool, "ruleContent": content }], "behavior": "allow", "destination": destination }])
    }

    fn one(text: &str, scope: RuleScope) -> Vec<(String, RuleScope)> {
        vec![(text.to_owned(), scope)]
    }

    #[test]
    fn a_suggested_rule_applies_where_its_destination_says_or_where_the_person_says() {
        let (session, project) = (RuleScope::Session("s".to_owned()), RuleScope::Project("/w".to_owned()));
        for (destination, scope) in [
            ("session", &session),
            ("cliArg", &session),
            ("localSettings", &project),
            ("projectSettings", &project),
            ("userSettings", &RuleScope::All),
        ] {
            let suggested = add_rules("Bash", "npm test:*", destination);
            assert_eq!(rules(suggested.clone(), None), Ok(one("allow Bash(npm test:*)", scope.clone())));
            assert_eq!(
                rules(suggested, Some(ScopeName::Session)),
                Ok(one("allow Bash(npm test:*)", session.clone()))
            );
        }
    }

    #[test]
    fn the_mode_accept_edits_is_a_rule_for_edits_in_the_folder_and_no_other_mode_is_granted() {
        let mode = |mode: &str, scope| {
            rules(json!([{ "type": "setMode", "mode": mode, "destination": "session" }]), scope)
        };
        let expected = Ok(one("allow Edit(/w/**)", RuleScope::Session("s".to_owned())));
        assert_eq!(mode("acceptEdits", None), expected);
        assert_eq!(mode("acceptEdits", Some(ScopeName::All)), expected, "never beyond the session");
        for other in ["bypassPermissions", "auto", "dontAsk", "plan", "default"] {
            assert!(mode(other, None).is_err(), "{other}");
        }
    }

    #[test]
    fn folders_are_no_rules_and_removals_are_refused() {
        let directories =
            json!([{ "type": "addDirectories", "directories": ["/x"], "destination": "session" }]);
        assert_eq!(rules(directories, None), Ok(Vec::new()));
        let change =
            json!({ "rules": [{ "toolName": "Bash" }], "behavior": "deny", "destination": "session" });
        for kind in ["replaceRules", "removeRules"] {
            let mut update = change.clone();
            update["type"] = json!(kind);
            assert!(rules(json!([update]), None).is_err(), "{kind}");
        }
    }

    #[test]
    fn an_invalid_rule_is_refused_with_the_reason() {
        let error = rules(add_rules("Bash", "ls && pwd", "session"), None).expect_err("it is invalid");
        assert!(error.starts_with("the rule for Bash: "), "{error}");
    }
}
