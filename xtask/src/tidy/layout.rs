//! Rules on the size and names of files.

use super::{Finding, RuleInput, SourceFile};

/// A longer file contains more than one concept.
const CODE_LINES: usize = 400;

/// Tests are lists of cases and may be longer.
const TEST_LINES: usize = 600;

/// Names that say nothing about the content.
const MEANINGLESS_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc"];

pub(super) fn files_are_short(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    let limit = if file.is_test() { TEST_LINES } else { CODE_LINES };
    let lines = file.text.lines().count();
    if file.is_rust() && lines > limit {
        findings.push(
            file.finding(
                limit + 1,
                format!("{lines} lines, the limit is {limit}: split the file by concept"),
            ),
        );
    }
}

pub(super) fn files_have_module_docs(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    let opens_well = file.text.lines().next().is_some_and(|line| line.starts_with("//! "));
    if file.is_rust() && !opens_well {
        findings.push(file.finding(1, "start the file with a `//!` line that describes it"));
    }
}

pub(super) fn file_names_are_meaningful(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file: &SourceFile = input.file;
    if !file.is_rust() {
        return;
    }
    let stem = file.path.trim_end_matches(".rs");
    if let Some(name) = stem.split('/').find(|part| MEANINGLESS_NAMES.contains(part)) {
        findings.push(file.finding(1, format!("`{name}` is meaningless: name the file after its content")));
    }
}
