//! Matches the argument of a rule: the words of a command, a path, or the host of a URL.

use std::path::Path;

use super::command_line::{self, Word};
use super::glob::{glob, may_be_same};
use super::path::Place;
use super::rules::Workdir;

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

    pub(super) fn maybe(found: bool) -> Self {
        if found { Self::Maybe } else { Self::No }
    }
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
        let beginning = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
        let end = if beginning.is_some() { PatternEnd::Open } else { PatternEnd::Closed };
        // A program's name may contain a `*` in a rule, but not in a command.
        let hidden = beginning.unwrap_or(text).replace('*', STAR);
        let commands = command_line::read(&hidden)
            .map_err(|_| "expected plain words, without variables, redirections or other shell syntax")?;
        let [command] = commands.as_slice() else {
            return Err("expected a single command: write one rule per command");
        };
        Ok(Self { words: command.iter().map(|word| word.text.replace(STAR, "*")).collect(), end })
    }

    /// True if these words are what the rule names, as written. For allow rules.
    pub(super) fn covers(&self, words: &[Word]) -> bool {
        let has_room = match self.end {
            PatternEnd::Open => words.len() >= self.words.len(),
            PatternEnd::Closed => words.len() == self.words.len(),
        };
        has_room && self.words.iter().zip(words).all(|(named, word)| !word.is_glob && glob(named, &word.text))
    }

    /// Compares loosely, so that it rather matches too much: a program is recognised in any letter case and with a
    /// path before it. For ask and deny rules.
    pub(super) fn may_cover(&self, words: &[Word]) -> Match {
        let (Some((program, named)), Some((first, arguments))) =
            (self.words.split_first(), words.split_first())
        else {
            return Match::No;
        };
        let name = first.text.rsplit('/').next().unwrap_or_default();
        if !(same_name(program, &first.text) || same_name(program, name)) {
            return Match::No;
        }
        if arguments.len() >= named.len()
            && named.iter().zip(arguments).all(|(named, word)| glob(named, &word.text))
        {
            return Match::of(self.end == PatternEnd::Open || arguments.len() == named.len());
        }
        // Options may come between (`git -C x push`), and a glob may become the word.
        let mut arguments = arguments.iter();
        let is_same = |named: &str, word: &Word| glob(named, &word.text) || word.is_glob;
        Match::maybe(named.iter().all(|named| arguments.any(|word| is_same(named, word))))
    }

    /// The number of words in the pattern.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// True if further words may follow.
    pub(super) fn is_open(&self) -> bool {
        self.end == PatternEnd::Open
    }

    /// True if the pattern matches only one command.
    pub(super) fn is_exact(&self) -> bool {
        self.end == PatternEnd::Closed && !self.words.iter().any(|word| word.contains('*'))
    }
}

/// Replaces `*` while a pattern is read.
const STAR: &str = "__star__";

/// `src/**`, `/etc/*`, `~/.ssh/**`, `**/.env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    start: PathStart,
    names: Vec<String>,
}

/// Where a pattern starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathStart {
    /// `/`.
    Root,
    /// `~/`.
    Home,
    /// The agent's working directory.
    Project,
    /// Any folder; in allow rules, any folder of the working directory.
    Anywhere,
}

impl PathPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (start, rest) = if let Some(rest) = text.strip_prefix('/') {
            (PathStart::Root, rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (PathStart::Home, rest)
        } else if text == "**" || text.starts_with("**/") {
            (PathStart::Anywhere, text)
        } else {
            (PathStart::Project, text)
        };
        if text.is_empty() || text.starts_with('~') && start != PathStart::Home {
            return Err("expected a path, as in `src/**` or `~/.ssh/**`");
        }
        let names: Vec<String> =
            rest.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect();
        if names.iter().any(|name| name == "..") {
            return Err("a rule's path must not contain `..`: write the folder it leads to");
        }
        if names.iter().any(|name| name.contains("**") && name != "**") {
            return Err("`**` must be a whole path segment, as in `src/**/*.rs`");
        }
        Ok(Self { start, names })
    }

    /// True if the pattern contains this name.
    pub(super) fn names(&self, name: &str) -> bool {
        self.names.iter().any(|named| named == name)
    }

    /// The pattern for an agent with this working directory.
    pub(super) fn within<'p>(&'p self, workdir: &Workdir) -> PathMatcher<'p> {
        let anywhere = || vec![[&["**".to_owned()], self.names.as_slice()].concat()];
        let from = |folder: &Path, followed: usize| {
            let (fixed, rest) = self.names.split_at(followed);
            let place = Place::new(folder, &fixed.join("/"));
            [place.written, place.real].map(|names| [&names, rest].concat()).to_vec()
        };
        // An agent can replace a folder by a link, so a link in the pattern itself allows nothing.
        let strict = |folder| from(folder, 0);
        let fixed = self.names.iter().position(|name| name.contains('*')).unwrap_or(self.names.len());
        let (strict, loose) = match self.start {
            PathStart::Root => (strict(Path::new("/")), from(Path::new("/"), fixed)),
            PathStart::Project => (strict(workdir.project()), from(workdir.project(), fixed)),
            // Ask and deny rules apply to every home.
            PathStart::Home => (workdir.home().map(strict).unwrap_or_default(), anywhere()),
            PathStart::Anywhere => (strict(workdir.project()), anywhere()),
        };
        PathMatcher { pattern: self, strict, loose }
    }
}

/// A path pattern with the names from the root on, as written and with links followed.
pub(super) struct PathMatcher<'p> {
    pattern: &'p PathPattern,
    strict: Vec<Vec<String>>,
    loose: Vec<Vec<String>>,
}

impl PathMatcher<'_> {
    /// True if the path matches as written and with every link followed. For allow rules.
    pub(super) fn covers(&self, place: &Place) -> bool {
        let is_match = |names: &[String]| self.strict.iter().any(|form| compare(form, names, glob).is_match);
        place.is_certain && is_match(&place.written) && is_match(&place.real)
    }

    /// Compares loosely, so that it rather matches too much: in any letter case, as written or with links followed, and
    /// below a folder that the pattern names. For ask and deny rules.
    pub(super) fn may_cover(&self, place: &Place) -> Match {
        let names_folder = self.pattern.names.last().is_some_and(|name| !name.contains('*'));
        let is_found =
            self.compare_loosely(place, |found| found.is_match || (found.is_below && names_folder));
        if is_found && !place.is_glob() { Match::Yes } else { Match::maybe(is_found || !place.is_certain) }
    }

    /// True if a path below this folder may match.
    pub(super) fn may_cover_below(&self, folder: &Place) -> bool {
        !folder.is_certain || self.compare_loosely(folder, |found| found.may_match_below)
    }

    fn compare_loosely(&self, place: &Place, is_found: impl Fn(Compared) -> bool) -> bool {
        let mut pairs = self.loose.iter().flat_map(|form| [(form, &place.written), (form, &place.real)]);
        pairs.any(|(form, names)| is_found(compare(form, names, may_be_same)))
    }
}

/// How far a path matches a pattern.
#[derive(Clone, Copy)]
struct Compared {
    is_match: bool,
    /// A folder above it matches.
    is_below: bool,
    may_match_below: bool,
}

/// Compares name by name; `**` matches any number of names. At worst quadratic.
fn compare(pattern: &[String], path: &[String], is_same: fn(&str, &str) -> bool) -> Compared {
    // reached[i]: the first i names of the pattern match the path so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_double_stars(pattern, &mut reached);
    let mut is_below = false;
    for name in path {
        is_below |= reached[pattern.len()];
        let mut next = vec![false; pattern.len() + 1];
        for (at, part) in pattern.iter().enumerate().filter(|(at, _)| reached[*at]) {
            if part == "**" {
                next[at] = true;
            } else if is_same(part, name) {
                next[at + 1] = true;
            }
        }
        reached = next;
        skip_double_stars(pattern, &mut reached);
    }
    Compared {
        is_match: reached[pattern.len()],
        is_below,
        may_match_below: is_below || reached.contains(&true),
    }
}

fn skip_double_stars(pattern: &[String], reached: &mut [bool]) {
    for (at, part) in pattern.iter().enumerate() {
        if reached[at] && part == "**" {
            reached[at + 1] = true;
        }
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

fn same_name(pattern: &str, text: &str) -> bool {
    glob(&pattern.to_lowercase(), &text.to_lowercase())
}
