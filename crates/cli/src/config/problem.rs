//! What is wrong in a config file, and where: every problem is one line, `file:line:column: what to do`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// A spot in the config file, counted from 1 as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// How grave a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The gateway cannot start with it.
    Error,
    /// It can start, and the operator should know.
    Warning,
}

/// One thing wrong with the config.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    file: PathBuf,
    /// None where the problem is in no single line, such as a file that cannot be read.
    place: Option<Place>,
    message: String,
}

impl Problem {
    /// A problem with a file as a whole, or with what stands in no file, such as an argument.
    pub(crate) fn outside_the_file(
        source: impl Into<PathBuf>,
        severity: Severity,
        message: impl Into<String>,
    ) -> Self {
        Self { severity, file: source.into(), place: None, message: message.into() }
    }

    /// The problem without its severity, for a log that shows it already.
    pub(crate) fn for_the_log(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            self.write_source(f)?;
            write!(f, ": {}", self.message)
        })
    }

    fn write_source(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.place {
            Some(Place { line, column }) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_source(f)?;
        match self.severity {
            Severity::Error => write!(f, ": {}", self.message),
            Severity::Warning => write!(f, ": warning: {}", self.message),
        }
    }
}

/// A config file while it is read: its text, to know lines by, and the problems so far.
pub(crate) struct Reading<'t> {
    file: &'t Path,
    text: &'t str,
    environment: &'t Environment,
    problems: Vec<Problem>,
}

impl<'t> Reading<'t> {
    pub(crate) fn new(file: &'t Path, text: &'t str, environment: &'t Environment) -> Self {
        Self { file, text, environment, problems: Vec::new() }
    }

    /// Where `env:NAME` is looked up.
    pub(crate) fn environment(&self) -> &'t Environment {
        self.environment
    }

    /// A relative path of the config starts at the config file's own folder.
    pub(crate) fn beside_the_file(&self, path: impl AsRef<Path>) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The file that is read.
    pub(crate) fn file(&self) -> &'t Path {
        self.file
    }

    /// Where a span of the text begins.
    pub(crate) fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>) {
        self.note(Severity::Error, Some(place), message.into());
    }

    pub(crate) fn error_anywhere(&mut self, message: impl Into<String>) {
        self.note(Severity::Error, None, message.into());
    }

    pub(crate) fn warning(&mut self, place: Place, message: impl Into<String>) {
        self.note(Severity::Warning, Some(place), message.into());
    }

    /// A part of the contract whose back end is not built yet: understood, and refused in so many words.
    pub(crate) fn not_yet(&mut self, place: Place, what: &str) {
        self.error(place, format!("{what} is not in this version yet: take it out to start"));
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All problems, in the order of the file.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.place);
        self.problems
    }

    fn note(&mut self, severity: Severity, place: Option<Place>, message: String) {
        self.problems.push(Problem { severity, file: self.file.to_owned(), place, message });
    }
}
