//! `cargo xtask`: everything one does with this repository besides building it, in one command each.
//!
//! `test` is what must pass before anything lands, and the same command that CI runs; see [`HELP`] for the rest.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to the person who runs it"
)]

mod agent;
mod bench;
mod cargo;
mod checkers;
mod claude;
mod command;
mod corpus;
mod packages;
mod prompted;
mod report;
mod sdk;
mod stage;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use command::Command;

const HELP: &str = "\
Everything one does with this repository, in one command each.

  cargo xtask test            all checks and all tests, the official SDKs and Claude Code included;
                              fetches what is missing into .toolgate-test/
  cargo xtask test --quick    formatting, tidy, clippy and unit tests: under a minute when warm
  cargo xtask tidy            the rules of the code base that no compiler checks
  cargo xtask bench           the gateway beside a relay that parses nothing, in a release build;
                              a table here, and target/bench/result.json
  cargo xtask bench --smoke   the same in under a minute: shows that it runs, not how fast
  cargo xtask bench agent [PROGRAM] [--smoke]
                              an agent behind the gateway: starts, sleeping sessions, a crowd; PROGRAM is a
                              `claude` to measure with, else both that tests use; target/bench/agent-*/agent.json
  cargo xtask storm [--connections N] [--seed S]
                              50,000 mixed connections, good and bad, against a release build: every good request
                              is answered, and memory stops growing
  cargo xtask corpus PATH     recorded exchanges below PATH, read and written in every dialect
  cargo xtask bfcl            every function-calling ground truth as the text of a model, read back by the SDKs
  cargo xtask kills           Claude Code and the gateway killed fifty times each program at random moments of conversations;
                              SEED=N makes the same choices again
  cargo xtask help            this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match Command::parse(&arguments) {
        Ok(command) => command,
        Err(complaint) => {
            eprintln!("{complaint}\n\n{HELP}");
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
        Command::Tidy => test::tidy_step(root).map(|()| println!("tidy: nothing to complain about")),
        Command::Bench(extent) => bench::run(root, extent),
        Command::Bfcl => return prompted::run_all(root),
        Command::Kills => return agent::run_kills(root),
        Command::BenchAgent(program, extent) => bench::run_agent(root, &program, extent),
        Command::Storm(arguments) => bench::run_storm(root, &arguments),
        Command::Corpus(folder) => corpus::run(root, &folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

/// The folder above `xtask/`. Cargo says at run time which one it was started for; what was compiled in is only
/// right as long as no two checkouts share a target folder.
fn repository_root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or(PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_owned)
}
