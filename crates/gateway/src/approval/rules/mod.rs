//! Applies the rules to one tool use. Deny beats ask and ask beats allow, in whatever order they are written.

#[cfg(test)]
mod against_bash;
mod command;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::path::Path;
use super::pattern::{Comparison, Match};
use super::rule::{Argument, EDITING_TOOLS, READING_TOOLS, Rule, RuleAction};

/// The operator's rules.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

/// The result of applying the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling<'r> {
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

    /// Applies the rules to this tool use.
    pub(super) fn judge(&self, tool: &str, input: &Value, workdir: Option<&Path>) -> Ruling<'_> {
        let found = match tool {
            "Bash" => self.on_command(input, workdir),
            "WebFetch" => self.on_url(input),
            _ if READING_TOOLS.contains(&tool) || EDITING_TOOLS.contains(&tool) => {
                self.on_file(tool, input, workdir)
            }
            _ => self.on_name(tool),
        };
        match found {
            MatchedRules { strongest: Some(rule), .. } => Ruling::Decided(rule),
            MatchedRules { uncertain: Some(rule), .. } => Ruling::Uncertain(rule),
            MatchedRules { allowed: Some(rule), .. } => Ruling::Decided(rule),
            MatchedRules { .. } => self.fallback(),
        }
    }

    fn fallback(&self) -> Ruling<'_> {
        let rest = self.0.iter().filter(|rule| rule.is_fallback());
        rest.max_by_key(|rule| rule.action).map_or(Ruling::NotCovered, Ruling::Decided)
    }

    fn rules_for<'r>(&'r self, tool: &str) -> impl Iterator<Item = &'r Rule> {
        self.0.iter().filter(move |rule| rule.applies_to(tool))
    }

    fn on_name<'r>(&'r self, tool: &str) -> MatchedRules<'r> {
        let mut found = MatchedRules::default();
        for rule in self.rules_for(tool) {
            found.add(rule, Match::of(rule.argument == Argument::Any));
        }
        found
    }

    fn on_url(&self, input: &Value) -> MatchedRules<'_> {
        let address = input.get("url").and_then(Value::as_str);
        let mut found = MatchedRules::default();
        for rule in self.rules_for("WebFetch") {
            found.add(
                rule,
                match &rule.argument {
                    Argument::Any => Match::Yes,
                    Argument::Domain(pattern) => {
                        address.map_or(Match::Maybe, |address| pattern.matches(address))
                    }
                    Argument::Command(_) | Argument::Path(_) => Match::No,
                },
            );
        }
        found
    }

    fn on_file<'r>(&'r self, tool: &str, input: &Value, workdir: Option<&Path>) -> MatchedRules<'r> {
        let target = FileTarget::of(tool, input);
        let mut found = MatchedRules::default();
        for rule in self.rules_for(tool) {
            found.add(
                rule,
                match &rule.argument {
                    Argument::Any => Match::Yes,
                    Argument::Path(pattern) => match &target {
                        FileTarget::Unknown => Match::Maybe,
                        FileTarget::File(path) => pattern.matches(path, workdir, comparison(rule.action)),
                        FileTarget::Below(folder) => {
                            match pattern.matches(folder, workdir, comparison(rule.action)) {
                                Match::No if pattern.may_match_below(folder, workdir) => Match::Maybe,
                                certain @ (Match::No | Match::Maybe | Match::Yes) => certain,
                            }
                        }
                    },
                    Argument::Command(_) | Argument::Domain(_) => Match::No,
                },
            );
        }
        found
    }
}

/// What a file tool works on.
enum FileTarget {
    File(Path),
    /// The folder and everything below it.
    Below(Path),
    /// The input does not say.
    Unknown,
}

impl FileTarget {
    fn of(tool: &str, input: &Value) -> Self {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let named = match tool {
            "NotebookEdit" | "NotebookRead" => text("notebook_path"),
            "Grep" | "Glob" | "LS" => Some(text("path").unwrap_or(".")),
            _ => text("file_path"),
        };
        // A glob pattern may lead out of the folder.
        let leads_away = |pattern: &str| pattern.starts_with(['/', '~']) || pattern.contains("..");
        match named {
            Some(path) if path.contains(char::is_control) => Self::Unknown,
            Some(_) if tool == "Glob" && text("pattern").is_none_or(leads_away) => Self::Unknown,
            Some(path) if tool == "Grep" => Self::Below(Path::read(path)),
            Some(path) => Self::File(Path::read(path)),
            None => Self::Unknown,
        }
    }
}

/// Allow rules compare exactly; ask and deny rules compare loosely, so that they rather match too much.
fn comparison(action: RuleAction) -> Comparison {
    match action {
        RuleAction::Allow => Comparison::Exact,
        RuleAction::Ask | RuleAction::Deny => Comparison::Loose,
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
