//! Applies the rules to one tool use. Deny beats ask and ask beats allow, in whatever order they are written.

mod command;
mod file;
mod programs;
#[cfg(test)]
mod tests;
mod workdir;

use serde_json::Value;

use super::effect::{Effect, Syntax};
use super::pattern::Match;
use super::rule::{Argument, Rule, RuleAction};
use command::CommandUse;
use file::FileUse;
pub use workdir::Workdir;

/// Rules in force.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

/// The result of applying the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling<'r> {
    /// This rule decides.
    Decided(&'r Rule),
    /// Whether this ask or deny rule applies is not certain before the tool runs.
    Uncertain(&'r Rule),
    /// No rule applies.
    NotCovered,
}

impl Rules {
    /// Takes the rules in any order.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All rules, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// Adds a rule.
    pub fn add(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    /// Removes the rules for which this returns false.
    pub fn retain(&mut self, keep: impl FnMut(&Rule) -> bool) {
        self.0.retain(keep);
    }

    /// Applies the rules to this tool use. Looks at the disk, to see where paths lead.
    pub fn judge(&self, tool: &str, input: &Value, workdir: &Workdir) -> Ruling<'_> {
        let effect = Effect::of(tool, input);
        let of_tool = || self.0.iter().filter(|rule| rule.applies_to(tool, effect));
        let mut found = MatchedRules::default();
        for rule in of_tool().filter(|rule| rule.argument == Argument::Any) {
            let is_allowed =
                rule.action != RuleAction::Allow || !file::is_protected(effect, tool, input, workdir);
            found.add(rule, Match::of(is_allowed));
        }
        match effect {
            Effect::Command(syntax) => {
                let command = CommandUse::new(input, syntax, workdir);
                for rule in self.restricting() {
                    found.add(rule, command.match_rule(rule, tool, workdir));
                }
                let allowing: Vec<&Rule> =
                    of_tool().filter(|rule| rule.action == RuleAction::Allow).collect();
                found.allowed = found.allowed.or_else(|| command.allowed_by(&allowing));
            }
            Effect::Read | Effect::Edit => {
                let file = FileUse::new(tool, input, workdir);
                for rule in of_tool() {
                    found.add(rule, file.match_rule(rule));
                }
            }
            Effect::Fetch => {
                for rule in of_tool() {
                    found.add(rule, match_url(rule, input));
                }
            }
            Effect::Other => {}
        }
        if matches!(effect, Effect::Other | Effect::Command(Syntax::Unknown)) {
            for rule in self.restricting() {
                found.add(rule, file::match_strings(rule, input, workdir));
            }
        }
        match found {
            MatchedRules { strongest: Some(rule), .. } => Ruling::Decided(rule),
            MatchedRules { uncertain: Some(rule), .. } => Ruling::Uncertain(rule),
            MatchedRules { allowed: Some(rule), .. } => Ruling::Decided(rule),
            MatchedRules { .. } => self.fallback(),
        }
    }

    fn restricting(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter().filter(|rule| rule.action != RuleAction::Allow)
    }

    fn fallback(&self) -> Ruling<'_> {
        let rest = self.0.iter().filter(|rule| rule.is_fallback());
        rest.max_by_key(|rule| rule.action).map_or(Ruling::NotCovered, Ruling::Decided)
    }
}

fn match_url(rule: &Rule, input: &Value) -> Match {
    match &rule.argument {
        Argument::Domain(pattern) => {
            let address = input.get("url").and_then(Value::as_str);
            address.map_or(Match::Maybe, |address| pattern.matches(address))
        }
        Argument::Any | Argument::Command(_) | Argument::Path(_) => Match::No,
    }
}

/// The rules that apply.
#[derive(Debug, Default)]
struct MatchedRules<'r> {
    /// The strongest of the ask and deny rules that apply.
    strongest: Option<&'r Rule>,
    /// An ask or deny rule that may apply.
    uncertain: Option<&'r Rule>,
    allowed: Option<&'r Rule>,
}

impl<'r> MatchedRules<'r> {
    fn add(&mut self, rule: &'r Rule, matched: Match) {
        match (rule.action, matched) {
            (_, Match::No) | (RuleAction::Allow, Match::Maybe) => {}
            (RuleAction::Allow, Match::Yes) => self.allowed = Some(rule),
            (RuleAction::Ask | RuleAction::Deny, Match::Maybe) => self.uncertain = Some(rule),
            (RuleAction::Ask | RuleAction::Deny, Match::Yes) => {
                if self.strongest.is_none_or(|other| other.action < rule.action) {
                    self.strongest = Some(rule);
                }
            }
        }
    }
}
