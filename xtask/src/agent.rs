//! Claude Code behind the gateway, end to end: the official SDKs as its clients, and processes that are killed.
//!
//! The suites live in `tests/agent/`. `cargo xtask test` kills a few times, `cargo xtask kills` fifty times for each
//! generation of the program.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claude;
use crate::packages::Packages;
use crate::report::{Outcome, Report};
use crate::sdk::{NODE_CURRENT, PYTHON_CURRENT};
use crate::stage::{Stage, run_suite};

/// What a test run can afford: less than a minute on a machine of two cores.
const KILLS_IN_TESTS: u32 = 6;

/// What is promised.
const ALL_KILLS: u32 = 50;

const SUITES: [(&str, Packages); 2] = [("Python", PYTHON_CURRENT), ("JavaScript", NODE_CURRENT)];

/// The steps of a test run.
pub(crate) fn run(root: &Path, report: &mut Report) {
    let stage = prepare(root, report);
    for (name, packages) in SUITES {
        report.step(&format!("agent and SDKs: {name}"), || {
            run_suite(&stage, &mut packages.suite(root, "agent"))
        });
    }
    report.step("agent, killed", || run_suite(&stage, &mut kills(root, KILLS_IN_TESTS)));
}

/// All kills: takes a few minutes.
pub(crate) fn run_kills(root: &Path) -> ExitCode {
    let mut report = Report::default();
    let stage = prepare(root, &mut report);
    report.step("agent, killed", || run_suite(&stage, &mut kills(root, ALL_KILLS)));
    report.finish()
}

fn prepare(root: &Path, report: &mut Report) -> Result<Stage, String> {
    report.step("packages for agents", || {
        let packages = SUITES.iter().try_for_each(|(_, packages)| packages.install_if_missing(root));
        Outcome::plain(packages.and_then(|()| claude::install_if_missing(root)))
    });
    let mut stage = Err("the gateway was not started".to_owned());
    report.step("gateway with agents", || {
        stage = Stage::with_agents(root, "stage-agent", &claude::programs(root));
        Outcome::plain(stage.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    stage
}

fn kills(root: &Path, count: u32) -> Command {
    let mut command = Command::new(PYTHON_CURRENT.python(root));
    command.arg(root.join("tests/agent/kills.py")).env("KILLS", count.to_string());
    // The seed of a run that failed, to make the same choices again.
    if let Some(seed) = std::env::var_os("SEED") {
        command.env("SEED", seed);
    }
    claude::tell(root, &mut command);
    command
}
