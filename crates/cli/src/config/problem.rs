//! Problems of a config file and their positions. Each is one line: `file:line:column: message`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// A position in the config file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) position: Position,
}

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The gateway does not start.
    Error,
    /// The gateway starts.
    Warning,
}

/// One problem of the config.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    file: PathBuf,
    /// `None` if the problem has no line, such as a file that cannot be read.
    position: Option<Position>,
    message: String,
}

impl Problem {
    /// A problem of a whole file, or of something outside of it, such as an argument.
    pub(crate) fn without_position(
        source: impl Into<PathBuf>,
        severity: Severity,
        message: impl Into<String>,
    ) -> Self {
        Self { severity, file: source.into(), position: None, message: message.into() }
    }

    /// The problem without its severity, for the log, which has its own level.
    pub(crate) fn without_severity(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            self.write_source(f)?;
            write!(f, ": {}", self.message)
        })
    }

    fn write_source(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.position {
            Some(Position { line, column }) => write!(f, ":{line}:{column}"),
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

/// The file that is being read, the environment, and the problems found so far.
pub(crate) struct ReadContext<'t> {
    file: &'t Path,
    text: &'t str,
    environment: &'t Environment,
    problems: Vec<Problem>,
}

impl<'t> ReadContext<'t> {
    pub(crate) fn new(file: &'t Path, text: &'t str, environment: &'t Environment) -> Self {
        Self { file, text, environment, problems: Vec::new() }
    }

    /// Where `env:NAME` is read from.
    pub(crate) fn environment(&self) -> &'t Environment {
        self.environment
    }

    /// Resolves a path of the config relative to the folder of the config file.
    pub(crate) fn relative_to_file(&self, path: impl AsRef<Path>) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The file.
    pub(crate) fn file(&self) -> &'t Path {
        self.file
    }

    /// The position where a span begins.
    pub(crate) fn position(&self, span: &Range<usize>) -> Position {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    pub(crate) fn error(&mut self, position: Position, message: impl Into<String>) {
        self.note(Severity::Error, Some(position), message.into());
    }

    pub(crate) fn error_in_file(&mut self, message: impl Into<String>) {
        self.note(Severity::Error, None, message.into());
    }

    pub(crate) fn warning(&mut self, position: Position, message: impl Into<String>) {
        self.note(Severity::Warning, Some(position), message.into());
    }

    /// Reports a section that this version does not support.
    pub(crate) fn not_supported(&mut self, position: Position, what: &str) {
        self.error(position, format!("{what} is not supported by this version: remove it"));
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All problems, in the order of the file.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.position);
        self.problems
    }

    fn note(&mut self, severity: Severity, position: Option<Position>, message: String) {
        self.problems.push(Problem { severity, file: self.file.to_owned(), position, message });
    }
}
