//! The binary `toolgate`: reads the command line and the config and runs the command.
//!
//! ```text
//!  args ─▶ config ─▶ assemble ─▶ serve (until a signal)
//!     │       ├─────▶ check, doctor
//!     │       └─────▶ console, approvals (talk to a running gateway)
//!     └────────────▶ keys, import (without a config)
//! ```

mod announce;
mod approvals;
mod args;
mod assemble;
mod config;
mod console;
mod doctor;
mod environment;
mod gateway_client;
mod housekeeping;
mod import;
mod keys;
mod log_escape;
mod log_queue;
mod logging;
mod profiles;
mod sandbox_report;
mod serve;
mod signals;
mod store_secret;
mod visible_text;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use mimalloc::MiMalloc;

use args::{Command, CommandLine, ImportFrom, KeysAction, Options, SupervisedAgent};
use config::ConfigErrors;
use doctor::Readiness;
use environment::Environment;
use import::ImportErrors;
use toolgate_backend::{SandboxSupport, SupervisedProgram};

/// A turn makes dozens of small allocations, which cost half as much as with the system's allocator. Built without huge
/// pages, which would double the memory of an idle gateway.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let CommandLine { command, options } = CommandLine::parse();
    match run(command.unwrap_or(Command::Serve), &options) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
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
            if doctor::run(options, &environment, &mut out)? == Readiness::NotReady {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Approvals { action } => approvals::run(action, options, &environment, &mut out)?,
        Command::Console => console::run(options, &environment, &mut out)?,
        Command::Import { from: ImportFrom::Toolify { file, output } } => {
            import::toolify(&file, output.as_deref(), &environment, &mut out)?;
        }
        Command::Keys { action: KeysAction::New { name } } => keys::new(&name, &mut out)?,
        Command::SuperviseAgent(agent) => return supervise_agent(agent),
        Command::ExecAgent(agent) => return Err(exec_agent(agent)),
    }
    Ok(ExitCode::SUCCESS)
}

fn supervise_agent(agent: SupervisedAgent) -> anyhow::Result<ExitCode> {
    let (gateway, program) = supervised(agent);
    let code = toolgate_backend::supervise(gateway, &program);
    Ok(ExitCode::from(code.with_context(|| describe_run(&program))?))
}

/// Returns only if it cannot be done.
fn exec_agent(agent: SupervisedAgent) -> anyhow::Error {
    let (supervisor, program) = supervised(agent);
    let error = toolgate_backend::exec_supervised(supervisor, &program);
    anyhow::Error::new(error).context(describe_run(&program))
}

/// The parent's process id and the program.
fn supervised(agent: SupervisedAgent) -> (u32, SupervisedProgram) {
    let SupervisedAgent { sandbox, parent, program, arguments } = agent;
    (parent, SupervisedProgram { sandbox, program, arguments })
}

fn describe_run(program: &SupervisedProgram) -> String {
    format!("running {}", program.program.to_string_lossy())
}

fn check(options: &Options, environment: &Environment, out: &mut dyn Write) -> anyhow::Result<()> {
    let loaded = config::load(options.config.as_deref(), options.listen, environment)?;
    for warning in &loaded.warnings {
        writeln!(out, "{warning}")?;
    }
    let backend = &loaded.config.backend;
    profiles::print(backend, out)?;
    sandbox_report::print(&backend.agents, SandboxSupport::of_this_machine(), out)?;
    writeln!(
        out,
        "{}: ok, {}, {} and {}",
        announce::source(&loaded.source),
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

/// Prints an error and its causes. The errors of a config are already one per line.
fn print_error(error: &anyhow::Error) {
    let is_list = error.is::<ConfigErrors>() || error.is::<ImportErrors>();
    let text = if is_list { error.to_string() } else { format!("toolgate: {error:#}") };
    // If stderr is closed, the exit code still reports the failure.
    writeln!(io::stderr(), "{text}").unwrap_or_default();
}
