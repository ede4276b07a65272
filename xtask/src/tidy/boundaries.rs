//! Rules on dependencies: dialects are independent of each other, and codecs do no I/O.

use super::{Finding, RuleInput, SourceFile, has_word};

const DIALECT_ROOT: &str = "crates/dialect/src/";
const PURE_CRATES: &[&str] = &["crates/model/", "crates/dialect/", "crates/prompted/", "crates/h1/"];

/// Crates that do I/O; a codec may use them in tests only.
const IO_CRATES: &[&str] =
    &["tokio", "tokio-util", "hyper", "hyper-util", "axum", "reqwest", "sqlx", "tower"];

/// Paths that do I/O or read a clock.
const IO_PATHS: &[&str] = &[
    "tokio",
    "hyper",
    "axum",
    "reqwest",
    "std::net",
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant",
];

/// The same inside `use std::{…}`.
const IO_MODULES: &[&str] = &["net", "fs", "env", "process", "thread"];

/// The dialects: folders with their own wire types.
pub(super) fn dialect_names(files: &[SourceFile]) -> Vec<String> {
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix(DIALECT_ROOT))
        .filter_map(|path| path.split_once('/'))
        .filter(|(_, inside)| *inside == "wire.rs" || inside.starts_with("wire/"))
        .map(|(name, _)| name.to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

pub(super) fn dialects_are_independent(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    let inside = file.path.strip_prefix(DIALECT_ROOT).and_then(|path| path.split_once('/'));
    let Some((own, _)) = inside.filter(|_| file.is_rust()) else { return };
    if !input.dialects.iter().any(|name| name == own) {
        return;
    }
    for (number, line) in file.numbered_lines() {
        let foreign =
            input.dialects.iter().find(|name| *name != own && has_word(without_comment(line), name));
        if let Some(other) = foreign {
            findings.push(file.finding(
                number,
                format!("the dialect `{own}` must not use `{other}`: convert through the model"),
            ));
        }
    }
}

pub(super) fn codecs_do_no_io(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    let is_pure = PURE_CRATES
        .iter()
        .any(|root| file.path.strip_prefix(root).is_some_and(|path| path.starts_with("src/")));
    if !is_pure || !file.is_rust() || file.is_test() {
        return;
    }
    for (number, line) in code_before_tests(file) {
        let code = without_comment(line);
        let named = IO_PATHS.iter().find(|path| has_word(code, path));
        let grouped = IO_MODULES.iter().find(|module| code.contains("use std::{") && has_word(code, module));
        if let Some(path) = named.or(grouped) {
            findings.push(
                file.finding(number, format!("`{path}` in a crate that does no I/O and reads no clock")),
            );
        }
    }
}

pub(super) fn codecs_have_no_io_dependencies(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    if !PURE_CRATES.iter().any(|root| file.path == format!("{root}Cargo.toml")) {
        return;
    }
    let mut section = "";
    for (number, line) in file.numbered_lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if section == "[dependencies]" && IO_CRATES.contains(&name) {
            findings
                .push(file.finding(number, format!("`{name}` does I/O: this crate must not depend on it")));
        }
    }
}

/// The lines before an inline test module, which is always last in a file.
fn code_before_tests(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<(usize, &str)> = file.numbered_lines().collect();
    let end = lines
        .windows(2)
        .position(|pair| pair[0].1.trim() == "#[cfg(test)]" && pair[1].1.trim_end().ends_with('{'))
        .unwrap_or(lines.len());
    lines.into_iter().take(end)
}

fn without_comment(line: &str) -> &str {
    line.find("//").map_or(line, |start| &line[..start])
}
