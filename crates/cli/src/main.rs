//! The binary `toolgate`: reads the command line and the config, and starts what they ask for.
//!
//! ```text
//!  args ─▶ config ─▶ assemble ─▶ serve          serve: until a signal
//!              └───▶ check, doctor              keys, import: need no config
//! ```

mod announce;
mod args;
mod assemble;
mod config;
mod doctor;
mod environment;
mod housekeeping;
mod import;
mod keys;
mod log_escape;
mod log_queue;
mod logging;
mod serve;
mod signals;
mod trigger_secret;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use mimalloc::MiMalloc;

use args::{Command, CommandLine, ImportFrom, KeysAction, Options, SupervisedAgent};
use config::Refused;
use doctor::Verdict;
use environment::Environment;
use import::NotImported;

/// A turn takes some dozens of small pieces of memory and gives them back; this allocator does that in half the work
/// of the system's. It is kept from huge pages, which would double the memory of a gateway that has nothing to do.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let CommandLine { command, options } = CommandLine::parse();
    match run(command.unwrap_or(Command::Serve), &options) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, options: &Options) -> anyhow::Result<ExitCode> {
    let environment = Environment::Process;
    let mut out = io::stdout();
    match command {
        Command::Serve => return serve::run(options, &environment),
        Command::Check => check(options, &environment, &mut out)?,
        Command::Doctor => {
            if doctor::run(options, &environment, &mut out)? == Verdict::Unfit {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Import { from: ImportFrom::Toolify { file, output } } => {
            import::toolify(&file, output.as_deref(), &environment, &mut out)?;
        }
        Command::Keys { action: KeysAction::New { name } } => keys::new(&name, &mut out)?,
        Command::SuperviseAgent(agent) => return supervise_agent(&agent),
        Command::ExecAgent(agent) => return Err(exec_agent(&agent)),
    }
    Ok(ExitCode::SUCCESS)
}

fn supervise_agent(agent: &SupervisedAgent) -> anyhow::Result<ExitCode> {
    let code = toolgate_backend::supervise(agent.parent, &agent.program, &agent.arguments);
    Ok(ExitCode::from(code.with_context(|| describe_run(agent))?))
}

/// Returns only if it cannot be done.
fn exec_agent(agent: &SupervisedAgent) -> anyhow::Error {
    let error = toolgate_backend::exec_supervised(agent.parent, &agent.program, &agent.arguments);
    anyhow::Error::new(error).context(describe_run(agent))
}

fn describe_run(agent: &SupervisedAgent) -> String {
    format!("running {}", agent.program.to_string_lossy())
}

fn check(options: &Options, environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::load(options.config.as_deref(), options.listen, environment)?;
    for warning in &loaded.warnings {
        writeln!(out, "{warning}")?;
    }
    let backend = &loaded.config.backend;
    writeln!(
        out,
        "{}: good, with {}, {} and {}",
        announce::origin(&loaded.origin),
        count(backend.models.len(), "model"),
        count(backend.upstreams.len(), "upstream"),
        count(loaded.config.keys.len(), "key"),
    )?;
    Ok(())
}

fn count(number: usize, noun: &str) -> String {
    match number {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        more => format!("{more} {noun}s"),
    }
}

/// Writes an error and its causes; the many lines of a refused config stand as they are.
fn complain(error: &anyhow::Error) {
    let is_list = error.is::<Refused>() || error.is::<NotImported>();
    let text = if is_list { error.to_string() } else { format!("toolgate: {error:#}") };
    // With stderr closed there is nobody left to tell; the exit code still says it.
    writeln!(io::stderr(), "{text}").unwrap_or_default();
}
