//! Redirections: the files a command reads and writes, and the texts that stand below it.

use std::mem::take;

use super::super::{Access, File, Reading, Word};
use super::{End, JOINED_LINES, Lexer};

/// A text that follows the line it is named in (`<<EOF`).
pub(super) struct HereDocument {
    end: String,
    tabs: Tabs,
    /// Quoted: the text is taken as it is.
    verbatim: Reading,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tabs {
    Kept,
    Stripped,
}

impl Lexer<'_> {
    pub(super) fn redirection(&mut self) {
        self.forget_descriptor();
        if self.rest_starts_with("<<<") {
            self.at += 3;
            self.redirected_word();
        } else if self.rest_starts_with("<<") {
            self.at += 2;
            self.here_document();
        } else if self.rest_starts_with("<(") || self.rest_starts_with(">(") {
            self.at += 2;
            self.inside(|lexer| lexer.commands(End::Parenthesis));
            self.command.words.push(Word::open());
        } else {
            self.file();
        }
    }

    fn file(&mut self) {
        let mut operator = String::new();
        while let Some(letter @ ('<' | '>' | '&' | '|')) = self.peek() {
            // `a >b |c`: the bar belongs to the operator only directly behind it.
            if letter == '|' && operator != ">" {
                break;
            }
            operator.push(letter);
            self.at += 1;
        }
        let access = match operator.as_str() {
            "<" | "<&" => Access::Read,
            ">" | ">>" | ">|" | "<>" | "&>" | "&>>" | ">&" => Access::Write,
            _ => return self.line.lose_track("it holds a redirection that is not followed"),
        };
        let name = self.redirected_word();
        let is_descriptor = operator.ends_with('&')
            && name.reading == Reading::Exact
            && name.text.trim_end_matches('-').chars().all(|letter| letter.is_ascii_digit());
        let leads_nowhere = name.reading == Reading::Exact
            && matches!(name.text.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin");
        if !is_descriptor && !leads_nowhere {
            self.command.files.push(File { access, name });
        }
    }

    /// `2>` and its kind: the number directly before is no argument.
    fn forget_descriptor(&mut self) {
        let behind_a_digit = self.at > 0 && self.letters.get(self.at - 1).is_some_and(char::is_ascii_digit);
        if !behind_a_digit || self.peek() == Some('&') {
            return;
        }
        let number =
            self.letters[..self.at].iter().rev().take_while(|letter| letter.is_ascii_digit()).count();
        let before = self.at - number;
        let stands_alone =
            before == 0 || matches!(self.letters[before - 1], ' ' | '\t' | '\n' | ';' | '&' | '|');
        if stands_alone {
            self.command.words.pop();
        }
    }

    fn redirected_word(&mut self) -> Word {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.rest_starts_with(JOINED_LINES) => self.at += 2,
                _ => break,
            }
        }
        if self.rest_starts_with("<(") || self.rest_starts_with(">(") {
            self.at += 2;
            self.inside(|lexer| lexer.commands(End::Parenthesis));
            return Word::open();
        }
        let started_at = self.at;
        let word = self.word();
        if self.at == started_at {
            self.line.lose_track("a redirection names no file");
        }
        word
    }

    fn here_document(&mut self) {
        let tabs = if self.peek() == Some('-') { Tabs::Stripped } else { Tabs::Kept };
        if tabs == Tabs::Stripped {
            self.at += 1;
        }
        let started_at = self.at;
        let end = self.redirected_word();
        let quoted =
            self.letters[started_at..self.at].iter().any(|letter| matches!(letter, '\'' | '"' | '\\'));
        if end.reading == Reading::Open {
            self.line.lose_track("a here-document has an end that is not followed");
        }
        let verbatim = if quoted { Reading::Exact } else { Reading::Open };
        self.here_documents.push(HereDocument { end: end.text, tabs, verbatim });
    }

    pub(super) fn read_here_documents(&mut self) {
        for document in take(&mut self.here_documents) {
            let mut ended = false;
            while self.at < self.letters.len() && !ended {
                let rest = &self.letters[self.at..];
                let length = rest.iter().position(|letter| *letter == '\n').unwrap_or(rest.len());
                let text: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.letters.len());
                ended = match document.tabs {
                    Tabs::Kept => text == document.end,
                    Tabs::Stripped => text.trim_start_matches('\t') == document.end,
                };
                if !ended && document.verbatim == Reading::Open && text.contains(['$', '`', '\\']) {
                    self.line.lose_track("a here-document holds expansions");
                }
            }
            if !ended {
                self.line.lose_track("a here-document does not end");
            }
        }
    }
}
