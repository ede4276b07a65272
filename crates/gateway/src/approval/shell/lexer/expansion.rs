//! Expansions: variables and command substitutions.

use super::super::{Reading, Word};
use super::{End, JOINED_LINES, Lexer, Quotes};

impl Lexer<'_> {
    pub(super) fn dollar(&mut self, word: &mut Word, quotes: Quotes) {
        self.at += 1;
        match self.peek() {
            Some('\\') if self.rest_starts_with(JOINED_LINES) => {
                word.reading = Reading::Open;
                self.line.lose_track("lines are joined behind a dollar sign");
            }
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
            // `$'…'` has its own escapes, and `$"…"` is translated.
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
            // zsh has special parameters after these characters.
            Some('~' | '=' | '^' | '+' | ':') => {
                word.reading = Reading::Open;
                word.text.push('$');
            }
            _ => word.text.push('$'),
        }
    }

    /// Only `${NAME}`: other forms can run commands.
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

    pub(super) fn backquoted(&mut self, word: &mut Word, quotes: Quotes) {
        self.expect_no_here_document();
        word.reading = Reading::Open;
        self.at += 1;
        let mut script = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    // Shells disagree whether the backslash stays.
                    Some('"') if quotes == Quotes::Double => {
                        return self.line.lose_track("it holds quotes in backquotes in quotes");
                    }
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
