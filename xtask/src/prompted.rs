//! Tools as text, end to end: the real Claude Code program and the official SDKs on a model that only knows text.
//!
//! The suites live in `tests/prompted/`. `cargo xtask test` sends a share of the ground truths round, `cargo xtask bfcl`
//! all of them.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claude;
use crate::packages::{Kind, Packages};
use crate::report::{Outcome, Report};
use crate::sdk::PYTHON_CURRENT;
use crate::stage::{Stage, run_suite};

const GROUND_TRUTHS: Packages =
    Packages { name: "bfcl", list: "tests/prompted/requirements.txt", kind: Kind::PythonFolder };
const MCP_SERVER: Packages = Packages {
    name: "mcp-server",
    list: "tests/prompted/mcp-server/package-lock.json",
    kind: Kind::JavaScript,
};
const MCP_SERVER_SCRIPT: &str = "node_modules/@notionhq/notion-mcp-server/bin/cli.mjs";

/// How much of the ground truths is sent round.
#[derive(Debug, Clone, Copy)]
enum Share {
    All,
    /// Every so-manieth: a number that is prime to how the data is laid out.
    Every(u32),
}

/// What a test run can afford: well under a minute.
const TEST_SHARE: Share = Share::Every(101);

/// The steps of a test run.
pub(crate) fn run(root: &Path, report: &mut Report) {
    let stage = prepare(root, report);
    report.step("Claude Code on text", || {
        run_suite(&stage, claude::tell(root, &mut script(root, "claude_code.py")))
    });
    report.step("ground truths as text", || run_suite(&stage, &mut round_trip(root, TEST_SHARE)));
}

/// All ground truths: takes the better part of an hour.
pub(crate) fn run_all(root: &Path) -> ExitCode {
    let mut report = Report::default();
    let stage = prepare(root, &mut report);
    report.step("ground truths as text", || run_suite(&stage, &mut round_trip(root, Share::All)));
    report.finish()
}

fn prepare(root: &Path, report: &mut Report) -> Result<Stage, String> {
    report.step("packages for tools as text", || {
        let packages = [PYTHON_CURRENT, GROUND_TRUTHS, MCP_SERVER];
        let installed = packages.iter().try_for_each(|packages| packages.install_if_missing(root));
        Outcome::plain(installed)
    });
    let mut stage = Err("the gateway was not started".to_owned());
    report.step("gateway for tools as text", || {
        stage = Stage::start(root, "stage-prompted");
        Outcome::plain(stage.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    stage
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
