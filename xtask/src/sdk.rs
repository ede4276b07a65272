//! End-to-end tests with the official SDKs as clients.
//!
//! One scripted model and one gateway serve four suites: Python and JavaScript, each with the current SDKs and with an
//! older major version. The suites and the versions are in `tests/sdk/`.

use std::path::Path;

use crate::packages::{PackageKind, Packages};
use crate::report::{Report, StepResult};
use crate::servers::{TestServers, run_suite};

/// The current Python SDKs, which other suites use as well.
pub(crate) const PYTHON_CURRENT: Packages = Packages {
    name: "python-current",
    list: "tests/sdk/requirements-current.txt",
    kind: PackageKind::PythonEnvironment,
};

/// The current JavaScript SDKs.
pub(crate) const NODE_CURRENT: Packages = Packages {
    name: "node-current",
    list: "tests/sdk/node-current/package-lock.json",
    kind: PackageKind::JavaScript,
};

const SUITES: &[(&str, Packages)] = &[
    ("Python, current", PYTHON_CURRENT),
    (
        "Python, older",
        Packages {
            name: "python-older",
            list: "tests/sdk/requirements-older.txt",
            kind: PackageKind::PythonEnvironment,
        },
    ),
    ("JavaScript, current", NODE_CURRENT),
    (
        "JavaScript, older",
        Packages {
            name: "node-older",
            list: "tests/sdk/node-older/package-lock.json",
            kind: PackageKind::JavaScript,
        },
    ),
];

pub(crate) fn run(root: &Path, report: &mut Report) {
    report.step("SDK packages", || {
        StepResult::plain(SUITES.iter().try_for_each(|(_, packages)| packages.install_if_missing(root)))
    });
    let mut servers = Err("the gateway was not started".to_owned());
    report.step("gateway for the SDKs", || {
        servers = TestServers::start(root, "stage");
        StepResult::plain(servers.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    for (name, packages) in SUITES {
        report.step(&format!("SDKs: {name}"), || run_suite(&servers, &mut packages.suite(root, "sdk")));
    }
}
