//! Rules on a command line: denied if any part of it is, allowed only if every part is and nothing is left unclear.

use serde_json::Value;

use super::super::path::Path;
use super::super::pattern::{Care, CommandPattern, Match};
use super::super::rule::{Argument, Rule, Verdict};
use super::super::shell::{Access, Command, File, Line, Reading, Runs, Word};
use super::{Found, Rules, care};

const TOOL: &str = "Bash";

impl Rules {
    pub(super) fn on_command(&self, input: &Value, workdir: Option<&Path>) -> Found<'_> {
        let line = match input.get("command").and_then(Value::as_str) {
            Some(text) => Line::read(text),
            None => Line { unclear: Some("there is no command"), ..Line::default() },
        };
        let mut found = Found::default();
        for rule in self.0.iter().filter(|rule| rule.verdict != Verdict::Allow) {
            found.add(rule, reach(rule, &line, workdir));
        }
        found.allowed = self.allow_line(&line, workdir);
        found
    }

    /// The rule that allows the line; one of them where several are needed.
    fn allow_line(&self, line: &Line, workdir: Option<&Path>) -> Option<&Rule> {
        let mut allowing = self.about(TOOL).filter(|rule| rule.verdict == Verdict::Allow);
        if let Some(rule) = allowing.find(|rule| rule.argument == Argument::Any) {
            return Some(rule);
        }
        if line.unclear.is_some() || line.runs_from_elsewhere() {
            return None;
        }
        let mut by = Vec::new();
        for command in &line.commands {
            // A variable can make any program do anything (`LD_PRELOAD`, `PAGER`, `GIT_SSH_COMMAND`).
            if !command.assignments.is_empty() {
                return None;
            }
            // The commands of a shell's script stand in the line as well.
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
        self.about(TOOL).filter(|rule| rule.verdict == Verdict::Allow).find(|rule| match &rule.argument {
            Argument::Command(pattern) => {
                pattern.matches(&command.words, Care::Exactly) == Match::Yes
                    && self.covers(pattern, pattern.len(), &command.runs)
            }
            Argument::Any | Argument::Path(_) | Argument::Domain(_) => false,
        })
    }

    /// True if a pattern that names so many words also says what the command runs in turn, or other rules allow that.
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
            self.0.iter().filter(|rule| rule.verdict == Verdict::Allow && is_about(rule, file.access));
        allowing.find(|rule| match &rule.argument {
            Argument::Any => true,
            Argument::Path(pattern) => pattern.matches(&path, workdir, Care::Exactly) == Match::Yes,
            Argument::Command(_) | Argument::Domain(_) => false,
        })
    }
}

/// Whether a rule that asks or denies holds for any part of a line.
fn reach(rule: &Rule, line: &Line, workdir: Option<&Path>) -> Match {
    let is_on_commands = rule.is_about(TOOL);
    let is_on_files = is_about(rule, Access::Read) || is_about(rule, Access::Write);
    if rule.is_for_the_rest() || !(is_on_commands || is_on_files) {
        return Match::No;
    }
    if is_on_commands && rule.argument == Argument::Any {
        return Match::Yes;
    }
    let parts = line.commands.iter().map(|command| {
        if is_on_commands { reach_command(rule, command) } else { reach_files(rule, command, workdir) }
    });
    let certain = parts.max().unwrap_or(Match::No);
    if line.unclear.is_some() { certain.max(Match::Maybe) } else { certain }
}

fn reach_command(rule: &Rule, command: &Command) -> Match {
    let Argument::Command(pattern) = &rule.argument else { return Match::No };
    let itself = pattern.matches(&command.words, Care::Broadly);
    itself.max(match &command.runs {
        Runs::Itself | Runs::Script | Runs::Later => Match::No,
        Runs::Unknown => Match::Maybe,
        Runs::Another(_, carried) => reach_command(rule, carried),
    })
}

/// A rule on paths holds for redirections, and for arguments that read like such a path.
fn reach_files(rule: &Rule, command: &Command, workdir: Option<&Path>) -> Match {
    let files = command.files.iter().filter(|file| is_about(rule, file.access)).map(|file| &file.name);
    let Argument::Path(pattern) = &rule.argument else {
        return Match::of(rule.argument == Argument::Any && files.count() > 0);
    };
    let compare = |text: &str| pattern.matches(&Path::read(text), workdir, care(rule.verdict));
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

/// Rules on reading and writing files, as the agent's own tools do it.
fn is_about(rule: &Rule, access: Access) -> bool {
    match access {
        Access::Read => rule.is_about("Read"),
        Access::Write => rule.is_about("Edit") || rule.is_about("Write"),
    }
}
