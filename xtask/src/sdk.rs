//! The official SDKs against the gateway: what real clients do, through all of it, with the network in between.
//!
//! One scripted model and one gateway serve four suites: Python and JavaScript, each with the current SDKs and
//! with an older major. The suites and the versions live in `tests/sdk/`.

mod packages;
mod stage;

use std::path::Path;
use std::process::Command;

use crate::report::{Outcome, Report};
use crate::test::run_counting;
use packages::{Language, Package, Vintage};
use stage::Stage;

const SUITES: &[Package] = &[
    Package { language: Language::Python, vintage: Vintage::Current },
    Package { language: Language::Python, vintage: Vintage::Older },
    Package { language: Language::JavaScript, vintage: Vintage::Current },
    Package { language: Language::JavaScript, vintage: Vintage::Older },
];

pub(crate) fn run(root: &Path, report: &mut Report) {
    report.step("SDK packages", || {
        Outcome::plain(SUITES.iter().try_for_each(|package| package.install_if_missing(root)))
    });
    let mut stage = Err("the gateway was not started".to_owned());
    report.step("gateway for the SDKs", || {
        stage = Stage::start(root);
        Outcome::plain(stage.as_ref().map(|_| ()).map_err(Clone::clone))
    });
    for package in SUITES {
        report.step(&format!("SDKs: {package}"), || match &stage {
            Ok(stage) => suite(root, *package, stage),
            Err(_) => Outcome::plain(Err("not run, because there is no gateway to talk to".to_owned())),
        });
    }
}

fn suite(root: &Path, package: Package, stage: &Stage) -> Outcome {
    let mut command = Command::new(package.interpreter(root));
    command.arg(root.join("tests/sdk").join(package.script()));
    // The SDKs read keys, addresses and proxies from the environment; a suite must not depend on the person's.
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("GATEWAY", stage.gateway_url())
        .env("SDK_PACKAGES", package.folder(root))
        .env("PYTHONUNBUFFERED", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let (counts, result) = run_counting(&mut command);
    let nothing_ran = counts.passed == 0 && result.is_ok();
    let result = if nothing_ran { Err("the suite ran no checks".to_owned()) } else { result };
    Outcome::counted(
        counts,
        result.map_err(|why| format!("{why}; the gateway's log is {}", stage.log().display())),
    )
}
