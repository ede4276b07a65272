//! Rules on words that must not stand in any file. They are written in two parts here, so that this file keeps
//! its own rules.

use super::{Finding, Subject, has_word};

/// Hosts that packages come from. Where packages are fetched is the business of the machine, not of the repository.
const REGISTRIES: &[&str] = &[
    concat!("registry.", "npmjs"),
    concat!("registry.", "yarnpkg"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
];

/// Settings that choose a registry, whatever its name.
const REGISTRY_SETTINGS: &[&str] = &[
    concat!("--index", "-url"),
    concat!("--extra-index", "-url"),
    concat!("\"resolved\": ", "\"http"),
    concat!("replace-", "with ="),
];

const UNFINISHED: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimple", "mented!(")];

pub(super) fn no_registry_is_named(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let file = subject.file;
    for (number, line) in file.numbered_lines() {
        if let Some(word) = REGISTRIES.iter().chain(REGISTRY_SETTINGS).find(|word| line.contains(**word)) {
            findings.push(file.finding(
                number,
                format!("`{word}` names a package registry: leave it to the machine's settings"),
            ));
        }
    }
}

pub(super) fn nothing_is_left_unfinished(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let file = subject.file;
    if file.is_recorded() {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if let Some(word) =
            UNFINISHED.iter().find(|word| has_word(line, word.trim_end_matches('(')) && line.contains(**word))
        {
            findings
                .push(file.finding(number, format!("`{word}`: finish it, or describe the limit in words")));
        }
    }
}
