//! Splits a command line into its commands and their words, if it is so simple that every shell reads it alike: plain
//! and quoted words, joined by `&&`, `||`, `;`, `|` or newlines. Everything else is unclear, and a person decides.

#[cfg(test)]
mod against_bash;
#[cfg(test)]
mod tests;

/// A longer line is unclear, which bounds the work of applying rules to it.
const MAX_BYTES: usize = 16 * 1024;

/// The same for a line with more words.
const MAX_WORDS: usize = 256;

/// Redirections that write and read nothing.
const HARMLESS_REDIRECTIONS: &[&str] = &[
    "2>&1",
    "1>&2",
    ">&2",
    ">/dev/null",
    "> /dev/null",
    "1>/dev/null",
    "1> /dev/null",
    "2>/dev/null",
    "2> /dev/null",
    "&>/dev/null",
    "&> /dev/null",
    "</dev/null",
    "< /dev/null",
];

/// Words that begin a construct of bash, zsh or `sh` instead of naming a program.
const KEYWORDS: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "case",
    "esac",
    "for",
    "foreach",
    "end",
    "select",
    "while",
    "until",
    "repeat",
    "do",
    "done",
    "in",
    "function",
    "time",
    "coproc",
    "nocorrect",
    "noglob",
    "-",
];

/// One command: a program and its arguments.
pub(super) type Words = Vec<Word>;

/// One word, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// True if the shell replaces it by matching file names.
    pub(super) is_glob: bool,
}

/// The line does more than joining simple commands, or shells may read it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclear;

/// Splits a line into its commands. There is at least one, and each has at least one word.
pub(super) fn read(line: &str) -> Result<Vec<Words>, Unclear> {
    if line.len() > MAX_BYTES {
        return Err(Unclear);
    }
    let mut reader = Reader { rest: line, ..Reader::default() };
    while let Some(letter) = reader.rest.chars().next() {
        reader.step(letter)?;
    }
    reader.end_line()?;
    let words: usize = reader.commands.iter().map(Vec::len).sum();
    if reader.expects_command || words == 0 || words > MAX_WORDS {
        return Err(Unclear);
    }
    Ok(reader.commands)
}

/// True if the shell may expand a word with this letter to file names.
pub(super) fn is_glob_letter(letter: char) -> bool {
    matches!(letter, '*' | '?' | '[')
}

#[derive(Default)]
struct Reader<'l> {
    rest: &'l str,
    commands: Vec<Words>,
    words: Words,
    word: Option<Word>,
    /// True after `&&`, `||` and `|`.
    expects_command: bool,
}

impl Reader<'_> {
    fn step(&mut self, letter: char) -> Result<(), Unclear> {
        if self.word.is_none() && self.skip_redirection() {
            return if self.words.is_empty() { Err(Unclear) } else { Ok(()) };
        }
        self.skip(letter.len_utf8());
        match letter {
            ' ' | '\t' => {
                self.end_word();
                Ok(())
            }
            '\n' => self.end_line(),
            ';' => self.end_command(),
            '|' => {
                self.skip_if('|');
                self.join()
            }
            '&' if self.skip_if('&') => self.join(),
            '#' if self.begins_command() => {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
                Ok(())
            }
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => self.escaped(),
            _ => self.plain(letter),
        }
    }

    /// Skips a harmless redirection that stands alone, and says whether there was one.
    fn skip_redirection(&mut self) -> bool {
        let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '|', '&']);
        let known = HARMLESS_REDIRECTIONS.iter().filter_map(|known| self.rest.strip_prefix(known));
        let Some(rest) = known.into_iter().find(|rest| ends(rest)) else { return false };
        self.rest = rest;
        true
    }

    fn plain(&mut self, letter: char) -> Result<(), Unclear> {
        let before = self.word.as_ref().and_then(|word| word.text.chars().last());
        let is_plain = match letter {
            // A home directory, unless it is inside a word (`HEAD~1`).
            '~' => before.is_some_and(|before| !matches!(before, ':' | '=')),
            // zsh replaces `=name` by the path of a program.
            '=' => before.is_some(),
            '_' | '-' | '.' | '/' | ',' | ':' | '+' | '@' | '%' | '^' | '*' | '?' | '[' | ']' => true,
            _ => letter.is_alphanumeric(),
        };
        if !is_plain {
            return Err(Unclear);
        }
        let word = self.word();
        word.text.push(letter);
        word.is_glob |= is_glob_letter(letter);
        Ok(())
    }

    fn single_quoted(&mut self) -> Result<(), Unclear> {
        let (quoted, rest) = self.rest.split_once('\'').ok_or(Unclear)?;
        if quoted.contains(is_odd) {
            return Err(Unclear);
        }
        self.rest = rest;
        self.word().text.push_str(quoted);
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), Unclear> {
        self.word();
        loop {
            let mut letter = self.take()?;
            match letter {
                '"' => return Ok(()),
                '$' | '`' => return Err(Unclear),
                '\\' => match self.take()? {
                    '\n' => return Err(Unclear),
                    escaped @ ('$' | '`' | '"' | '\\') => letter = escaped,
                    other => {
                        self.word().text.push('\\');
                        letter = other;
                    }
                },
                _ => {}
            }
            if is_odd(letter) {
                return Err(Unclear);
            }
            self.word().text.push(letter);
        }
    }

    fn escaped(&mut self) -> Result<(), Unclear> {
        let letter = self.take()?;
        if !(letter.is_ascii_graphic() || letter == ' ') {
            return Err(Unclear);
        }
        self.word().text.push(letter);
        Ok(())
    }

    fn join(&mut self) -> Result<(), Unclear> {
        self.end_command()?;
        self.expects_command = true;
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), Unclear> {
        self.end_word();
        if self.words.is_empty() { Ok(()) } else { self.end_command() }
    }

    fn end_command(&mut self) -> Result<(), Unclear> {
        self.end_word();
        let program = self.words.first().ok_or(Unclear)?;
        let is_plain = !program.text.is_empty()
            && !program.text.contains(is_glob_letter)
            // An assignment.
            && !program.text.contains('=')
            && !KEYWORDS.contains(&program.text.as_str());
        if !is_plain {
            return Err(Unclear);
        }
        self.commands.push(std::mem::take(&mut self.words));
        self.expects_command = false;
        Ok(())
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn begins_command(&self) -> bool {
        self.word.is_none() && self.words.is_empty() && !self.expects_command
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word { text: String::new(), is_glob: false })
    }

    fn take(&mut self) -> Result<char, Unclear> {
        let letter = self.rest.chars().next().ok_or(Unclear)?;
        self.skip(letter.len_utf8());
        Ok(letter)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn skip_if(&mut self, letter: char) -> bool {
        let rest = self.rest.strip_prefix(letter);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Control characters other than tabs and newlines. Terminals, people and shells disagree about them.
fn is_odd(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\t' | '\n')
}
