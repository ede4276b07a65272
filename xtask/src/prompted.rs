//! End-to-end tests of prompted tools: Claude Code and the official SDKs with a text-only model.
//!
//! The suites are in `tests/prompted/`. `cargo xtask test` sends a sample of the ground truths, `cargo xtask bfcl` all.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claude;
use crate::packages::{PackageKind, Packages};
use crate::report::{Report, StepResult};
use crate::sdk::PYTHON_CURRENT;
use crate::servers::{TestServers, run_suite};

const GROUND_TRUTHS: Packages =
    Packages { name: "bfcl", list: "tests/prompted/requirements.txt", kind: PackageKind::PythonFolder };
const MCP_SERVER: Packages = Packages {
    name: "mcp-server",
    list: "tests/prompted/mcp-server/package-lock.json",
    kind: PackageKind::JavaScript,
};
const MCP_SERVER_SCRIPT: &str = "node_modules/@notionhq/notion-mcp-server/bin/cli.mjs";

/// How many of the ground truths are sent.
#[derive(Debug, Clone, Copy)]
enum Share {
    All,
    /// Every n-th. A prime number avoids patterns in the data.
    Every(u32),
}

/// Well under a minute.
const TEST_SHARE: Share = Share::Every(101);

/// The steps of a test run.
pub(crate) fn run(root: &Path, report: &mut Report) {
    let servers = prepare(root, report);
    report.step("Claude Code, prompted tools", || {
        run_suite(&servers, claude::set_program_paths(root, &mut script(root, "claude_code.py")))
    });
    report.step("ground truths, prompted tools", || run_suite(&servers, &mut round_trip(root, TEST_SHARE)));
}

/// Runs all ground truths, which takes most of an hour.
pub(crate) fn run_all(root: &Path) -> ExitCode {
    let mut report = Report::default();
    let servers = prepare(root, &mut report);
    report.step("ground truths, prompted tools", || run_suite(&servers, &mut round_trip(root, Share::All)));
    report.finish()
}

fn prepare(root: &Path, report: &mut Report) -> Result<TestServers, String> {
    report.step("packages for prompted tools", || {
        let packages = [PYTHON_CURRENT, GROUND_TRUTHS, MCP_SERVER];
        let installed = packages.iter().try_for_each(|packages| packages.install_if_missing(root));
        StepResult::plain(installed)
    });
    let mut servers = Err("the gateway was not started".to_owned());
    report.step("gateway for prompted tools", || {
        servers = TestServers::start(root, "servers-prompted");
        StepResult::plain(servers.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    servers
}

fn round_trip(root: &Path, share: Share) -> Command {
    let every = match share {
        Share::All => 1,
        Share::Every(number) => number,
    };
    let mut command = script(root, "round_trip.py");
    command
        .env("EVERY", every.to_string())
        .env("PYTHONPATH", GROUND_TRUTHS.folder(root))
        .env("BFCL", GROUND_TRUTHS.folder(root))
        .env("MCP_SERVER", MCP_SERVER.folder(root).join(MCP_SERVER_SCRIPT));
    command
}

fn script(root: &Path, name: &str) -> Command {
    let mut command = Command::new(PYTHON_CURRENT.python(root));
    command.arg(root.join("tests/prompted").join(name));
    command
}
