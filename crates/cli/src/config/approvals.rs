//! `[approvals]`: rules for the tools that agents run, and how long a question waits for an answer.

use toolgate_gateway::approval::{ApprovalConfig, Rule, Rules};

use super::problem::ReadContext;
use super::section::{ListForm, Section};

/// Every rule is tried for every question, so their number is bounded.
const MAX_RULES: usize = 1_000;

/// Reads the section. A missing key keeps its default.
pub(crate) fn read(root: &Section<'_>, context: &mut ReadContext<'_>) -> ApprovalConfig {
    let default = ApprovalConfig::default();
    let Some(section) = root.table("approvals", context) else { return default };
    section.expect_keys(&["timeout", "rules"], context);
    ApprovalConfig {
        timeout: section.duration("timeout", context).map_or(default.timeout, |timeout| timeout.value),
        rules: read_rules(&section, context),
    }
}

fn read_rules(section: &Section<'_>, context: &mut ReadContext<'_>) -> Rules {
    let written = section.texts("rules", ListForm::Many, context).unwrap_or_default();
    if let Some(first_too_many) = written.get(MAX_RULES) {
        context.error(
            first_too_many.position,
            format!("at most {MAX_RULES} rules are allowed: combine some with `*`"),
        );
    }
    let mut rules = Vec::new();
    for rule in written.iter().take(MAX_RULES) {
        match Rule::parse(&rule.value) {
            Ok(parsed) => rules.push(parsed),
            Err(why) => context.error(rule.position, format!("the rule \"{}\": {why}", rule.value)),
        }
    }
    Rules::new(rules)
}
