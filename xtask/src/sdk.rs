//! The official SDKs against the gateway: what real clients do, through all of it, with the network in between.
//!
//! One scripted model and one gateway serve four suites: Python and JavaScript, each with the current SDKs and
//! with an older major. The suites and the versions live in `tests/sdk/`.

use std::path::Path;

use crate::packages::{Kind, Packages};
use crate::report::{Outcome, Report};
use crate::stage::{Stage, run_suite};

/// The current Python SDKs; suites on other subjects use them too.
pub(crate) const PYTHON_CURRENT: Packages = Packages {
    name: "python-current",
    list: "tests/sdk/requirements-current.txt",
    kind: Kind::PythonEnvironment,
};

/// The current JavaScript SDKs.
pub(crate) const NODE_CURRENT: Packages = Packages {
    name: "node-current",
    list: "tests/sdk/node-current/package-lock.json",
    kind: Kind::JavaScript,
};

const SUITES: &[(&str, Packages)] = &[
    ("Python, current", PYTHON_CURRENT),
    (
        "Python, older",
        Packages {
            name: "python-older",
            list: "tests/sdk/requirements-older.txt",
            kind: Kind::PythonEnvironment,
        },
    ),
    ("JavaScript, current", NODE_CURRENT),
    (
        "JavaScript, older",
        Packages {
            name: "node-older",
            list: "tests/sdk/node-older/package-lock.json",
            kind: Kind::JavaScript,
        },
    ),
];

pub(crate) fn run(root: &Path, report: &mut Report) {
    report.step("SDK packages", || {
        Outcome::plain(SUITES.iter().try_for_each(|(_, packages)| packages.install_if_missing(root)))
    });
    let mut stage = Err("the gateway was not started".to_owned());
    report.step("gateway for the SDKs", || {
        stage = Stage::start(root, "stage");
        Outcome::plain(stage.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    for (name, packages) in SUITES {
        report.step(&format!("SDKs: {name}"), || run_suite(&stage, &mut packages.suite(root, "sdk")));
    }
}
