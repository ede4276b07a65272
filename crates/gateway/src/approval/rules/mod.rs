//! What the rules say about one use of a tool. Deny is stronger than ask, ask than allow, whatever their order.

#[cfg(test)]
mod against_bash;
mod command;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::path::Path;
use super::pattern::{Care, Match};
use super::rule::{Argument, EDITING_TOOLS, READING_TOOLS, Rule, Verdict};

/// All rules of the operator.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

/// What the rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling<'r> {
    /// This rule decides.
    Decided(&'r Rule),
    /// Whether this rule, which does not allow, holds cannot be told before the tool runs.
    InDoubt(&'r Rule),
    /// No rule covers it.
    NotCovered,
}

impl Rules {
    /// Takes the rules in any order.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds what holds for this use of a tool.
    pub(super) fn judge(&self, tool: &str, input: &Value, workdir: Option<&Path>) -> Ruling<'_> {
        let found = match tool {
            "Bash" => self.on_command(input, workdir),
            "WebFetch" => self.on_address(input),
            _ if READING_TOOLS.contains(&tool) || EDITING_TOOLS.contains(&tool) => {
                self.on_file(tool, input, workdir)
            }
            _ => self.on_name(tool),
        };
        match found {
            Found { strongest: Some(rule), .. } => Ruling::Decided(rule),
            Found { in_doubt: Some(rule), .. } => Ruling::InDoubt(rule),
            Found { allowed: Some(rule), .. } => Ruling::Decided(rule),
            Found { .. } => self.for_the_rest(),
        }
    }

    fn for_the_rest(&self) -> Ruling<'_> {
        let rest = self.0.iter().filter(|rule| rule.is_for_the_rest());
        rest.max_by_key(|rule| rule.verdict).map_or(Ruling::NotCovered, Ruling::Decided)
    }

    fn about<'r>(&'r self, tool: &str) -> impl Iterator<Item = &'r Rule> {
        self.0.iter().filter(move |rule| rule.is_about(tool))
    }

    fn on_name<'r>(&'r self, tool: &str) -> Found<'r> {
        let mut found = Found::default();
        for rule in self.about(tool) {
            found.add(rule, Match::of(rule.argument == Argument::Any));
        }
        found
    }

    fn on_address(&self, input: &Value) -> Found<'_> {
        let address = input.get("url").and_then(Value::as_str);
        let mut found = Found::default();
        for rule in self.about("WebFetch") {
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

    fn on_file<'r>(&'r self, tool: &str, input: &Value, workdir: Option<&Path>) -> Found<'r> {
        let target = Target::of(tool, input);
        let mut found = Found::default();
        for rule in self.about(tool) {
            found.add(
                rule,
                match &rule.argument {
                    Argument::Any => Match::Yes,
                    Argument::Path(pattern) => match &target {
                        Target::Unknown => Match::Maybe,
                        Target::File(path) => pattern.matches(path, workdir, care(rule.verdict)),
                        Target::Below(folder) => match pattern.matches(folder, workdir, care(rule.verdict)) {
                            Match::No if pattern.may_match_below(folder, workdir) => Match::Maybe,
                            certain @ (Match::No | Match::Maybe | Match::Yes) => certain,
                        },
                    },
                    Argument::Command(_) | Argument::Domain(_) => Match::No,
                },
            );
        }
        found
    }
}

/// What a tool on files is used on.
enum Target {
    File(Path),
    /// The folder and all that is in it.
    Below(Path),
    /// The input does not tell.
    Unknown,
}

impl Target {
    fn of(tool: &str, input: &Value) -> Self {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let named = match tool {
            "NotebookEdit" | "NotebookRead" => text("notebook_path"),
            "Grep" | "Glob" | "LS" => Some(text("path").unwrap_or(".")),
            _ => text("file_path"),
        };
        // A search pattern may lead elsewhere than the folder it is given.
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

/// What is allowed is compared as it is written; for the rest, more is taken to be the same.
fn care(verdict: Verdict) -> Care {
    match verdict {
        Verdict::Allow => Care::Exactly,
        Verdict::Ask | Verdict::Deny => Care::Broadly,
    }
}

/// The rules found to hold.
#[derive(Debug, Default)]
struct Found<'r> {
    /// Of those that ask or deny.
    strongest: Option<&'r Rule>,
    /// One that asks or denies and may hold.
    in_doubt: Option<&'r Rule>,
    allowed: Option<&'r Rule>,
}

impl<'r> Found<'r> {
    fn add(&mut self, rule: &'r Rule, matched: Match) {
        match (rule.verdict, matched) {
            (_, Match::No) | (Verdict::Allow, Match::Maybe) => {}
            (Verdict::Allow, Match::Yes) => self.allowed = Some(rule),
            (Verdict::Ask | Verdict::Deny, Match::Maybe) => self.in_doubt = Some(rule),
            (Verdict::Ask | Verdict::Deny, Match::Yes) => {
                if self.strongest.is_none_or(|other| other.verdict < rule.verdict) {
                    self.strongest = Some(rule);
                }
            }
        }
    }
}
