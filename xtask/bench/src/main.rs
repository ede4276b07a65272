//! Measures the gateway's cost against a relay that parses nothing.
//!
//! The scripted upstream, the relay and the gateway are separate processes, so that the kernel accounts for each on its
//! own. This process generates the load. Gateway and relay take turns within one run, because a machine is never the same
//! twice.
//!
//! ```text
//! toolgate-bench run GATEWAY RESULT_FOLDER [--smoke]    measure (what `cargo xtask bench` starts)
//! toolgate-bench agent GATEWAY PROGRAM RESULT_FOLDER [--smoke]    the same for an agent
//! toolgate-bench storm GATEWAY RESULT_FOLDER [--connections N] [--seed S]    many connections, good and bad
//! toolgate-bench upstream LINK CERTIFICATES             the scripted upstream, until stdin closes
//! toolgate-bench relay LINK CERTIFICATES ADDRESS        the relay to it, until stdin closes
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to the person who runs it"
)]

mod agent;
mod dialect;
mod link;
mod load;
mod measure;
mod process;
mod relay;
mod result;
mod rows;
mod serve;
mod stage;
mod storm;
mod upstream;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use link::Link;
use measure::Effort;

/// Any error: it is only printed.
type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["upstream", link, certificates] => {
            with_link(link, |link| serve::until_stdin_closes(upstream::serve(link, Path::new(certificates))))
        }
        ["relay", link, certificates, upstream] => with_link(link, |link| {
            let upstream = (*upstream).to_owned();
            serve::until_stdin_closes(relay::serve(link, upstream, Path::new(certificates)))
        }),
        ["run", gateway, folder] => measure::run(Path::new(gateway), Path::new(folder), Effort::FULL),
        ["run", gateway, folder, "--smoke"] => {
            measure::run(Path::new(gateway), Path::new(folder), Effort::SMOKE)
        }
        ["agent", gateway, program, folder] => {
            agent::run(Path::new(gateway), Path::new(program), Path::new(folder), agent::Effort::FULL)
        }
        ["agent", gateway, program, folder, "--smoke"] => {
            agent::run(Path::new(gateway), Path::new(program), Path::new(folder), agent::Effort::SMOKE)
        }
        ["storm", gateway, folder, rest @ ..] => storm::Extent::parse(rest)
            .and_then(|extent| storm::run(Path::new(gateway), Path::new(folder), extent)),
        _ => {
            Err("usage: toolgate-bench run GATEWAY RESULT_FOLDER [--smoke]; easier: cargo xtask bench".into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn with_link(name: &str, run: impl FnOnce(Link) -> Result<(), AnyError>) -> Result<(), AnyError> {
    run(Link::of_name(name).ok_or_else(|| format!("there is no link `{name}`"))?)
}
