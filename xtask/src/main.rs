//! `cargo xtask`: the development tasks of this repository.
//!
//! CI runs `test`, which must pass before a change is merged; see [`HELP`] for the other tasks.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints to the terminal")]

mod agent;
mod bench;
mod cargo;
mod checkers;
mod claude;
mod command;
mod corpus;
mod llamacpp;
mod packages;
mod prompted;
mod report;
mod schemas;
mod sdk;
mod servers;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use command::Command;

const HELP: &str = "\
Development tasks:

  cargo xtask test            all checks and tests, including the official SDKs and Claude Code;
                              installs missing packages into .toolgate-test/
  cargo xtask test --quick    formatting, tidy, clippy and unit tests: under a minute after a build
  cargo xtask tidy            the rules of the code base that the compiler does not check
  cargo xtask bench           compare the gateway with a relay that parses nothing, in release builds;
                              prints a table and writes target/bench/result.json
  cargo xtask bench --smoke   a run of under a minute, to check that the benchmark works
  cargo xtask bench agent [PROGRAM] [--smoke]
                              measure an agent behind the gateway: start-up, idle sessions, many sessions;
                              PROGRAM is a `claude` binary [default: both versions that tests use];
                              writes target/bench/agent-*/agent.json
  cargo xtask storm [--connections N] [--seed S]
                              open 50,000 valid and invalid connections to a release build: every valid request
                              must be answered, and memory must stop growing
  cargo xtask corpus PATH     read and write the recorded exchanges below PATH in every dialect
  cargo xtask bfcl            send every function-calling ground truth as model text through the gateway and
                              check what the SDKs receive
  cargo xtask llamacpp        only the tests with a real host: llama.cpp and a small model
  cargo xtask kills           kill Claude Code and the gateway at random times during conversations, fifty times
                              per version of Claude Code; SEED=N repeats a run
  cargo xtask schemas         generate crates/testkit/schemas from the vendors' SDKs
  cargo xtask help            this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match Command::parse(&arguments) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let root = &repository_root();
    let outcome = match command {
        Command::Help => {
            print!("{HELP}");
            Ok(())
        }
        Command::Test(extent) => return test::run(root, extent),
        Command::Tidy => test::tidy_step(root).map(|()| println!("tidy: no findings")),
        Command::Bench(extent) => bench::run(root, extent),
        Command::Bfcl => return prompted::run_all(root),
        Command::Schemas => schemas::write(root),
        Command::Llamacpp => return llamacpp::run_alone(root),
        Command::Kills => return agent::run_kills(root),
        Command::BenchAgent(program, extent) => bench::run_agent(root, &program, extent),
        Command::Storm(arguments) => bench::run_storm(root, &arguments),
        Command::Corpus(folder) => corpus::run(root, &folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder above `xtask/`. Cargo passes it at run time; the path compiled in is wrong if two checkouts share a target
/// folder.
fn repository_root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or(PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_owned)
}
