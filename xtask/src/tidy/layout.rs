//! Rules on how files are cut and named.

use super::{Finding, SourceFile, Subject};

/// Past this a second idea is hiding in the file.
const CODE_LINES: usize = 400;

/// Tests are lists of cases, so they may be longer.
const TEST_LINES: usize = 600;

/// Names that say nothing: whatever has no better place ends up there.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc"];

pub(super) fn files_are_short(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let file = subject.file;
    let limit = if file.is_test() { TEST_LINES } else { CODE_LINES };
    let lines = file.text.lines().count();
    if file.is_rust() && lines > limit {
        findings.push(
            file.finding(limit + 1, format!("{lines} lines, at most {limit} are allowed: split it by idea")),
        );
    }
}

pub(super) fn modules_say_what_they_are_for(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let file = subject.file;
    let opens_well = file.text.lines().next().is_some_and(|line| line.starts_with("//! "));
    if file.is_rust() && !opens_well {
        findings.push(file.finding(1, "open the file with a `//!` line that says what it is for"));
    }
}

pub(super) fn names_say_what_is_inside(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let file: &SourceFile = subject.file;
    if !file.is_rust() {
        return;
    }
    let stem = file.path.trim_end_matches(".rs");
    if let Some(name) = stem.split('/').find(|part| EMPTY_NAMES.contains(part)) {
        findings.push(file.finding(1, format!("`{name}` says nothing: name it after what it holds")));
    }
}
