//! How the program is started: its arguments and its whole environment. What is fixed here cannot change later, so
//! a process serves only requests that would start it the same way.

use std::path::Path;
use std::process::Stdio;

use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;
use toolgate_dialect::claude_stream_json::{SERVER, write::MAX_CALL_WAIT_MS};

use super::config::{AgentConfig, AgentModel, Builtins, Supervision};
use super::supervisor::{OWN_PROGRAM, SUPERVISE_COMMAND};

/// The choices that differ from request to request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Launch {
    /// The model to think with, where it is not the agent's usual one. A program that is told later record_inputs the change
    /// in the conversation, and its model reads it there.
    pub(super) model: Option<String>,
    pub(super) builtins: Builtins,
    pub(super) effort: Option<String>,
    pub(super) thinking: Thinking,
    /// Fields added to every request to the model's host, as JSON: the program has no other way to say them.
    pub(super) extra_body: Option<String>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Thinking {
    /// As the program likes.
    #[default]
    Default,
    /// Never: a host refuses to force a call while its model thinks (T32).
    Disabled,
}

/// How a child reaches the gateway it belongs to (X4).
#[derive(Clone, Debug)]
pub struct GatewayAccess {
    /// `http://127.0.0.1:PORT`.
    pub base_url: String,
    /// A key made at this start, for the gateway's own agents.
    pub key: SecretString,
}

/// Settings of the program that everything here relies on. The operator's own `env` may add to them.
const ENVIRONMENT: [(&str, &str); 13] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("LANG", "C.UTF-8"),
    ("CLAUDE_AGENT_SDK_CLIENT_APP", concat!("toolgate/", env!("CARGO_PKG_VERSION"))),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    // User text is data: without this, `@path` shows a file of this machine to the model.
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("ENABLE_CLAUDEAI_MCP_SERVERS", "0"),
    // Every tool stands in the first request, and results arrive whole.
    ("ENABLE_TOOL_SEARCH", "false"),
    ("MAX_MCP_OUTPUT_TOKENS", "1000000000"),
    // A call waits in the foreground for as long as its client needs.
    ("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "0"),
    // Failures of the model's host reach the client soon, and only streams are read.
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
];

/// The program, ready to be started.
pub(super) fn command(
    config: &AgentConfig,
    launch: &Launch,
    gateway_access: Option<&GatewayAccess>,
) -> Command {
    let mut command = match config.supervision {
        // A program that is not there is told best by the system.
        Supervision::OwnProgram if config.program.is_file() => supervised(&config.program),
        Supervision::OwnProgram | Supervision::None => Command::new(&config.program),
    };
    command
        .args(["--output-format=stream-json", "--input-format=stream-json", "--verbose"])
        .args(["--include-partial-messages", "--permission-prompt-tool=stdio", "--permission-mode=default"])
        // Nothing of whoever runs the gateway leaks in: no settings, servers, commands or transcripts.
        .args([
            "--setting-sources=",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--no-session-persistence",
        ])
        .arg(format!("--allowedTools=mcp__{SERVER}"))
        .arg(match &launch.builtins {
            Builtins::None => "--tools=".to_owned(),
            Builtins::Default => "--tools=default".to_owned(),
            Builtins::Only(names) => format!("--tools={}", names.join(",")),
        });
    let model = match &config.model {
        AgentModel::Default => launch.model.as_deref(),
        AgentModel::Gateway(name) => Some(name.as_str()),
    };
    let thinking = match launch.thinking {
        Thinking::Default => None,
        Thinking::Disabled => Some("disabled"),
    };
    let choices = [("--model", model), ("--effort", launch.effort.as_deref()), ("--thinking", thinking)];
    for (flag, value) in choices.into_iter().filter_map(|(flag, value)| Some((flag, value?))) {
        command.arg(format!("{flag}={value}"));
    }
    if let Some(turns) = config.max_turns {
        command.arg(format!("--max-turns={turns}"));
    }
    if let Some(dollars) = config.max_budget_usd {
        command.arg(format!("--max-budget-usd={dollars}"));
    }
    environment(&mut command, config, launch, gateway_access);
    command.current_dir(config.working_directory());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A group of its own: a signal from the terminal is ours to handle, and its tools can be ended with it.
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// The program below its keeper.
fn supervised(program: &Path) -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg(SUPERVISE_COMMAND).arg(std::process::id().to_string()).arg(program);
    command
}

/// Folders below the agent's own.
pub(super) const WORK_FOLDER: &str = "work";
pub(super) const CONFIG_FOLDER: &str = "claude";
pub(super) const TEMP_FOLDER: &str = "tmp";

fn environment(
    command: &mut Command,
    config: &AgentConfig,
    launch: &Launch,
    gateway_access: Option<&GatewayAccess>,
) {
    command.env_clear().envs(ENVIRONMENT);
    command.env("MCP_TOOL_TIMEOUT", MAX_CALL_WAIT_MS.to_string());
    command.env("HOME", &config.folder);
    command.env("CLAUDE_CONFIG_DIR", config.folder.join(CONFIG_FOLDER));
    command.env("TMPDIR", config.folder.join(TEMP_FOLDER));
    if launch.builtins == Builtins::None {
        // The client's history is the truth, however long: no summary takes its place, and whether it is too long is
        // the host's word. An agent with tools of its own may fill a model's context in one turn, which the client
        // could do nothing about.
        command.envs([("DISABLE_COMPACT", "1"), ("DISABLE_AUTO_COMPACT", "1")]);
        command.env("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "1000000000");
    }
    if let Some(body) = &launch.extra_body {
        command.env("CLAUDE_CODE_EXTRA_BODY", body);
    }
    for (name, value) in &config.env {
        command.env(name, value.expose_secret());
    }
    if let (AgentModel::Gateway(model), Some(gateway_access)) = (&config.model, gateway_access) {
        command.env("ANTHROPIC_BASE_URL", &gateway_access.base_url);
        command.env("ANTHROPIC_API_KEY", gateway_access.key.expose_secret());
        // The line that names the program to its maker means nothing to another model.
        command.env("CLAUDE_CODE_ATTRIBUTION_HEADER", "0");
        // Small jobs of the program go to the same model: it knows no other here.
        for small in ["ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"] {
            command.env(small, model);
        }
    }
}
