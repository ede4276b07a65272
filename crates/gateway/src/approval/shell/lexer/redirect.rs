//! Redirections: the files a command reads and writes, and here-documents.

use std::mem::take;

use super::super::{Access, File, Reading, Word};
use super::{End, Lexer, WordsToCome};

/// A here-document (`<<EOF`), whose text follows the line.
pub(super) struct HereDocument {
    end: String,
    tabs: Tabs,
    /// `Exact` if the delimiter is quoted: the text is not expanded.
    verbatim: Reading,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tabs {
    Kept,
    Stripped,
}

impl Lexer<'_> {
    pub(super) fn redirection(&mut self) {
        if self.rest_starts_with("<<<") {
            self.at += 3;
            self.redirected_word();
        } else if self.rest_starts_with("<<") {
            self.at += 2;
            self.here_document();
        } else if self.at_process_substitution() {
            let word = self.process_substitution();
            self.command.words.push(word);
        } else {
            self.file();
        }
    }

    fn at_process_substitution(&self) -> bool {
        self.rest_starts_with("<(") || self.rest_starts_with(">(")
    }

    fn process_substitution(&mut self) -> Word {
        let before = self.at.checked_sub(1).and_then(|at| self.letters.get(at));
        if before.is_some_and(|letter| !matches!(letter, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(')) {
            self.line.lose_track("a process substitution is part of a longer word");
        }
        self.at += 2;
        self.inside(|lexer| lexer.commands(End::Parenthesis));
        Word::open()
    }

    fn file(&mut self) {
        let mut operator = String::new();
        while let Some(letter @ ('<' | '>' | '&' | '|')) = self.peek() {
            // `a >b |c`: the bar belongs to the operator only directly after it.
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
        if operator.starts_with('&') {
            self.words_to_come = WordsToCome::InDoubt;
        }
        // zsh writes `>!` for `>|`.
        if self.peek() == Some('!') {
            self.line.lose_track("it holds a redirection that is not followed");
        }
        let started_at = self.at;
        let mut name = self.redirected_word();
        // A quoted `~` is an ordinary character.
        if name.text.starts_with('~') && self.bare(started_at).contains(['\'', '"', '\\']) {
            name.reading = Reading::Open;
        }
        let is_descriptor =
            operator.ends_with('&') && name.reading == Reading::Exact && is_descriptor(&name.text);
        let leads_nowhere = name.reading == Reading::Exact
            && matches!(name.text.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin");
        if !is_descriptor && !leads_nowhere {
            self.command.files.push(File { access, name });
        }
    }

    fn redirected_word(&mut self) -> Word {
        self.skip_blanks();
        if self.at_process_substitution() {
            return self.process_substitution();
        }
        let started_at = self.at;
        let word = self.word();
        // A number sign starts a comment.
        if self.at == started_at || self.letters[started_at] == '#' {
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
        let quoted = self.bare(started_at).contains(['\'', '"', '\\']);
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
                let text = match document.tabs {
                    Tabs::Kept => text.as_str(),
                    Tabs::Stripped => text.trim_start_matches('\t'),
                };
                ended = text == document.end;
                // bash also accepts `EOF)` as the end inside a parenthesis.
                if !ended && text.starts_with(&document.end) {
                    self.line.lose_track("a here-document holds a line that begins like its end");
                }
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

/// `1`, `-` or `1-` after `>&`.
fn is_descriptor(name: &str) -> bool {
    let number = name.strip_suffix('-').unwrap_or(name);
    !name.is_empty() && number.chars().all(|letter| letter.is_ascii_digit())
}
