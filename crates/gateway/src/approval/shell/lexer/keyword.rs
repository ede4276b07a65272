//! Words that are not arguments: keywords, loop heads, assignments and file descriptors.

use super::super::{Command, Word, variable};
use super::{Lexer, WordsToCome};

/// Keywords that a command follows.
const BEFORE_A_COMMAND: &[&str] =
    &["!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time"];

/// Keywords of syntax that this reader does not support.
const NOT_FOLLOWED: &[&str] =
    &["case", "esac", "function", "select", "coproc", "[[", "repeat", "foreach", "always"];

/// Lower-case variables that have a meaning in zsh.
const NAMES_OF_ZSH: &[&str] = &[
    "argv",
    "prompt",
    "psvar",
    "status",
    "watch",
    "histchars",
    "options",
    "aliases",
    "functions",
    "commands",
];

impl Lexer<'_> {
    pub(super) fn word_of_command(&mut self) {
        let started_at = self.at;
        let word = self.word();
        let bare = self.bare(started_at);
        if matches!(self.peek(), Some('<' | '>')) && self.is_descriptor(&bare) {
            return;
        }
        if self.words_to_come == WordsToCome::InDoubt {
            self.line.lose_track("words behind `&>` are read differently by different shells");
        }
        if !self.command.words.is_empty() {
            return self.argument(&bare, word);
        }
        if let Some(name) = assigned_name(&bare) {
            if variable::is_evaluated(&word) {
                self.line.lose_track("it sets a variable that the shell evaluates");
            }
            return self.command.assignments.push(name.to_owned());
        }
        // Only unquoted words are keywords.
        let is_before_a_command = BEFORE_A_COMMAND.contains(&bare.as_str()) || bare == "for";
        let is_not_followed = NOT_FOLLOWED.contains(&bare.as_str());
        if (is_before_a_command || is_not_followed) && self.command != Command::default() {
            self.line.lose_track("shells do not agree whether a word is a keyword");
        } else if is_not_followed {
            self.line.lose_track("it holds a form of the shell that is not followed");
        } else if bare == "for" {
            return self.loop_head();
        } else if is_before_a_command {
            return self.expect_no_option(&bare);
        }
        self.command.words.push(word);
    }

    fn argument(&mut self, bare: &str, word: Word) {
        // zsh ends a group at a brace in any position: `{ a } always { b }`.
        if matches!(bare, "{" | "}") {
            self.line.lose_track("a brace stands among the words of a command");
        }
        self.command.words.push(word);
    }

    /// `2>` and similar: a number directly before the operator is not an argument.
    fn is_descriptor(&mut self, bare: &str) -> bool {
        let is_number = !bare.is_empty() && bare.chars().all(|letter| letter.is_ascii_digit());
        let is_variable = bare.starts_with('{') && bare.ends_with('}');
        if is_variable || (is_number && bare.len() > 1) {
            self.line.lose_track("shells do not agree whether a word is the number of a descriptor");
        }
        is_number || is_variable
    }

    /// `time -p a`: options of `time` are unsupported.
    fn expect_no_option(&mut self, keyword: &str) {
        self.skip_blanks();
        if keyword == "time" && self.peek() == Some('-') {
            self.line.lose_track("it holds `time` with options");
        }
    }

    /// `for NAME in WORDS`: not a command itself, but its words may contain some.
    fn loop_head(&mut self) {
        const WHY: &str = "it holds a loop that is not followed";
        self.skip_blanks();
        let name_at = self.at;
        self.word();
        let name = self.bare(name_at);
        if !is_harmless(&name) {
            self.command.assignments.push(name);
        }
        self.skip_blanks();
        if matches!(self.peek(), Some(';' | '\n')) {
            return;
        }
        let in_at = self.at;
        self.word();
        // `for x do a; done` and `for x { a; }` are loops too.
        if self.bare(in_at) != "in" {
            return self.line.lose_track(WHY);
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(';' | '\n') => return,
                Some('&' | '|' | '(' | ')' | '<' | '>' | '#') => return self.line.lose_track(WHY),
                Some(_) => {
                    let word_at = self.at;
                    self.word();
                    if matches!(self.bare(word_at).as_str(), "{" | "}") {
                        return self.line.lose_track(WHY);
                    }
                }
            }
        }
    }
}

/// True for a variable that no program reads: environment variables have capitals or underscores.
fn is_harmless(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
        && !name.ends_with("path")
        && !NAMES_OF_ZSH.contains(&name)
}

/// The name in `NAME=…` or `NAME+=…`.
fn assigned_name(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let mut letters = name.chars();
    let starts_well = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    let rest = letters.as_str();
    let is_name =
        rest.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '[' | ']'));
    (starts_well && is_name).then_some(name)
}
