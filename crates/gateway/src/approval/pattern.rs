//! What the argument of a rule matches: a command's words, a path, the host of an address.

use super::path::{Path, Root};
use super::shell::{Line, Reading, Word};

/// Whether something matches. What a shell or a program decides only when it runs may match.
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
pub(super) enum Care {
    /// As they are written: for what is allowed.
    Exactly,
    /// Letter case and a program's folder apart, since a system may not tell them apart: for what is not.
    Broadly,
}

/// `git status:*`: words of a command, then nothing more or anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    words: Vec<String>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Open,
}

impl CommandPattern {
    /// Reads `git status:*`, `git log *` or `npm test`; the error says what to write.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (text, end) = match text.strip_suffix(":*") {
            Some(beginning) => (beginning, End::Open),
            None => match text.strip_suffix(" *") {
                Some(beginning) => (beginning, End::Open),
                None => (text, End::Closed),
            },
        };
        // A `*` stands for any letters of a word here, so it is kept from the shell's own reading.
        let line = Line::read(&text.replace('*', STAR));
        let [command] = line.commands.as_slice() else {
            return Err("it takes the words of one command: write a rule for each command");
        };
        let is_plain = line.unclear.is_none()
            && command.assignments.is_empty()
            && command.files.is_empty()
            && command.words.iter().all(|word| word.reading == Reading::Exact);
        if !is_plain {
            return Err("it takes plain words, without variables, redirections or other signs of the shell");
        }
        let words = command.words.iter().map(|word| word.text.replace(STAR, "*")).collect();
        Ok(Self { words, end })
    }

    /// Compares with a command's words.
    pub(super) fn matches(&self, words: &[Word], care: Care) -> Match {
        for (at, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(at) else { return Match::No };
            // The shell may make several words of it, or none.
            if word.reading == Reading::Open {
                return Match::Maybe;
            }
            let is_same = match care {
                Care::Broadly if at == 0 => {
                    let name = word.text.rsplit('/').next().unwrap_or_default();
                    glob_broadly(pattern, &word.text) || glob_broadly(pattern, name)
                }
                Care::Exactly | Care::Broadly => glob(pattern, &word.text),
            };
            if !is_same {
                return Match::No;
            }
        }
        let rest = &words[self.words.len()..];
        match self.end {
            End::Open => Match::Yes,
            End::Closed if rest.is_empty() => Match::Yes,
            End::Closed if rest.iter().all(|word| word.reading == Reading::Open) => Match::Maybe,
            End::Closed => Match::No,
        }
    }

    /// How many words it names.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// True where it names every word.
    pub(super) fn is_closed(&self) -> bool {
        self.end == End::Closed
    }
}

/// Stands for `*` while a pattern is read; no shell gives it a meaning.
const STAR: &str = "\u{e000}";

/// `src/**`, `/etc/*`, `~/.ssh/**`, `**/.env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    path: Path,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("it takes a path, as in `src/**`");
        }
        if text.split('/').any(|segment| segment == "..") {
            return Err("a path in a rule has no `..`: write the folder that is meant");
        }
        if text.split('/').any(|segment| segment.contains("**") && segment != "**") {
            return Err("`**` stands alone between slashes, as in `src/**/*.rs`");
        }
        Ok(Self { path: Path::read(text) })
    }

    /// Compares with a path. A pattern without a beginning starts at the working folder; one that begins with `**`
    /// matches anywhere.
    pub(super) fn matches(&self, path: &Path, workdir: Option<&Path>, care: Care) -> Match {
        if self.compare(path, workdir, care, Below::Not) {
            return Match::Yes;
        }
        let may_lead_there = care == Care::Broadly && self.may_meet_at_home(path, workdir);
        if may_lead_there { Match::Maybe } else { Match::No }
    }

    /// Where `~` leads is the shell's knowledge: a path with it may be one without it.
    fn may_meet_at_home(&self, path: &Path, workdir: Option<&Path>) -> bool {
        if self.path.begins_anywhere() {
            return false;
        }
        let (pattern, path) = (self.path.within(workdir), path.within(workdir));
        match (pattern.root(), path.root()) {
            (Root::Home(_), Root::Top) => {
                let anywhere: Vec<String> =
                    std::iter::once("**".to_owned()).chain(pattern.segments().iter().cloned()).collect();
                segments(&anywhere, path.segments(), Care::Broadly, Below::Not)
            }
            (Root::Top | Root::Here | Root::Above(_), Root::Home(_)) => true,
            (Root::Home(one), Root::Home(other)) => one != other,
            (Root::Home(_), Root::Here | Root::Above(_))
            | (Root::Top | Root::Here | Root::Above(_), Root::Top | Root::Here | Root::Above(_)) => false,
        }
    }

    /// True if something below this folder may match.
    pub(super) fn may_match_below(&self, folder: &Path, workdir: Option<&Path>) -> bool {
        self.compare(folder, workdir, Care::Broadly, Below::Too)
    }

    fn compare(&self, path: &Path, workdir: Option<&Path>, care: Care, below: Below) -> bool {
        let path = path.within(workdir);
        if self.path.begins_anywhere() {
            return segments(self.path.segments(), path.segments(), care, below);
        }
        let pattern = self.path.within(workdir);
        pattern.root() == path.root() && segments(pattern.segments(), path.segments(), care, below)
    }
}

/// Whether what stands below a folder counts as the folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Not,
    Too,
}

/// Compares segment by segment; `**` stands for any number of them. Quadratic at worst, and never worse.
fn segments(pattern: &[String], path: &[String], care: Care, below: Below) -> bool {
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
            } else if same_segment(part, segment, care) {
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

fn same_segment(pattern: &str, segment: &str, care: Care) -> bool {
    match care {
        Care::Exactly => glob(pattern, segment),
        Care::Broadly => glob_broadly(pattern, segment),
    }
}

/// `domain:example.com`, `domain:*.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainPattern(String);

impl DomainPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "it takes a host, as in `domain:example.com` or `domain:*.example.com`";
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

    /// Compares with an address.
    pub(super) fn matches(&self, address: &str) -> Match {
        let Some(host) = host_of(address) else { return Match::Maybe };
        match self.0.strip_prefix("*.") {
            Some(parent) => Match::of(host.strip_suffix(parent).is_some_and(|name| name.ends_with('.'))),
            None => Match::of(host == self.0),
        }
    }
}

/// The host of a plain web address. Programs differ in how they read odd ones, so odd ones have none.
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

fn glob_broadly(pattern: &str, text: &str) -> bool {
    glob(&pattern.to_lowercase(), &text.to_lowercase())
}

/// `*` stands for any letters, all else for itself.
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
