//! `cargo xtask bench`: builds the gateway and the benchmark in release mode and runs the benchmark.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{AgentProgram, BenchExtent};
use crate::{cargo, claude};

pub(crate) fn run(root: &Path, extent: BenchExtent) -> Result<(), String> {
    let Built { gateway, bench, results } = build(root)?;
    let mut command = Command::new(bench);
    command.arg("run").arg(gateway).arg(results);
    start(command, extent)
}

/// `cargo xtask bench agent`: the same with an agent behind the gateway, for each version of Claude Code that tests use or
/// for the named program.
pub(crate) fn run_agent(root: &Path, program: &AgentProgram, extent: BenchExtent) -> Result<(), String> {
    let programs = match program {
        AgentProgram::Named(program) => vec![("named", program.clone())],
        AgentProgram::Pinned => {
            claude::install_if_missing(root)?;
            claude::programs(root).to_vec()
        }
    };
    let Built { gateway, bench, results } = build(root)?;
    for (name, program) in programs {
        println!("{name}: {}", program.display());
        let mut command = Command::new(&bench);
        command.arg("agent").arg(&gateway).arg(program).arg(results.join(format!("agent-{name}")));
        start(command, extent)?;
    }
    Ok(())
}

/// `cargo xtask storm`: many valid and invalid connections to a gateway in front of a scripted host.
pub(crate) fn run_storm(root: &Path, arguments: &[String]) -> Result<(), String> {
    let Built { gateway, bench, results } = build(root)?;
    let mut command = Command::new(bench);
    command.arg("storm").arg(gateway).arg(results.join("storm")).args(arguments);
    cargo::run(command.stdin(Stdio::null()))
}

struct Built {
    gateway: PathBuf,
    bench: PathBuf,
    results: PathBuf,
}

fn build(root: &Path) -> Result<Built, String> {
    let arguments = ["--release", "--package", "toolgate", "--package", "toolgate-bench", "--bins"];
    let [gateway, bench] = cargo::build(root, &arguments, ["toolgate", "toolgate-bench"])?;
    let results = cargo::target_folder(root)?.join("bench");
    Ok(Built { gateway, bench, results })
}

fn start(mut command: Command, extent: BenchExtent) -> Result<(), String> {
    command.stdin(Stdio::null());
    match extent {
        BenchExtent::Full => {}
        BenchExtent::Smoke => {
            command.arg("--smoke");
        }
    }
    cargo::run(&mut command)
}
