//! Rules on a command line: it is denied if any command in it is, and allowed only if every command is and the line is
//! clear.

use serde_json::Value;

use super::super::command_line::{self, Unclear, Words};
use super::super::effect::{Effect, Syntax, command_of};
use super::super::path::Place;
use super::super::pattern::{CommandPattern, Match, PathMatcher};
use super::super::rule::{Argument, Rule};
use super::Workdir;
use super::file::protected_name;
use super::programs::{self, Descent};

/// An argument with more parts is not taken apart.
const MAX_PARTS: usize = 256;

/// The letters before a path that is attached to a group of options.
const MAX_LETTERS: usize = 8;

/// A command line.
pub(super) struct CommandUse {
    commands: Vec<Command>,
    is_clear: bool,
}

/// One command of the line, and what it may refer to.
struct Command {
    words: Words,
    /// True if it may start elsewhere than in the working directory.
    has_moved: bool,
    /// The directories it may start in.
    current: Vec<Place>,
    /// The paths that its words may name.
    places: Vec<Place>,
    /// False if there may be others.
    is_complete: bool,
}

impl CommandUse {
    pub(super) fn new(input: &Value, syntax: Syntax, workdir: &Workdir) -> Self {
        let read = command_of(input).map_or(Err(Unclear), command_line::read);
        let is_clear = read.is_ok() && syntax == Syntax::Shell;
        let mut workdir = workdir.clone();
        let commands = read.unwrap_or_default().into_iter().map(|words| {
            let command = Command::new(words, &workdir);
            workdir.after_command(&command.words);
            command
        });
        Self { commands: commands.collect(), is_clear }
    }

    /// Whether an ask or deny rule applies to any part of the line.
    pub(super) fn match_rule(&self, rule: &Rule, tool: &str, workdir: &Workdir) -> Match {
        let strongest = match &rule.argument {
            Argument::Command(pattern) if rule.applies_to(tool, Effect::Command(Syntax::Unknown)) => {
                self.commands.iter().map(|command| command.match_words(pattern)).max()
            }
            Argument::Path(pattern) => {
                let paths = pattern.within(workdir);
                let matching =
                    self.commands.iter().filter(|command| !(rule.is_on_edits() && command.only_reads()));
                matching.map(|command| command.match_paths(&paths)).max()
            }
            Argument::Any | Argument::Command(_) | Argument::Domain(_) => return Match::No,
        };
        strongest.unwrap_or(Match::No).max(Match::maybe(!self.is_clear))
    }

    /// The rule that allows the line; if several are needed, one of them.
    pub(super) fn allowed_by<'r>(&self, allowing: &[&'r Rule]) -> Option<&'r Rule> {
        let mut by = None;
        for command in self.commands.iter().filter(|_| self.is_clear) {
            by = Some(*allowing.iter().find(|rule| command.is_allowed_by(rule))?);
        }
        by
    }
}

impl Command {
    fn new(words: Words, workdir: &Workdir) -> Self {
        let (folders, is_known) = workdir.current();
        let mut is_complete = true;
        let mut places = Vec::new();
        for word in &words {
            let parts = parts(&word.text);
            is_complete &=
                parts.len() <= MAX_PARTS && (is_known || parts.iter().all(|part| part.starts_with('/')));
            for part in parts.into_iter().take(MAX_PARTS) {
                places.extend(folders.iter().map(|folder| Place::of_argument(folder, part)));
            }
        }
        let current = folders.iter().map(|folder| Place::new(folder, "")).collect();
        Self { words, has_moved: workdir.has_moved(), current, places, is_complete }
    }

    fn is_allowed_by(&self, rule: &Rule) -> bool {
        let Argument::Command(pattern) = &rule.argument else { return false };
        let program = self.words.first().map_or("", |word| word.text.as_str());
        // After a `cd` it may be a different program.
        let may_be_another = self.has_moved && programs::depends_on_directory(program);
        let is_harmless =
            || !programs::is_open_ended(&self.words, pattern.len()) && !self.may_change_protected();
        !may_be_another && pattern.covers(&self.words) && (pattern.is_exact() || is_harmless())
    }

    fn may_change_protected(&self) -> bool {
        let may_name_protected =
            !self.is_complete || self.places.iter().any(|place| protected_name(place).is_some());
        may_name_protected && !self.only_reads()
    }

    fn only_reads(&self) -> bool {
        programs::only_reads(&self.words)
    }

    fn is_open_ended(&self) -> bool {
        programs::is_open_ended(&self.words, self.words.len())
    }

    fn match_words(&self, pattern: &CommandPattern) -> Match {
        if !self.is_open_ended() {
            return pattern.may_cover(&self.words);
        }
        // It may run another program, which is in its arguments or not.
        let starts = (0..self.words.len()).map(|start| pattern.may_cover(&self.words[start..]));
        starts.max().unwrap_or(Match::No).max(Match::Maybe)
    }

    /// A path rule applies to every word that could be such a path, and to what is read below folders.
    fn match_paths(&self, paths: &PathMatcher<'_>) -> Match {
        let named = self.places.iter().map(|place| paths.may_cover(place)).max().unwrap_or(Match::No);
        let is_below = |place: &Place| place.is_folder && paths.may_cover_below(place);
        let may_read_below = match programs::descent(&self.words) {
            Descent::No => false,
            Descent::Arguments => self.places.iter().any(is_below),
            Descent::ArgumentsOrCurrent => self.places.iter().chain(&self.current).any(is_below),
        };
        named.max(Match::maybe(may_read_below || !self.is_complete || self.is_open_ended()))
    }
}

/// The word itself, and what follows an option's letter, `=`, `:`, `@` or `,` (`--file=x`, `-ox`, `HEAD:x`, `@x`).
fn parts(word: &str) -> Vec<&str> {
    let is_separator = |letter| matches!(letter, '=' | ':' | '@' | ',');
    let mut parts = vec![word];
    parts.extend(word.match_indices(is_separator).map(|(at, _)| &word[at + 1..]));
    parts.extend(word.split(is_separator));
    // `-xzfpath`
    if word.starts_with('-') {
        parts.extend(word.char_indices().skip(2).take(MAX_LETTERS).map(|(at, _)| &word[at..]));
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_unstable();
    parts.dedup();
    parts
}
