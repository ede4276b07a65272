//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::listen::parse_listen;

/// A gateway for tool calls: three model APIs in front, any model behind.
#[derive(Parser)]
#[command(name = "toolgate", version, about, after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// What every command takes.
#[derive(Args)]
pub(crate) struct Options {
    /// The config file [default: ./toolgate.toml, then toolgate.toml in the platform's config folder, then none]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen, whatever the config says; port 0 takes a free one
    #[arg(long, global = true, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Log format: text or json
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, hide_possible_values = true)]
    pub(crate) log: LogFormat,
    /// Threads that serve requests [default: one for every two cores, at most 4]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway (the default)
    Serve,
    /// Read the config and say what is wrong with it
    Check,
    /// Say what was found on this machine and how to get the rest
    Doctor,
    /// Take over the config of another gateway
    Import {
        #[command(subcommand)]
        from: ImportFrom,
    },
    /// Make keys for callers
    Keys {
        #[command(subcommand)]
        action: KeysAction,
    },
    /// Supervises an agent process; started by the gateway
    #[command(name = toolgate_backend::SUPERVISE_COMMAND, hide = true)]
    SuperviseAgent(SupervisedAgent),
    /// Replaces itself with an agent's program; started by the supervisor
    #[command(name = toolgate_backend::EXEC_COMMAND, hide = true)]
    ExecAgent(SupervisedAgent),
}

/// An agent program that must not outlive the gateway.
#[derive(Args)]
pub(crate) struct SupervisedAgent {
    /// The process id of this process's parent
    pub(crate) parent: u32,
    /// The agent's program
    pub(crate) program: OsString,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// What to import.
#[derive(Subcommand)]
pub(crate) enum ImportFrom {
    /// Toolify's config.yaml: prints a config for toolgate, with comments on what has no equivalent
    Toolify {
        /// Toolify's config.yaml
        file: PathBuf,
        /// Write to this new file instead
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// What to do about keys.
#[derive(Subcommand)]
pub(crate) enum KeysAction {
    /// Make a new key: shows it once, and the lines for the config
    New {
        /// Whose key it is
        name: String,
    },
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

const EXAMPLES: &str = "\
Examples:
  toolgate                            listen on 127.0.0.1:8787 with the demo model and every host whose key is set
  toolgate --config gate.toml         the same with your own config
  toolgate --listen 127.0.0.1:0       take a free port and print it
  toolgate check --config gate.toml   say what is wrong with a config, starting nothing
  toolgate doctor                     say what is missing on this machine
  toolgate keys new alice             make a key for a caller
  toolgate import toolify config.yaml take over the config of Toolify

Variables:
  ANTHROPIC_API_KEY, OPENAI_API_KEY   hosts to use when there is no config
  TOOLGATE_LOG                        what to log: warn, info (the default), debug, or a filter per module";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, clap::Error> {
        CommandLine::try_parse_from(line.split(' '))
    }

    #[test]
    fn options_may_stand_on_either_side_of_the_command() {
        for line in ["toolgate --config x.toml check", "toolgate check --config x.toml"] {
            let parsed = parse(line).unwrap();
            assert_eq!(parsed.options.config, Some(PathBuf::from("x.toml")), "{line}");
            assert!(matches!(parsed.command, Some(Command::Check)), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in ["toolgate --listen 8787", "toolgate --workers 0", "toolgate keys new", "toolgate sevre"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
