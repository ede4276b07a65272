//! A shell command line taken apart into the commands it would run, without running anything.
//!
//! What a shell does only at run time (variables, globs) makes a word *open*: its text is not known. What this reader
//! does not follow for certain makes the line *unclear*, and an unclear line is never allowed by a rule on commands.
//! Being wrong in that direction costs a question; being wrong in the other costs the machine.

mod lexer;
mod nested;
#[cfg(test)]
mod tests;
mod variable;

use lexer::Lexer;
use nested::{Carried, Inside};

/// Longer lines are not looked into.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// How deep commands may stand inside commands.
const MAX_DEPTH: usize = 16;

/// What a command line would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Every command, those of substitutions and scripts included.
    pub(super) commands: Vec<Command>,
    /// What could not be followed, if anything.
    pub(super) unclear: Option<&'static str>,
}

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// Names of variables set before it; they can change what it does.
    pub(super) assignments: Vec<String>,
    /// The program and its arguments. Empty where there are only assignments or redirections.
    pub(super) words: Vec<Word>,
    /// Files it reads or writes by redirection.
    pub(super) files: Vec<File>,
    /// What it runs in turn.
    pub(super) runs: Runs,
}

/// Whether a command is one that runs another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Runs {
    /// It does what its name says.
    #[default]
    Itself,
    /// Another one, which begins at this word (`sudo`, `xargs`).
    Another(usize, Box<Command>),
    /// A script, whose commands stand in the line beside this one (`sh -c`).
    Script,
    /// Nothing now, but later commands may do something else because of it (`export`).
    Later,
    /// Something that its words do not tell.
    Unknown,
}

/// A word after quotes are taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// What is known of its text.
    pub(super) text: String,
    /// Whether that is all of it.
    pub(super) reading: Reading,
}

/// How well a word is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Exactly this text.
    Exact,
    /// The shell puts something else in its place.
    Open,
}

/// A file named by a redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) access: Access,
    pub(super) name: Word,
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Line {
    /// Takes a command line apart.
    pub(super) fn read(text: &str) -> Self {
        let mut line = Self::default();
        line.add(text, 0);
        line.mark_moved_files();
        line
    }

    /// Adds the commands of a script that stands `depth` levels inside the line.
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

    /// Finds out what a command runs in turn.
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

    /// True if a program is named from the working folder and something in the line leaves that folder:
    /// `cd x && ./a` is not `./a`.
    pub(super) fn runs_from_elsewhere(&self) -> bool {
        self.moves() && self.commands.iter().any(Command::is_found_from_here)
    }

    fn moves(&self) -> bool {
        self.commands.iter().any(Command::moves)
    }

    /// After a `cd` nobody knows where a relative name leads.
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
    /// A word whose text is not known.
    fn open() -> Self {
        Self { text: String::new(), reading: Reading::Open }
    }
}
