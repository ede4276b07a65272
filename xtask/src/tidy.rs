//! `cargo xtask tidy`: checks rules of the code base that the compiler does not check.
//!
//! Each rule is a function from a file to findings, listed in [`RULES`]. Rules match text, not syntax: this is cheap, and
//! a false positive is easily reworded.

mod boundaries;
mod cases;
mod layout;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Error;
use std::path::Path;

/// Checks every file below `root`; the findings are sorted by path.
pub(crate) fn check_tree(root: &Path) -> Result<Vec<Finding>, Error> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(check(&files))
}

/// A text file of the repository; the path is relative to the root, separated by `/`.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A violation of a rule and its position.
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

/// The input of a rule: one file, all files, the names of all dialects and the numbers of all cases.
struct RuleInput<'a> {
    file: &'a SourceFile,
    files: &'a [SourceFile],
    dialects: &'a [String],
    cases: &'a [String],
}

type Rule = fn(&RuleInput<'_>, &mut Vec<Finding>);

const RULES: &[Rule] = &[
    layout::files_are_short,
    layout::files_have_module_docs,
    layout::file_names_are_meaningful,
    boundaries::dialects_are_independent,
    boundaries::codecs_do_no_io,
    boundaries::codecs_have_no_io_dependencies,
    words::no_package_registry,
    words::no_unfinished_work,
    words::plain_english,
    cases::case_numbers_are_explained,
    cases::tests_of_cases_exist,
];

fn check(files: &[SourceFile]) -> Vec<Finding> {
    let dialects = boundaries::dialect_names(files);
    let cases = cases::listed(files);
    let mut findings = Vec::new();
    for file in files {
        let input = RuleInput { file, files, dialects: &dialects, cases: &cases };
        for rule in RULES {
            rule(&input, &mut findings);
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

    /// Test code is in `tests.rs`, in `…_tests.rs` or below a folder `tests`.
    fn is_test(&self) -> bool {
        self.name() == "tests.rs"
            || self.name().ends_with("_tests.rs")
            || self.path.split('/').any(|part| part == "tests")
    }

    /// Recorded data, which is not changed.
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

/// Whether `text` contains `word` as a whole identifier or path.
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
        if kind.is_dir() && !is_generated(&path) {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            // Skips files that are not text.
            let Ok(text) = String::from_utf8(std::fs::read(&path)?) else { continue };
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.push(SourceFile { path: relative.to_string_lossy().replace('\\', "/"), text });
        }
    }
    Ok(())
}

/// Folders written by tools: version control, build output, installed packages.
fn is_generated(folder: &Path) -> bool {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    matches!(name.as_str(), ".git" | "target" | "node_modules" | ".toolgate-test")
        || folder.join("CACHEDIR.TAG").exists()
}
