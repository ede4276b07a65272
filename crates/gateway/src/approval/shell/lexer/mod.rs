//! Reads a script letter by letter, as a POSIX shell, bash and zsh would where they agree.

mod redirect;

use std::mem::take;

use redirect::HereDocument;

use super::{Command, Line, Reading, Word};

/// Words that stand before a command without being one.
const BEFORE_A_COMMAND: &[&str] =
    &["!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time"];

/// A backslash at the end of a line: the two lines are one.
const JOINED_LINES: &str = "\\\n";

/// Words that begin something this reader does not follow.
const NOT_FOLLOWED: &[&str] =
    &["case", "esac", "function", "select", "coproc", "[[", "repeat", "foreach", "always"];

pub(super) struct Lexer<'l> {
    letters: Vec<char>,
    at: usize,
    depth: usize,
    line: &'l mut Line,
    command: Command,
    /// Texts to read after the end of this line (`<<EOF`).
    here_documents: Vec<HereDocument>,
}

/// What a letter stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// Where a script ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    OfText,
    Parenthesis,
}

impl<'l> Lexer<'l> {
    pub(super) fn new(script: &str, depth: usize, line: &'l mut Line) -> Self {
        Self {
            letters: script.chars().collect(),
            at: 0,
            depth,
            line,
            command: Command::default(),
            here_documents: Vec::new(),
        }
    }

    pub(super) fn script(&mut self) {
        self.commands(End::OfText);
        if !self.here_documents.is_empty() {
            self.line.lose_track("a here-document does not end");
        }
    }

    /// Reads commands up to the end of the text, or up to the parenthesis that closes them.
    fn commands(&mut self, end: End) {
        if self.depth > super::MAX_DEPTH {
            self.at = self.letters.len();
            return self.line.lose_track("its commands are nested too deeply");
        }
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' => self.at += 1,
                '\\' if self.rest_starts_with(JOINED_LINES) => self.at += 2,
                '\n' => {
                    self.at += 1;
                    self.finish_command();
                    self.read_here_documents();
                }
                '&' if self.rest_starts_with("&>") => self.redirection(),
                ';' | '|' | '&' => self.separator(),
                '#' => self.comment(),
                '<' | '>' => self.redirection(),
                '(' => self.open_parenthesis(),
                ')' => {
                    self.at += 1;
                    self.finish_command();
                    if end == End::Parenthesis {
                        return;
                    }
                    self.line.lose_track("a parenthesis closes nothing");
                }
                _ => self.word_of_command(),
            }
        }
        self.finish_command();
        if end == End::Parenthesis {
            self.line.lose_track("a parenthesis is not closed");
        }
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn rest_starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, letter)| self.letters.get(self.at + offset) == Some(&letter))
    }

    fn finish_command(&mut self) {
        let command = take(&mut self.command);
        self.line.push(command, self.depth);
    }

    fn separator(&mut self) {
        if self.rest_starts_with(";;") || self.rest_starts_with(";&") {
            self.line.lose_track("it holds a `case`");
        }
        self.at += 1;
        self.finish_command();
    }

    fn comment(&mut self) {
        while self.peek().is_some_and(|letter| letter != '\n') {
            self.at += 1;
        }
    }

    fn open_parenthesis(&mut self) {
        if self.command != Command::default() || self.rest_starts_with("((") {
            self.line.lose_track("it holds a function, an array or arithmetic");
        }
        self.at += 1;
        self.inside(|lexer| lexer.commands(End::Parenthesis));
    }

    /// Reads commands that stand inside another one.
    fn inside(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = take(&mut self.command);
        self.depth += 1;
        read(self);
        self.depth -= 1;
        self.command = outer;
    }

    fn word_of_command(&mut self) {
        let started_at = self.at;
        let word = self.word();
        let bare: String = self.letters[started_at..self.at].iter().collect();
        if !self.command.words.is_empty() {
            return self.command.words.push(word);
        }
        if let Some(name) = assigned_name(&bare) {
            return self.command.assignments.push(name.to_owned());
        }
        // Only an unquoted word is one of these.
        if NOT_FOLLOWED.contains(&bare.as_str()) {
            self.line.lose_track("it holds a form of the shell that is not followed");
        } else if bare == "for" {
            return self.loop_head();
        } else if BEFORE_A_COMMAND.contains(&bare.as_str()) {
            return;
        }
        self.command.words.push(word);
    }

    /// `for NAME in WORDS`: no command, but its words may hold some.
    fn loop_head(&mut self) {
        while self.peek().is_some_and(|letter| !matches!(letter, ';' | '\n')) {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('&' | '|' | '(' | ')' | '<' | '>' | '#') => {
                    return self.line.lose_track("it holds a loop that is not followed");
                }
                _ => {
                    self.word();
                }
            }
        }
    }

    /// Reads one word; the commands inside it are added to the line.
    fn word(&mut self) -> Word {
        let started_at = self.at;
        let mut word = Word { text: String::new(), reading: Reading::Exact };
        if self.peek() == Some('=') {
            // zsh puts a program's path in the place of `=name`.
            word.reading = Reading::Open;
        }
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | ')' => break,
                '(' => {
                    self.line.lose_track("it holds a function, an array or a pattern with parentheses");
                    break;
                }
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '\\' if self.rest_starts_with(JOINED_LINES) => self.at += 2,
                '\\' => {
                    self.at += 1;
                    // At the very end there is nothing to escape, and it stands for itself.
                    word.text.push(self.next().unwrap_or('\\'));
                }
                '$' => self.dollar(&mut word, Quotes::None),
                '`' => self.backquoted(&mut word),
                '*' | '?' | '[' | '{' => {
                    word.reading = Reading::Open;
                    word.text.push(letter);
                    self.at += 1;
                }
                _ => {
                    word.text.push(letter);
                    self.at += 1;
                }
            }
        }
        // Braces on their own are a command's own arguments (`find -exec … {} \;`) or group commands.
        if matches!(&self.letters[started_at..self.at], ['{'] | ['{', '}']) {
            word.reading = Reading::Exact;
        }
        word
    }

    fn single_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        loop {
            match self.next() {
                Some('\'') => return,
                Some(letter) => word.text.push(letter),
                None => return self.line.lose_track("a quote is not closed"),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        while let Some(letter) = self.peek() {
            match letter {
                '"' => {
                    self.at += 1;
                    return;
                }
                '$' => self.dollar(word, Quotes::Double),
                '`' => self.backquoted(word),
                '\\' if self.rest_starts_with(JOINED_LINES) => self.at += 2,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => word.text.push(escaped),
                        Some(other) => word.text.extend(['\\', other]),
                        None => {}
                    }
                }
                _ => {
                    word.text.push(letter);
                    self.at += 1;
                }
            }
        }
        self.line.lose_track("a quote is not closed");
    }

    fn dollar(&mut self, word: &mut Word, quotes: Quotes) {
        self.at += 1;
        while self.rest_starts_with(JOINED_LINES) {
            self.at += 2;
        }
        match self.peek() {
            Some('(') if self.rest_starts_with("((") => {
                word.reading = Reading::Open;
                self.line.lose_track("it holds arithmetic");
                self.at += 1;
            }
            Some('(') => {
                word.reading = Reading::Open;
                self.at += 1;
                self.inside(|lexer| lexer.commands(End::Parenthesis));
            }
            Some('{') => {
                word.reading = Reading::Open;
                self.at += 1;
                self.variable_in_braces();
            }
            // Quoting with escapes of its own, and translated text.
            Some('\'' | '"') if quotes == Quotes::None => {
                word.reading = Reading::Open;
                self.line.lose_track("it holds quoting with a dollar sign");
            }
            Some(letter) if letter.is_ascii_alphanumeric() || "_@*#?$!-".contains(letter) => {
                word.reading = Reading::Open;
                self.at += 1;
                while self.peek().is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                    self.at += 1;
                }
            }
            Some('[') => {
                word.reading = Reading::Open;
                self.line.lose_track("it holds arithmetic");
            }
            _ => word.text.push('$'),
        }
    }

    /// Only `${NAME}`: the longer forms can run commands.
    fn variable_in_braces(&mut self) {
        while let Some(letter) = self.next() {
            match letter {
                '}' => return,
                _ if letter.is_ascii_alphanumeric() || letter == '_' => {}
                _ => return self.line.lose_track("it holds a parameter expansion that is not followed"),
            }
        }
        self.line.lose_track("a brace is not closed");
    }

    fn backquoted(&mut self, word: &mut Word) {
        word.reading = Reading::Open;
        self.at += 1;
        let mut script = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(escaped @ ('`' | '\\' | '$')) => script.push(escaped),
                    Some(other) => script.extend(['\\', other]),
                    None => {}
                },
                Some(letter) => script.push(letter),
                None => return self.line.lose_track("a backquote is not closed"),
            }
        }
        self.line.add(&script, self.depth + 1);
    }
}

/// The name in `NAME=…`, `NAME+=…`.
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
