//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::listen::parse_listen;

/// A gateway for tool calls: serves three model APIs and forwards to any model.
#[derive(Parser)]
#[command(name = "toolgate", version, about, after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// Options of every command.
#[derive(Args)]
pub(crate) struct Options {
    /// Config file [default: ./toolgate.toml, else toolgate.toml in the config folder, else built-in settings]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on, overriding the config; port 0 picks a free port
    #[arg(long, global = true, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Log format: text or json
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, hide_possible_values = true)]
    pub(crate) log: LogFormat,
    /// Threads that serve requests [default: one per two cores, at most 4]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway (the default)
    Serve,
    /// Check the config and list its errors
    Check,
    /// Check this machine: config, port, store, hosts, keys and agents
    Doctor,
    /// Print the console's address with a new token
    Console,
    /// Answer the agents' questions: interactively, or with one of these commands
    Approvals {
        #[command(subcommand)]
        action: Option<ApprovalsAction>,
    },
    /// Convert the config of another gateway
    Import {
        #[command(subcommand)]
        from: ImportFrom,
    },
    /// Create keys for callers
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
    /// The program's sandbox, as JSON
    #[arg(long)]
    pub(crate) sandbox: Option<String>,
    /// The process id of this process's parent
    pub(crate) parent: u32,
    /// The agent's program
    pub(crate) program: OsString,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// The formats to import.
#[derive(Subcommand)]
pub(crate) enum ImportFrom {
    /// Convert Toolify's config.yaml; comments mark what has no equivalent
    Toolify {
        /// Toolify's config.yaml
        file: PathBuf,
        /// Write to this new file instead of stdout
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The answers to a question.
#[derive(Subcommand)]
pub(crate) enum ApprovalsAction {
    /// List the questions that wait
    List,
    /// Show a question in full
    Show {
        /// Id of the question
        id: String,
    },
    /// Let the tool run once
    Allow {
        /// Id of the question
        id: String,
    },
    /// Refuse the tool
    Deny {
        /// Id of the question
        id: String,
        /// The reason, which the model sees
        reason: Vec<String>,
    },
    /// Run nothing and give the model this text as the tool's result
    Answer {
        /// Id of the question
        id: String,
        /// The text
        #[arg(required = true)]
        text: Vec<String>,
    },
}

/// The actions on keys.
#[derive(Subcommand)]
pub(crate) enum KeysAction {
    /// Create a key: prints it once, with the lines for the config
    New {
        /// Name of the caller
        name: String,
    },
}

/// The format of the log.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    #[value(alias = "human")]
    Text,
    /// One JSON object per line
    Json,
}

const EXAMPLES: &str = "\
Examples:
  toolgate                             listen on 127.0.0.1:8787 with the demo model and every host whose key is set
  toolgate --config gate.toml          use your own config
  toolgate --listen 127.0.0.1:0        listen on a free port and print it
  toolgate check --config gate.toml    check a config without starting
  toolgate doctor                      check this machine
  toolgate approvals                   answer the agents' questions
  toolgate console                     print the console's address with a new token
  toolgate keys new alice              create a key for a caller
  toolgate import toolify config.yaml  convert a config of Toolify

Environment variables:
  ANTHROPIC_API_KEY, OPENAI_API_KEY    keys for the hosts that are used without a config
  HTTPS_PROXY, HTTP_PROXY, ALL_PROXY   proxies for upstream hosts, except those in NO_PROXY
  TOOLGATE_LOG                         log level: warn, info (default) or debug, or a filter per module";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, clap::Error> {
        CommandLine::try_parse_from(line.split(' '))
    }

    #[test]
    fn options_are_accepted_before_and_after_the_command() {
        for line in ["toolgate --config x.toml check", "toolgate check --config x.toml"] {
            let parsed = parse(line).unwrap();
            assert_eq!(parsed.options.config, Some(PathBuf::from("x.toml")), "{line}");
            assert!(matches!(parsed.command, Some(Command::Check)), "{line}");
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for line in ["toolgate --listen 8787", "toolgate --workers 0", "toolgate keys new", "toolgate sevre"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
