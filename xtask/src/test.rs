//! `cargo xtask test`: all checks, from formatting to the official SDKs and Claude Code.
//!
//! A failed step does not stop the run, so that one run shows all failures.

mod counting;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{self, cargo};
use crate::checkers::{Checker, DEPENDENCIES, SPELLING};
use crate::command::TestExtent;
use crate::report::{Report, StepResult};
use crate::{agent, claude, llamacpp, prompted, schemas, sdk, tidy};

pub(crate) fn run(root: &Path, extent: TestExtent) -> ExitCode {
    let mut report = Report::default();
    report.step("formatting", || plain(root, &["fmt", "--all", "--check"]));
    report.step("tidy", || StepResult::plain(tidy_step(root)));
    report.step("clippy", || {
        plain(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
    });
    match extent {
        TestExtent::Quick => {
            report.step("unit tests", || tests(root, &["--workspace", "--lib", "--bins"]));
        }
        TestExtent::Full => {
            report.step("spelling", || StepResult::plain(check(root, SPELLING, &[])));
            report.step("dependencies", || StepResult::plain(check(root, DEPENDENCIES, &DEPENDENCY_CHECKS)));
            report.step("Claude Code", || StepResult::plain(claude::install_if_missing(root)));
            report.step("tests", || tests(root, &["--workspace", "--all-targets"]));
            report.step("doc tests", || {
                counted(&mut cargo(root, &["test", "--quiet", "--workspace", "--doc"]))
            });
            report.step("schemas", || StepResult::plain(schemas::check(root)));
            sdk::run(root, &mut report);
            llamacpp::run(root, &mut report);
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
    if findings.is_empty() { Ok(()) } else { Err(format!("{} findings", findings.len())) }
}

fn plain(root: &Path, arguments: &[&str]) -> StepResult {
    StepResult::plain(cargo::run(&mut cargo(root, arguments)))
}

/// Runs tests with cargo-nextest, which ends tests that hang, or with `cargo test` if it is not installed.
fn tests(root: &Path, selection: &[&str]) -> StepResult {
    let arguments = if has_nextest(root) {
        [&["nextest", "run", "--no-fail-fast", "--status-level", "slow", "--no-tests", "pass"], selection]
            .concat()
    } else {
        println!("cargo-nextest is not installed: using `cargo test`");
        [&["test", "--no-fail-fast"], selection].concat()
    };
    counted(claude::set_program_paths(root, &mut cargo(root, &arguments)))
}

fn has_nextest(root: &Path) -> bool {
    succeeds(&mut cargo(root, &["nextest", "--version"]))
}

/// All checks except advisories, whose database must be downloaded.
const DEPENDENCY_CHECKS: [&str; 6] = ["--log-level", "error", "check", "bans", "licenses", "sources"];

fn check(root: &Path, checker: Checker, arguments: &[&str]) -> Result<(), String> {
    checker.install_if_missing(root)?;
    cargo::run(checker.command(root).args(arguments))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn counted(command: &mut Command) -> StepResult {
    // A changed snapshot is a failure; it is never updated by a test run.
    command.env("INSTA_UPDATE", "no");
    let (counts, result) = counting::run(command);
    StepResult::counted(counts, result)
}

pub(crate) use counting::run as run_counting;
