//! Rules on words that no file may contain. They are split in two here, so that this file passes its own rules.

use super::{Finding, RuleInput, has_word};

/// Package registries. The machine's settings choose them, not the repository.
const REGISTRIES: &[&str] = &[
    concat!("registry.", "npmjs"),
    concat!("registry.", "yarnpkg"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
];

/// Settings that choose a registry.
const REGISTRY_SETTINGS: &[&str] = &[
    concat!("--index", "-url"),
    concat!("--extra-index", "-url"),
    concat!("\"resolved\": ", "\"http"),
    concat!("replace-", "with ="),
];

const UNFINISHED: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimple", "mented!(")];

/// Phrases that make a reader guess. Each has a plain equivalent: "the caller" instead of the first one.
const RIDDLES: &[&str] = &[
    concat!("who", "ever"),
    concat!("is ", "told"),
    concat!("are ", "told"),
    concat!("was ", "told"),
    concat!("has its ", "say"),
    concat!("comes ", "along"),
    concat!("of it ", "but"),
    concat!("goes on ", "as it is"),
    concat!("in ", "vain"),
    concat!("for ", "nobody"),
];

/// Where prose is checked. Recorded data and third-party files keep their words.
const PROSE: &[&str] = &["rs", "md", "js", "mjs", "py"];

pub(super) fn no_package_registry(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    for (number, line) in file.numbered_lines() {
        if let Some(word) = REGISTRIES.iter().chain(REGISTRY_SETTINGS).find(|word| line.contains(**word)) {
            findings.push(file.finding(
                number,
                format!("`{word}` refers to a package registry: leave it to the machine's settings"),
            ));
        }
    }
}

pub(super) fn no_unfinished_work(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    if file.is_recorded() {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if let Some(word) =
            UNFINISHED.iter().find(|word| has_word(line, word.trim_end_matches('(')) && line.contains(**word))
        {
            findings.push(file.finding(number, format!("`{word}`: finish it, or document the limitation")));
        }
    }
}

pub(super) fn plain_english(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    let is_prose = file.path.rsplit_once('.').is_some_and(|(_, extension)| PROSE.contains(&extension));
    if !is_prose || file.is_recorded() {
        return;
    }
    for (number, line) in file.numbered_lines() {
        let line = line.to_lowercase();
        if let Some(phrase) = RIDDLES.iter().find(|phrase| has_word(&line, phrase)) {
            findings.push(file.finding(number, format!("`{phrase}`: say it in plain English")));
        }
    }
}
