//! Reads a script character by character, following the syntax on which POSIX sh, bash and zsh agree.

mod expansion;
mod keyword;
mod redirect;

use std::mem::take;

use redirect::HereDocument;

use super::{Command, Line, Reading, Word};

/// A backslash at the end of a line joins it with the next.
const JOINED_LINES: &str = "\\\n";

pub(super) struct Lexer<'l> {
    letters: Vec<char>,
    at: usize,
    depth: usize,
    line: &'l mut Line,
    command: Command,
    /// Here-documents (`<<EOF`) whose text follows this line.
    here_documents: Vec<HereDocument>,
    words_to_come: WordsToCome,
}

/// Whether shells agree that further words belong to the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordsToCome {
    Belong,
    /// After `a &>f`. A POSIX shell parses `a & >f` and starts another command.
    InDoubt,
}

/// The quotes around a character.
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
            words_to_come: WordsToCome::Belong,
        }
    }

    pub(super) fn script(&mut self) {
        self.commands(End::OfText);
        if !self.here_documents.is_empty() {
            self.line.lose_track("a here-document does not end");
        }
    }

    /// Reads commands up to the end of the text or the closing parenthesis.
    fn commands(&mut self, end: End) {
        if self.depth > super::MAX_DEPTH {
            self.at = self.letters.len();
            return self.line.lose_track("its commands are nested too deeply");
        }
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' => self.at += 1,
                '\\' if self.rest_starts_with(JOINED_LINES) => self.joined_lines(),
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

    /// Skips blanks and joined lines.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.rest_starts_with(JOINED_LINES) => self.joined_lines(),
                _ => return,
            }
        }
    }

    /// Skips a joined line. Inside an operator (`<\` newline `<E`) or a word it changes the meaning, which is
    /// unsupported.
    fn joined_lines(&mut self) {
        let is_apart =
            |letter: Option<&char>| letter.is_none_or(|letter| matches!(letter, ' ' | '\t' | '\n'));
        let before = self.at.checked_sub(1).and_then(|at| self.letters.get(at));
        let behind = self.letters.get(self.at + JOINED_LINES.len());
        if !is_apart(before) && !is_apart(behind) {
            self.line.lose_track("lines are joined in the middle of a word");
        }
        self.at += JOINED_LINES.len();
    }

    /// The source text from `started_at`, quotes included, with joined lines removed.
    fn bare(&self, started_at: usize) -> String {
        let text: String = self.letters[started_at..self.at].iter().collect();
        text.replace(JOINED_LINES, "")
    }

    fn finish_command(&mut self) {
        self.words_to_come = WordsToCome::Belong;
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

    /// Reads commands nested in another one.
    fn inside(&mut self, read: impl FnOnce(&mut Self)) {
        self.expect_no_here_document();
        let outer = take(&mut self.command);
        let outer_words = self.words_to_come;
        self.depth += 1;
        read(self);
        self.depth -= 1;
        self.command = outer;
        self.words_to_come = outer_words;
        self.expect_no_here_document();
    }

    /// Shells disagree where a here-document begins if a parenthesis separates it from its operator.
    fn expect_no_here_document(&mut self) {
        if !self.here_documents.is_empty() {
            self.line.lose_track("a here-document and its text are parted by a parenthesis");
        }
    }

    /// Reads one word and adds the commands inside it to the line.
    fn word(&mut self) -> Word {
        let started_at = self.at;
        let mut word = Word { text: String::new(), reading: Reading::Exact };
        if self.peek() == Some('=') {
            // zsh expands `=name` to a program's path.
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
                '\\' if self.rest_starts_with(JOINED_LINES) => self.joined_lines(),
                '\\' => {
                    self.at += 1;
                    // At the end of the text there is nothing to escape: a literal backslash.
                    word.text.push(self.next().unwrap_or('\\'));
                }
                '$' => self.dollar(&mut word, Quotes::None),
                '`' => self.backquoted(&mut word, Quotes::None),
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
        // Lone braces are arguments (`find -exec … {} \;`) or group commands.
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
                '`' => self.backquoted(word, Quotes::Double),
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
}
