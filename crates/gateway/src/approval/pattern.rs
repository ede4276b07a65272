//! Matches the argument of a rule: the words of a command, a path, or the host of a URL.

use super::path::{Path, PathRoot};
use super::shell::{Line, Reading, Word};

/// Whether something matches. `Maybe` is for what only the shell or program decides at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    Maybe,
    Yes,
}

impl Match {
    pub(super) fn of(found: bool) -> Self {
        if found { Self::Yes } else { Self::No }
    }
}

/// How strictly names are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// As written. For allow rules.
    Exact,
    /// Ignoring letter case and a program's directory, because the system may treat them as equal. For ask and deny
    /// rules.
    Loose,
}

/// `git status:*`: the first words of a command, and whether more may follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    words: Vec<String>,
    end: PatternEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternEnd {
    Closed,
    Open,
}

impl CommandPattern {
    /// Parses `git status:*`, `git log *` or `npm test`. The error says what to write.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (text, end) = match text.strip_suffix(":*") {
            Some(beginning) => (beginning, PatternEnd::Open),
            None => match text.strip_suffix(" *") {
                Some(beginning) => (beginning, PatternEnd::Open),
                None => (text, PatternEnd::Closed),
            },
        };
        // A `*` inside a word is a wildcard of the rule, so it is hidden from the shell reader.
        let line = Line::read(&text.replace('*', STAR));
        let [command] = line.commands.as_slice() else {
            return Err("expected a single command: write one rule per command");
        };
        let is_plain = line.unclear.is_none()
            && command.assignments.is_empty()
            && command.files.is_empty()
            && command.words.iter().all(|word| word.reading == Reading::Exact);
        if !is_plain {
            return Err("expected plain words, without variables, redirections or other shell syntax");
        }
        let words = command.words.iter().map(|word| word.text.replace(STAR, "*")).collect();
        Ok(Self { words, end })
    }

    /// Compares the pattern with a command's words.
    pub(super) fn matches(&self, words: &[Word], comparison: Comparison) -> Match {
        for (at, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(at) else { return Match::No };
            // The shell may expand it to several words, or to none.
            if word.reading == Reading::Open {
                return Match::Maybe;
            }
            let is_same = match comparison {
                Comparison::Loose if at == 0 => {
                    let name = word.text.rsplit('/').next().unwrap_or_default();
                    glob_loosely(pattern, &word.text) || glob_loosely(pattern, name)
                }
                Comparison::Exact | Comparison::Loose => glob(pattern, &word.text),
            };
            if !is_same {
                return Match::No;
            }
        }
        let rest = &words[self.words.len()..];
        match self.end {
            PatternEnd::Open => Match::Yes,
            PatternEnd::Closed if rest.is_empty() => Match::Yes,
            PatternEnd::Closed if rest.iter().all(|word| word.reading == Reading::Open) => Match::Maybe,
            PatternEnd::Closed => Match::No,
        }
    }

    /// The number of words in the pattern.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// True if no further words may follow.
    pub(super) fn is_closed(&self) -> bool {
        self.end == PatternEnd::Closed
    }
}

/// Replaces `*` while a pattern is read; it has no meaning in any shell.
const STAR: &str = "\u{e000}";

/// `src/**`, `/etc/*`, `~/.ssh/**`, `**/.env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    path: Path,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("expected a path, as in `src/**`");
        }
        if text.split('/').any(|segment| segment == "..") {
            return Err("a rule's path must not contain `..`: write the folder it leads to");
        }
        if text.split('/').any(|segment| segment.contains("**") && segment != "**") {
            return Err("`**` must be a whole path segment, as in `src/**/*.rs`");
        }
        Ok(Self { path: Path::read(text) })
    }

    /// Compares the pattern with a path. A relative pattern starts at the working directory; one that starts with `**`
    /// matches anywhere.
    pub(super) fn matches(&self, path: &Path, workdir: Option<&Path>, comparison: Comparison) -> Match {
        if self.compare(path, workdir, comparison, Below::Not) {
            return Match::Yes;
        }
        let may_lead_there = comparison == Comparison::Loose && self.may_meet_at_home(path, workdir);
        if may_lead_there { Match::Maybe } else { Match::No }
    }

    /// Only the shell knows what `~` expands to, so a path with `~` may equal one without.
    fn may_meet_at_home(&self, path: &Path, workdir: Option<&Path>) -> bool {
        if self.path.begins_anywhere() {
            return false;
        }
        let (pattern, path) = (self.path.within(workdir), path.within(workdir));
        match (pattern.root(), path.root()) {
            (PathRoot::Home(_), PathRoot::Top) => {
                let anywhere: Vec<String> =
                    std::iter::once("**".to_owned()).chain(pattern.segments().iter().cloned()).collect();
                segments(&anywhere, path.segments(), Comparison::Loose, Below::Not)
            }
            (PathRoot::Top | PathRoot::Here | PathRoot::Above(_), PathRoot::Home(_)) => true,
            (PathRoot::Home(one), PathRoot::Home(other)) => one != other,
            (PathRoot::Home(_), PathRoot::Here | PathRoot::Above(_))
            | (
                PathRoot::Top | PathRoot::Here | PathRoot::Above(_),
                PathRoot::Top | PathRoot::Here | PathRoot::Above(_),
            ) => false,
        }
    }

    /// True if a path below this folder may match.
    pub(super) fn may_match_below(&self, folder: &Path, workdir: Option<&Path>) -> bool {
        self.compare(folder, workdir, Comparison::Loose, Below::Too)
    }

    fn compare(&self, path: &Path, workdir: Option<&Path>, comparison: Comparison, below: Below) -> bool {
        let path = path.within(workdir);
        if self.path.begins_anywhere() {
            return segments(self.path.segments(), path.segments(), comparison, below);
        }
        let pattern = self.path.within(workdir);
        pattern.root() == path.root() && segments(pattern.segments(), path.segments(), comparison, below)
    }
}

/// Whether a match of anything below a folder counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Not,
    Too,
}

/// Compares segment by segment; `**` matches any number of segments. At worst quadratic.
fn segments(pattern: &[String], path: &[String], comparison: Comparison, below: Below) -> bool {
    // reached[i]: the first i segments of the pattern match the path so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_double_stars(pattern, &mut reached);
    for segment in path {
        let mut next = vec![false; pattern.len() + 1];
        for (at, part) in pattern.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            if part == "**" {
                next[at] = true;
            } else if same_segment(part, segment, comparison) {
                next[at + 1] = true;
            }
        }
        reached = next;
        skip_double_stars(pattern, &mut reached);
    }
    match below {
        Below::Not => reached[pattern.len()],
        Below::Too => reached.contains(&true),
    }
}

fn skip_double_stars(pattern: &[String], reached: &mut [bool]) {
    for (at, part) in pattern.iter().enumerate() {
        if reached[at] && part == "**" {
            reached[at + 1] = true;
        }
    }
}

fn same_segment(pattern: &str, segment: &str, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Exact => glob(pattern, segment),
        Comparison::Loose => glob_loosely(pattern, segment),
    }
}

/// `domain:example.com`, `domain:*.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainPattern(String);

impl DomainPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "expected a host, as in `domain:example.com` or `domain:*.example.com`";
        let host = text.strip_prefix("domain:").ok_or(FORM)?;
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_host = name.bytes().all(|letter| {
            letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b':' | b'[' | b']')
        });
        if name.is_empty() || !is_host || name.starts_with('.') {
            return Err(FORM);
        }
        Ok(Self(host.to_ascii_lowercase()))
    }

    /// Compares the pattern with a URL.
    pub(super) fn matches(&self, address: &str) -> Match {
        let Some(host) = host_of(address) else { return Match::Maybe };
        match self.0.strip_prefix("*.") {
            Some(parent) => Match::of(host.strip_suffix(parent).is_some_and(|name| name.ends_with('.'))),
            None => Match::of(host == self.0),
        }
    }
}

/// The host of a plain web URL. Programs parse unusual URLs differently, so those have none.
fn host_of(address: &str) -> Option<String> {
    let lower = address.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let is_odd = |letter: char| !letter.is_ascii_graphic() || matches!(letter, '@' | '\\' | '%');
    if authority.is_empty() || authority.contains(is_odd) || rest.contains('\\') {
        return None;
    }
    let host = match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then(|| host.to_owned())
}

fn glob_loosely(pattern: &str, text: &str) -> bool {
    glob(&pattern.to_lowercase(), &text.to_lowercase())
}

/// `*` matches any text, everything else matches itself.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(found) = rest.find(piece) else { return false };
        rest = &rest[found + piece.len()..];
    }
    rest.ends_with(last)
}
