//! `cargo xtask test`: every check, from formatting to the official SDKs and Claude Code, in one run.
//!
//! A step that fails does not stop the ones after it, so one run shows everything that is wrong.

mod counting;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{self, cargo};
use crate::checkers::{Checker, DEPENDENCIES, SPELLING};
use crate::command::TestExtent;
use crate::report::{Outcome, Report};
use crate::{agent, claude, prompted, sdk, tidy};

pub(crate) fn run(root: &Path, extent: TestExtent) -> ExitCode {
    let mut report = Report::default();
    report.step("formatting", || plain(root, &["fmt", "--all", "--check"]));
    report.step("tidy", || Outcome::plain(tidy_step(root)));
    report.step("clippy", || {
        plain(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
    });
    match extent {
        TestExtent::Quick => {
            report.step("unit tests", || tests(root, &["--workspace", "--lib", "--bins"]));
        }
        TestExtent::Full => {
            report.step("spelling", || Outcome::plain(check(root, SPELLING, &[])));
            report.step("dependencies", || Outcome::plain(check(root, DEPENDENCIES, &DEPENDENCY_CHECKS)));
            report.step("Claude Code", || Outcome::plain(claude::install_if_missing(root)));
            report.step("tests", || tests(root, &["--workspace", "--all-targets"]));
            report.step("doc tests", || {
                counted(&mut cargo(root, &["test", "--quiet", "--workspace", "--doc"]))
            });
            sdk::run(root, &mut report);
            prompted::run(root, &mut report);
            agent::run(root, &mut report);
        }
    }
    report.finish()
}

/// Checks the tree and prints each finding.
pub(crate) fn tidy_step(root: &Path) -> Result<(), String> {
    let findings = tidy::check_tree(root).map_err(|cause| format!("reading the repository: {cause}"))?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("{} places break the rules", findings.len())) }
}

fn plain(root: &Path, arguments: &[&str]) -> Outcome {
    Outcome::plain(cargo::run(&mut cargo(root, arguments)))
}

/// cargo-nextest runs tests in parallel and ends those that hang; without it plain `cargo test` does.
fn tests(root: &Path, selection: &[&str]) -> Outcome {
    let arguments = if has_nextest(root) {
        [&["nextest", "run", "--no-fail-fast", "--status-level", "slow", "--no-tests", "pass"], selection]
            .concat()
    } else {
        println!("cargo-nextest is not installed: using `cargo test`");
        [&["test", "--no-fail-fast"], selection].concat()
    };
    counted(claude::tell(root, &mut cargo(root, &arguments)))
}

fn has_nextest(root: &Path) -> bool {
    is_there(&mut cargo(root, &["nextest", "--version"]))
}

/// All but known weaknesses, whose list is on the internet: `cargo deny check advisories` asks for it.
const DEPENDENCY_CHECKS: [&str; 6] = ["--log-level", "error", "check", "bans", "licenses", "sources"];

fn check(root: &Path, checker: Checker, arguments: &[&str]) -> Result<(), String> {
    checker.install_if_missing(root)?;
    cargo::run(checker.command(root).args(arguments))
}

fn is_there(question: &mut Command) -> bool {
    question.stdout(Stdio::null()).stderr(Stdio::null());
    question.status().is_ok_and(|status| status.success())
}

fn counted(command: &mut Command) -> Outcome {
    // A snapshot that differs is a failure, never silently a new truth.
    command.env("INSTA_UPDATE", "no");
    let (counts, result) = counting::run(command);
    Outcome::counted(counts, result)
}

pub(crate) use counting::run as run_counting;
