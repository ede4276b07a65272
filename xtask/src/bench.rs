//! `cargo xtask bench`: builds the gateway and the benchmark in release and runs the one on the other.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cargo;
use crate::command::BenchExtent;

pub(crate) fn run(root: &Path, extent: BenchExtent) -> Result<(), String> {
    let arguments = ["--release", "--package", "toolgate", "--package", "toolgate-bench", "--bins"];
    let [gateway, bench] = cargo::build(root, &arguments, ["toolgate", "toolgate-bench"])?;
    let results = cargo::target_folder(root)?.join("bench");
    let mut command = Command::new(bench);
    command.arg("run").arg(gateway).arg(results).stdin(Stdio::null());
    match extent {
        BenchExtent::Full => {}
        BenchExtent::Smoke => {
            command.arg("--smoke");
        }
    }
    cargo::run(&mut command)
}
