//! Rules on case numbers such as `T14`: comments may use only those that `docs/cases.md` explains, and the tests named
//! there must exist.

use super::{Finding, RuleInput, SourceFile};

const LIST: &str = "docs/cases.md";
/// The letters that case numbers start with.
const LETTERS: &str = "TPABCDEXM";
/// Cases of agents have no letter: `agent 14`, `agent 5, 30`.
const AGENT: &str = "agent ";

/// The case numbers listed in `docs/cases.md`.
pub(super) fn listed(files: &[SourceFile]) -> Vec<String> {
    let list = files.iter().find(|file| file.path == LIST);
    list.into_iter()
        .flat_map(SourceFile::numbered_lines)
        .filter_map(row)
        .map(|row| row.case.to_owned())
        .collect()
}

pub(super) fn case_numbers_are_explained(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    if !file.is_rust() || !file.path.starts_with("crates/") {
        return;
    }
    for (number, line) in file.numbered_lines() {
        let cases = comment(line).map(cases).unwrap_or_default();
        for case in cases.into_iter().filter(|case| !input.cases.contains(case)) {
            findings.push(file.finding(number, format!("`{case}` is not in {LIST}: explain it there")));
        }
    }
}

pub(super) fn tests_of_cases_exist(input: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let file = input.file;
    if file.path != LIST {
        return;
    }
    for row in file.numbered_lines().filter_map(row) {
        let (path, test) = row.test.split_once("::").unwrap_or((row.test, ""));
        let exists = input
            .files
            .iter()
            .any(|file| file.path == path && (test.is_empty() || file.text.contains(&format!("fn {test}("))));
        if !exists {
            let Row { number, case, test } = row;
            findings.push(file.finding(number, format!("there is no test `{test}` for `{case}`")));
        }
    }
}

/// A row of the list: the case, what must hold, and a test in backticks.
struct Row<'l> {
    number: usize,
    case: &'l str,
    test: &'l str,
}

fn row((number, line): (usize, &str)) -> Option<Row<'_>> {
    let (case, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (_, test) = rest.rsplit_once(" | ")?;
    let test = test.strip_prefix('`')?.strip_suffix("` |")?;
    Some(Row { number, case, test })
}

/// The comment at the end of a line. The space before it rules out addresses such as `http://host`.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if line.starts_with("//") { Some(line) } else { line.split_once(" //").map(|(_, comment)| comment) }
}

/// The case numbers in a text: a letter and one or two digits, or the numbers after `agent `.
fn cases(text: &str) -> Vec<String> {
    let words = text.split([' ', ',', ';', ':', '(', ')', '.']);
    let mut cases: Vec<String> = words.filter(|word| is_case(word)).map(str::to_owned).collect();
    for after in text.split(AGENT).skip(1) {
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == ' ')).unwrap_or(after.len());
        let numbers = after[..end].split(", ").map(str::trim).filter(|number| is_case_number(number));
        cases.extend(numbers.map(|number| format!("{AGENT}{number}")));
    }
    cases
}

fn is_case(word: &str) -> bool {
    word.strip_prefix(|letter| LETTERS.contains(letter)).is_some_and(is_case_number)
}

fn is_case_number(text: &str) -> bool {
    matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit())
}
