//! End-to-end tests of Claude Code behind the gateway: with the official SDKs as clients, and with killed processes.
//!
//! The suites are in `tests/agent/`. `cargo xtask test` kills a few times, `cargo xtask kills` many times: fifty times per
//! version of Claude Code in conversations, and a hundred times while questions wait for people.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claude;
use crate::packages::Packages;
use crate::report::{Report, StepResult};
use crate::sdk::{NODE_CURRENT, PYTHON_CURRENT};
use crate::servers::{TestServers, run_suite};

/// A suite that kills, and how often per version of Claude Code: in a test run, less than a minute on a machine with two
/// cores, and in `cargo xtask kills`.
const KILLERS: [(&str, &str, u32, u32); 2] =
    [("agent, killed", "kills.py", 6, 50), ("questions, killed", "questions.py", 6, 100)];

const SUITES: [(&str, Packages); 2] = [("Python", PYTHON_CURRENT), ("JavaScript", NODE_CURRENT)];

/// The steps of a test run.
pub(crate) fn run(root: &Path, report: &mut Report) {
    let servers = prepare(root, report);
    for (name, packages) in SUITES {
        report.step(&format!("agent and SDKs: {name}"), || {
            run_suite(&servers, &mut packages.suite(root, "agent"))
        });
    }
    for (name, script, count, _) in KILLERS {
        report.step(name, || run_suite(&servers, &mut killer(root, script, count)));
    }
}

/// Runs all kills, which takes a few minutes.
pub(crate) fn run_kills(root: &Path) -> ExitCode {
    let mut report = Report::default();
    let servers = prepare(root, &mut report);
    for (name, script, _, count) in KILLERS {
        report.step(name, || run_suite(&servers, &mut killer(root, script, count)));
    }
    report.finish()
}

fn prepare(root: &Path, report: &mut Report) -> Result<TestServers, String> {
    report.step("packages for agents", || {
        let packages = SUITES.iter().try_for_each(|(_, packages)| packages.install_if_missing(root));
        StepResult::plain(packages.and_then(|()| claude::install_if_missing(root)))
    });
    let mut servers = Err("the gateway was not started".to_owned());
    report.step("gateway with agents", || {
        servers = TestServers::with_agents(root, "servers-agent", &claude::programs(root));
        StepResult::plain(servers.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    servers
}

fn killer(root: &Path, script: &str, count: u32) -> Command {
    let mut command = Command::new(PYTHON_CURRENT.python(root));
    command.arg(root.join("tests/agent").join(script)).env("KILLS", count.to_string());
    // Repeats a failed run.
    if let Some(seed) = std::env::var_os("SEED") {
        command.env("SEED", seed);
    }
    claude::set_program_paths(root, &mut command);
    command
}
