//! Rules on a command line: it is denied if any part is, and allowed only if every part is and the line is clear.

use serde_json::Value;

use super::super::path::Path;
use super::super::pattern::{CommandPattern, Comparison, Match};
use super::super::rule::{Argument, Rule, RuleAction};
use super::super::shell::{Access, Command, File, Line, Reading, Runs, Word};
use super::{MatchedRules, Rules, comparison};

const TOOL: &str = "Bash";

impl Rules {
    pub(super) fn on_command(&self, input: &Value, workdir: Option<&Path>) -> MatchedRules<'_> {
        let line = match input.get("command").and_then(Value::as_str) {
            Some(text) => Line::read(text),
            None => Line { unclear: Some("there is no command"), ..Line::default() },
        };
        let mut found = MatchedRules::default();
        for rule in self.0.iter().filter(|rule| rule.action != RuleAction::Allow) {
            found.add(rule, match_line(rule, &line, workdir));
        }
        found.allowed = self.allow_line(&line, workdir);
        found
    }

    /// The rule that allows the line; if several are needed, one of them.
    fn allow_line(&self, line: &Line, workdir: Option<&Path>) -> Option<&Rule> {
        let mut allowing = self.rules_for(TOOL).filter(|rule| rule.action == RuleAction::Allow);
        if let Some(rule) = allowing.find(|rule| rule.argument == Argument::Any) {
            return Some(rule);
        }
        if line.unclear.is_some() || line.runs_from_elsewhere() {
            return None;
        }
        let mut by = Vec::new();
        for command in &line.commands {
            // A variable can change what any program does (`LD_PRELOAD`, `PAGER`, `GIT_SSH_COMMAND`).
            if !command.assignments.is_empty() {
                return None;
            }
            // The commands of a script are listed in the line too.
            if !command.words.is_empty() && command.runs != Runs::Script {
                by.push(self.allow_words(command)?);
            }
            for file in &command.files {
                by.push(self.allow_file(file, workdir)?);
            }
        }
        by.pop()
    }

    fn allow_words(&self, command: &Command) -> Option<&Rule> {
        self.rules_for(TOOL).filter(|rule| rule.action == RuleAction::Allow).find(|rule| {
            match &rule.argument {
                Argument::Command(pattern) => {
                    pattern.matches(&command.words, Comparison::Exact) == Match::Yes
                        && self.covers(pattern, pattern.len(), &command.runs)
                }
                Argument::Any | Argument::Path(_) | Argument::Domain(_) => false,
            }
        })
    }

    /// True if a pattern of this many words also covers what the command runs, or other rules allow that.
    fn covers(&self, pattern: &CommandPattern, named: usize, runs: &Runs) -> bool {
        match runs {
            Runs::Itself => true,
            Runs::Script | Runs::Later | Runs::Unknown => pattern.is_closed(),
            Runs::Another(start, carried) if named > *start => {
                self.covers(pattern, named - start, &carried.runs)
            }
            Runs::Another(_, carried) if !carried.assignments.is_empty() => false,
            Runs::Another(_, carried) => match carried.runs {
                Runs::Script => true,
                Runs::Itself | Runs::Another(..) | Runs::Later | Runs::Unknown => {
                    self.allow_words(carried).is_some()
                }
            },
        }
    }

    fn allow_file(&self, file: &File, workdir: Option<&Path>) -> Option<&Rule> {
        if file.name.reading == Reading::Open {
            return None;
        }
        let path = Path::read(&file.name.text);
        let mut allowing =
            self.0.iter().filter(|rule| rule.action == RuleAction::Allow && applies_to(rule, file.access));
        allowing.find(|rule| match &rule.argument {
            Argument::Any => true,
            Argument::Path(pattern) => pattern.matches(&path, workdir, Comparison::Exact) == Match::Yes,
            Argument::Command(_) | Argument::Domain(_) => false,
        })
    }
}

/// Whether an ask or deny rule applies to any part of a line.
fn match_line(rule: &Rule, line: &Line, workdir: Option<&Path>) -> Match {
    let is_on_commands = rule.applies_to(TOOL);
    let is_on_files = applies_to(rule, Access::Read) || applies_to(rule, Access::Write);
    if rule.is_fallback() || !(is_on_commands || is_on_files) {
        return Match::No;
    }
    if is_on_commands && rule.argument == Argument::Any {
        return Match::Yes;
    }
    let parts = line.commands.iter().map(|command| {
        if is_on_commands { match_command(rule, command) } else { match_files(rule, command, workdir) }
    });
    let certain = parts.max().unwrap_or(Match::No);
    if line.unclear.is_some() { certain.max(Match::Maybe) } else { certain }
}

fn match_command(rule: &Rule, command: &Command) -> Match {
    let Argument::Command(pattern) = &rule.argument else { return Match::No };
    let itself = pattern.matches(&command.words, Comparison::Loose);
    itself.max(match &command.runs {
        Runs::Itself | Runs::Script | Runs::Later => Match::No,
        Runs::Unknown => Match::Maybe,
        Runs::Another(_, carried) => match_command(rule, carried),
    })
}

/// A path rule applies to redirections and to arguments that could be such a path.
fn match_files(rule: &Rule, command: &Command, workdir: Option<&Path>) -> Match {
    let files = command.files.iter().filter(|file| applies_to(rule, file.access)).map(|file| &file.name);
    let Argument::Path(pattern) = &rule.argument else {
        return Match::of(rule.argument == Argument::Any && files.count() > 0);
    };
    let compare = |text: &str| pattern.matches(&Path::read(text), workdir, comparison(rule.action));
    let one = |word: &Word| {
        let behind_equals = word.text.split_once('=').map_or(Match::No, |(_, value)| compare(value));
        match word.reading {
            Reading::Open => Match::Maybe,
            Reading::Exact => compare(&word.text).max(behind_equals),
        }
    };
    let words = command.words.iter().chain(files).map(one);
    let unknown = if command.runs == Runs::Unknown { Match::Maybe } else { Match::No };
    words.max().unwrap_or(Match::No).max(unknown)
}

/// True for rules on reading or writing files.
fn applies_to(rule: &Rule, access: Access) -> bool {
    match access {
        Access::Read => rule.applies_to("Read"),
        Access::Write => rule.applies_to("Edit") || rule.applies_to("Write"),
    }
}
