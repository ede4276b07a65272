//! Rules on the files that tools read and change.

use serde_json::Value;

use super::super::effect::Effect;
use super::super::path::{MAX_PATH_BYTES, Place};
use super::super::pattern::{Match, PathMatcher};
use super::super::rule::{Argument, Rule, RuleAction};
use super::Workdir;

/// Files and folders that make other programs execute something later: hooks and settings of git, editors and agents,
/// start-up files of shells. A rule allows editing them only if it names them.
const PROTECTED: &[&str] = &[
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".husky",
    ".envrc",
    ".ssh",
    ".claude",
    ".mcp.json",
    ".vscode",
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
];

/// More texts than this in an input are not searched for paths.
const MAX_STRINGS: usize = 1_000;

/// A use of a tool that reads or changes files.
pub(super) struct FileUse<'u> {
    target: FileTarget,
    workdir: &'u Workdir,
}

/// What a file tool works on.
enum FileTarget {
    /// The file, in every directory it may be relative to.
    File(Vec<Place>),
    /// The folder and everything below it.
    Below(Vec<Place>),
    /// The input does not say.
    Unknown,
}

impl<'u> FileUse<'u> {
    pub(super) fn new(tool: &str, input: &Value, workdir: &'u Workdir) -> Self {
        Self { target: FileTarget::new(tool, input, workdir), workdir }
    }

    /// Whether a rule for this tool applies to its path.
    pub(super) fn match_rule(&self, rule: &Rule) -> Match {
        let Argument::Path(pattern) = &rule.argument else { return Match::No };
        let (places, is_search) = match &self.target {
            FileTarget::Unknown => return Match::Maybe,
            FileTarget::File(places) => (places, false),
            FileTarget::Below(places) => (places, true),
        };
        let paths = pattern.within(self.workdir);
        match rule.action {
            RuleAction::Allow => {
                let names_it = |place: &Place| protected_name(place).is_none_or(|name| pattern.names(name));
                let is_allowed =
                    |place: &Place| paths.covers(place) && (!rule.is_on_edits() || names_it(place));
                Match::of(places.iter().all(is_allowed))
            }
            RuleAction::Ask | RuleAction::Deny => {
                let below = |place| Match::maybe(is_search && paths.may_cover_below(place));
                places
                    .iter()
                    .map(|place| paths.may_cover(place).max(below(place)))
                    .max()
                    .unwrap_or(Match::Maybe)
            }
        }
    }
}

impl FileTarget {
    fn new(tool: &str, input: &Value, workdir: &Workdir) -> Self {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let is_search = matches!(tool, "Grep" | "Glob" | "LS");
        let named = ["file_path", "notebook_path", "filePath", "path"].into_iter().find_map(text);
        let Some(path) = named.or(is_search.then_some(".")) else { return Self::Unknown };
        // A glob pattern may lead out of the folder.
        let leads_away = |pattern: &str| pattern.starts_with(['/', '~']) || pattern.contains("..");
        // The program trims paths.
        let is_odd = path.contains(char::is_control) || path.trim() != path || path.is_empty();
        if is_odd || (tool == "Glob" && text("pattern").is_none_or(leads_away)) {
            return Self::Unknown;
        }
        let Some(places) = places(path, workdir) else { return Self::Unknown };
        if tool == "Grep" { Self::Below(places) } else { Self::File(places) }
    }
}

/// Where a tool's path may lead. `None` if that is unknown.
fn places(path: &str, workdir: &Workdir) -> Option<Vec<Place>> {
    if path == "~" || path.starts_with("~/") {
        return Some(vec![Place::new(workdir.home()?, path[1..].trim_start_matches('/'))]);
    }
    let (folders, is_complete) = workdir.current();
    if path.starts_with('~') || !(is_complete || path.starts_with('/')) {
        return None;
    }
    Some(folders.iter().map(|folder| Place::new(folder, path)).collect())
}

/// The name in a path that makes the file protected.
pub(super) fn protected_name(place: &Place) -> Option<&'static str> {
    let is_in = |name: &str| [&place.written, &place.real].iter().any(|names| has_protected(names, name));
    PROTECTED.iter().copied().find(|name| is_in(name))
}

fn has_protected(names: &[String], name: &str) -> bool {
    names.iter().enumerate().any(|(at, part)| {
        // Claude Code keeps work trees there, which are ordinary folders.
        let is_work_tree = name == ".claude" && names.get(at + 1).is_some_and(|next| next == "worktrees");
        part.eq_ignore_ascii_case(name) && !is_work_tree
    })
}

/// True for an edit of a protected file, which a rule without a path does not allow.
pub(super) fn is_protected(effect: Effect, tool: &str, input: &Value, workdir: &Workdir) -> bool {
    if effect != Effect::Edit {
        return false;
    }
    match FileTarget::new(tool, input, workdir) {
        FileTarget::File(places) | FileTarget::Below(places) => {
            places.iter().any(|place| protected_name(place).is_some() || !place.is_certain)
        }
        FileTarget::Unknown => true,
    }
}

/// Whether an ask or deny rule may apply to a path or URL in the input of a tool with an unknown effect.
pub(super) fn match_strings(rule: &Rule, input: &Value, workdir: &Workdir) -> Match {
    let mut strings = Vec::new();
    collect_strings(input, &mut strings);
    let is_too_much = strings.len() > MAX_STRINGS;
    Match::maybe(match &rule.argument {
        Argument::Path(pattern) => {
            let paths = pattern.within(workdir);
            is_too_much || strings.iter().any(|text| may_be_path(text) && may_lead_to(&paths, text, workdir))
        }
        Argument::Domain(pattern) => {
            let may_be_host = |text: &&str| text.contains("://") && pattern.matches(text) != Match::No;
            is_too_much || strings.iter().any(may_be_host)
        }
        Argument::Any | Argument::Command(_) => false,
    })
}

fn may_be_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_PATH_BYTES && !text.contains(char::is_control)
}

fn may_lead_to(paths: &PathMatcher<'_>, text: &str, workdir: &Workdir) -> bool {
    let text = text.strip_prefix("file://").unwrap_or(text);
    let known = places(text, workdir);
    let is_elsewhere = known.is_none() && text.contains('/');
    let places = known.unwrap_or_else(|| vec![Place::new(workdir.project(), text)]);
    let is_below = |place: &Place| place.is_folder && paths.may_cover_below(place);
    is_elsewhere || places.iter().any(|place| paths.may_cover(place) != Match::No || is_below(place))
}

fn collect_strings<'i>(input: &'i Value, found: &mut Vec<&'i str>) {
    if found.len() > MAX_STRINGS {
        return;
    }
    match input {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect_strings(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
