//! Splits a shell command line into the commands it would run, without running anything.
//!
//! What the shell decides at run time (variables, globs) makes a word *open*: its text is unknown. Syntax that this
//! reader does not support makes the line *unclear*, and a command rule never allows an unclear line. Treating a
//! harmless line as unclear costs a question; treating a harmful line as clear costs the machine.

mod lexer;
mod nested;
#[cfg(test)]
mod tests;
mod variable;

use lexer::Lexer;
use nested::{Carried, Inside};

/// Longer lines are unclear.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The maximum nesting depth of commands.
const MAX_DEPTH: usize = 16;

/// The commands of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Every command, including those in substitutions and scripts.
    pub(super) commands: Vec<Command>,
    /// Why the line is unclear, if it is.
    pub(super) unclear: Option<&'static str>,
}

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// The names of variables set for it, which can change what it does.
    pub(super) assignments: Vec<String>,
    /// The program and its arguments. Empty if there are only assignments or redirections.
    pub(super) words: Vec<Word>,
    /// The files it reads or writes by redirection.
    pub(super) files: Vec<File>,
    /// Another command that it runs.
    pub(super) runs: Runs,
}

/// Whether a command runs another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Runs {
    /// It runs no other command.
    #[default]
    Itself,
    /// It runs the command that starts at this word (`sudo`, `xargs`).
    Another(usize, Box<Command>),
    /// It runs a script, whose commands are listed in the line (`sh -c`).
    Script,
    /// It runs nothing, but it can change what later commands do (`export`).
    Later,
    /// It runs something that its words do not show.
    Unknown,
}

/// A word with its quotes removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The known text.
    pub(super) text: String,
    /// Whether the known text is complete.
    pub(super) reading: Reading,
}

/// How much of a word is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Exactly this text.
    Exact,
    /// The shell expands it to something else.
    Open,
}

/// A file in a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) access: Access,
    pub(super) name: Word,
}

/// How a file is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Line {
    /// Reads a command line.
    pub(super) fn read(text: &str) -> Self {
        let mut line = Self::default();
        line.add(text, 0);
        line.mark_moved_files();
        line
    }

    /// Adds the commands of a script nested `depth` levels deep.
    fn add(&mut self, script: &str, depth: usize) {
        if script.len() > MAX_LINE_BYTES {
            return self.lose_track("it is too long");
        }
        if depth > MAX_DEPTH {
            return self.lose_track("its commands are nested too deeply");
        }
        if script.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
            return self.lose_track("it holds control characters");
        }
        Lexer::new(script, depth, self).script();
    }

    fn lose_track(&mut self, why: &'static str) {
        self.unclear.get_or_insert(why);
    }

    fn push(&mut self, command: Command, depth: usize) {
        if command != Command::default() {
            let command = self.looked_into(command, depth);
            self.commands.push(command);
        }
    }

    /// Determines what a command runs.
    fn looked_into(&mut self, mut command: Command, depth: usize) -> Command {
        if depth > MAX_DEPTH {
            self.lose_track("its commands are nested too deeply");
            return command;
        }
        command.runs = match nested::look(&command.words) {
            Inside::Nothing => Runs::Itself,
            Inside::Later => Runs::Later,
            Inside::Unknown => Runs::Unknown,
            Inside::Script(script) => {
                self.add(&script, depth + 1);
                Runs::Script
            }
            Inside::Command(Carried { start, assignments, words }) => {
                let carried = Command { assignments, words, ..Command::default() };
                Runs::Another(start, Box::new(self.looked_into(carried, depth + 1)))
            }
        };
        command
    }

    /// True if a program has a relative path and the line changes the working directory: `cd x && ./a` does not run
    /// `./a`.
    pub(super) fn runs_from_elsewhere(&self) -> bool {
        self.moves() && self.commands.iter().any(Command::is_found_from_here)
    }

    fn moves(&self) -> bool {
        self.commands.iter().any(Command::moves)
    }

    /// After a `cd`, relative file names are unknown.
    fn mark_moved_files(&mut self) {
        if !self.moves() {
            return;
        }
        let files = self.commands.iter_mut().flat_map(|command| &mut command.files);
        for file in files.filter(|file| !file.name.text.starts_with('/')) {
            file.name.reading = Reading::Open;
        }
    }
}

impl Command {
    fn moves(&self) -> bool {
        let is_one_of = |word: &Word, names: &[&str]| names.contains(&word.text.as_str());
        let itself =
            self.words.first().is_some_and(|word| is_one_of(word, &["cd", "pushd", "popd", "source", "."]))
                || self.words.iter().any(|word| is_one_of(word, &["-execdir", "-okdir"]));
        match &self.runs {
            Runs::Another(_, carried) => itself || carried.moves(),
            Runs::Itself | Runs::Script | Runs::Later | Runs::Unknown => itself,
        }
    }

    fn is_found_from_here(&self) -> bool {
        let itself =
            self.words.first().is_some_and(|word| word.text.contains('/') && !word.text.starts_with('/'));
        match &self.runs {
            Runs::Another(_, carried) => itself || carried.is_found_from_here(),
            Runs::Itself | Runs::Script | Runs::Later | Runs::Unknown => itself,
        }
    }
}

impl Word {
    /// A word whose text is unknown.
    fn open() -> Self {
        Self { text: String::new(), reading: Reading::Open }
    }
}
