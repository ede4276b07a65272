//! `cargo xtask tidy`: the rules of the code base that no compiler checks.
//!
//! Each rule is a function from a file to findings, so that a new rule is one function and one line in
//! [`RULES`]. The rules look at text, not at syntax: they are cheap, and an odd case is easy to reword.

mod borders;
mod cases;
mod layout;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Error;
use std::path::Path;

/// Reads every file below `root` and checks it; the findings come sorted by path.
pub(crate) fn check_tree(root: &Path) -> Result<Vec<Finding>, Error> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(check(&files))
}

/// One text file of the repository; the path is relative to its root, with `/` between the parts.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A broken rule and where it is broken.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message } = self;
        write!(f, "{path}:{line}: {message}")
    }
}

/// What a rule sees: one file, all files, the names of all dialects and the numbers of all cases.
struct Subject<'a> {
    file: &'a SourceFile,
    files: &'a [SourceFile],
    dialects: &'a [String],
    cases: &'a [String],
}

type Rule = fn(&Subject<'_>, &mut Vec<Finding>);

const RULES: &[Rule] = &[
    layout::files_are_short,
    layout::modules_say_what_they_are_for,
    layout::names_say_what_is_inside,
    borders::dialects_do_not_know_each_other,
    borders::codecs_do_no_io,
    borders::codecs_depend_on_no_io,
    words::no_registry_is_named,
    words::nothing_is_left_unfinished,
    cases::case_numbers_are_explained,
    cases::tests_of_cases_exist,
];

fn check(files: &[SourceFile]) -> Vec<Finding> {
    let dialects = borders::dialect_names(files);
    let cases = cases::listed(files);
    let mut findings = Vec::new();
    for file in files {
        let subject = Subject { file, files, dialects: &dialects, cases: &cases };
        for rule in RULES {
            rule(&subject, &mut findings);
        }
    }
    findings
}

impl SourceFile {
    fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Test code lives in `tests.rs`, in `…_tests.rs` or below a folder `tests`.
    fn is_test(&self) -> bool {
        self.name() == "tests.rs"
            || self.name().ends_with("_tests.rs")
            || self.path.split('/').any(|part| part == "tests")
    }

    /// Data that came from elsewhere and says what it says.
    fn is_recorded(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "fixtures" | "snapshots" | "corpus"))
    }

    fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// Does `text` hold `word` as a whole identifier (or path)?
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_foreign(&path) {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            // What is not text (an image, a database) is no subject of these rules.
            let Ok(text) = String::from_utf8(std::fs::read(&path)?) else { continue };
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.push(SourceFile { path: relative.to_string_lossy().replace('\\', "/"), text });
        }
    }
    Ok(())
}

/// Folders that hold what tools made: version control, build output, installed packages.
fn is_foreign(folder: &Path) -> bool {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    matches!(name.as_str(), ".git" | "target" | "node_modules" | ".toolgate-test")
        || folder.join("CACHEDIR.TAG").exists()
}
