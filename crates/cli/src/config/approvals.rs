//! `[approvals]`: what agents may do without asking, and how long a question waits.

use toolgate_gateway::approval::{ApprovalConfig, Rule, Rules};

use super::problem::Reading;
use super::section::{ListForm, Section};

/// More rules than anybody keeps an eye on; each is tried for every question.
const MOST_RULES: usize = 1_000;

/// Reads the section; what is not written is as usual.
pub(crate) fn read(root: &Section<'_>, reading: &mut Reading<'_>) -> ApprovalConfig {
    let usual = ApprovalConfig::default();
    let Some(section) = root.table("approvals", reading) else { return usual };
    section.expect_keys(&["timeout", "rules"], reading);
    ApprovalConfig {
        timeout: section.duration("timeout", reading).map_or(usual.timeout, |timeout| timeout.value),
        rules: read_rules(&section, reading),
    }
}

fn read_rules(section: &Section<'_>, reading: &mut Reading<'_>) -> Rules {
    let written = section.texts("rules", ListForm::Many, reading).unwrap_or_default();
    if let Some(first_too_many) = written.get(MOST_RULES) {
        reading
            .error(first_too_many.place, format!("there are at most {MOST_RULES} rules: join some with `*`"));
    }
    let mut rules = Vec::new();
    for rule in written.iter().take(MOST_RULES) {
        match Rule::parse(&rule.value) {
            Ok(parsed) => rules.push(parsed),
            Err(why) => reading.error(rule.place, format!("the rule \"{}\": {why}", rule.value)),
        }
    }
    Rules::new(rules)
}
