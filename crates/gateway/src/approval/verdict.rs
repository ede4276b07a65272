//! What the rules say about a tool use. There are two kinds of rules: the operator's, from the configuration, and those
//! that a person made while the gateway ran. A person's `allow` overrides the operator's `ask`, because that is what
//! "always allow" means, but never a `deny`.

use std::path::Path;

use toolgate_model::approval::ToolUse;
use toolgate_state::{RuleScope, StoredRule};

use super::rule::{Rule, RuleAction, RuleOrigin};
use super::rules::{Rules, Ruling, Workdir};

/// Tools that exist to ask a person. A rule cannot answer for them.
const TOOLS_FOR_PEOPLE: [&str; 2] = [ASK_USER, "ExitPlanMode"];

/// The tool that asks a person questions of the model.
pub(super) const ASK_USER: &str = "AskUserQuestion";

/// The decision of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow(DecidingRule),
    Deny(DecidingRule),
    /// A person decides.
    Ask {
        /// Why, in words that continue "Permission denied:".
        why: String,
        /// The rule that asks or may forbid it, if any.
        rule: Option<DecidingRule>,
    },
}

/// A rule that decided something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecidingRule {
    pub(super) text: String,
    /// Its id if a person made it; `None` for a rule of the configuration.
    pub(super) id: Option<String>,
}

/// Applies both kinds of rules. `stored` are the rules in force; those of other sessions and projects are skipped.
pub(super) fn judge(
    operator: &Rules,
    stored: &[StoredRule],
    tool_use: &ToolUse,
    workdir: &Workdir,
) -> Verdict {
    let applying = stored.iter().filter(|rule| applies(&rule.scope, &tool_use.session, workdir));
    let persons: Vec<Rule> = applying.filter_map(parsed).collect();
    let all = Rules::new(operator.iter().chain(&persons).cloned().collect());
    let ruling = all.judge(&tool_use.tool, &tool_use.input, workdir);
    let is_for_people = TOOLS_FOR_PEOPLE.contains(&tool_use.tool.as_str());
    match ruling {
        Ruling::Decided(rule) if rule.action == RuleAction::Deny => return Verdict::Deny(rule.into()),
        Ruling::Decided(rule) if rule.action == RuleAction::Allow && !is_for_people => {
            return Verdict::Allow(rule.into());
        }
        Ruling::Decided(_) | Ruling::Uncertain(_) | Ruling::NotCovered => {}
    }
    if !is_for_people && !persons.is_empty() {
        let forbidding = operator.iter().filter(|rule| rule.action == RuleAction::Deny);
        let granted = Rules::new(forbidding.chain(&persons).cloned().collect());
        if let Ruling::Decided(rule) = granted.judge(&tool_use.tool, &tool_use.input, workdir)
            && rule.action == RuleAction::Allow
        {
            return Verdict::Allow(rule.into());
        }
    }
    ask(ruling, tool_use)
}

impl From<&Rule> for DecidingRule {
    fn from(rule: &Rule) -> Self {
        let id = match rule.origin() {
            RuleOrigin::Stored { id } => Some(id.clone()),
            RuleOrigin::Config => None,
        };
        Self { text: rule.to_string(), id }
    }
}

fn ask(ruling: Ruling<'_>, tool_use: &ToolUse) -> Verdict {
    match ruling {
        Ruling::Decided(rule) if rule.action == RuleAction::Ask => Verdict::Ask {
            why: format!("the rule `{rule}` requires a person's approval"),
            rule: Some(rule.into()),
        },
        Ruling::Decided(_) => {
            Verdict::Ask { why: format!("only a person can answer {}", tool_use.tool), rule: None }
        }
        Ruling::Uncertain(rule) => Verdict::Ask {
            why: format!("the rule `{rule}` may forbid it, which cannot be determined before it runs"),
            rule: Some(rule.into()),
        },
        Ruling::NotCovered => {
            Verdict::Ask { why: format!("no rule covers this use of {}", tool_use.tool), rule: None }
        }
    }
}

fn applies(scope: &RuleScope, session: &str, workdir: &Workdir) -> bool {
    match scope {
        RuleScope::Session(id) => id == session,
        RuleScope::Project(folder) => workdir.project() == Path::new(folder),
        RuleScope::All => true,
    }
}

/// A rule that an earlier version accepted may be invalid now.
fn parsed(rule: &StoredRule) -> Option<Rule> {
    match Rule::parse(&rule.text) {
        Ok(parsed) => Some(parsed.with_origin(RuleOrigin::Stored { id: rule.id.clone() })),
        Err(error) => {
            tracing::warn!(rule = rule.text, %error, "a stored rule is not valid any more and is skipped");
            None
        }
    }
}
