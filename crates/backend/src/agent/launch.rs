//! How the program is started: its arguments and its complete environment. These cannot change later, so a process
//! serves only requests that would start it the same way.

use std::io;
use std::path::Path;
use std::process::Stdio;

use secrecy::ExposeSecret;
use tokio::process::Command;
use toolgate_dialect::claude_stream_json::write::MAX_CALL_WAIT_MS;

use super::config::{AgentConfig, AgentModel, Builtins, Supervision};
use super::folders::ProcessFolders;
use super::gateway_access::ProcessAccess;
use super::own_host::stays_in_the_gateway;
use super::sandbox::Sandbox;
use super::supervisor::{OWN_PROGRAM, SANDBOX_OPTION, SUPERVISE_COMMAND};

/// The launch options that depend on the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Launch {
    /// The model, if not the agent's default. Changing it later would leave a note in the conversation that the model
    /// reads.
    pub(super) model: Option<String>,
    pub(super) builtins: Builtins,
    pub(super) effort: Option<String>,
    pub(super) thinking: Thinking,
    /// JSON fields added to every request to the model's API. The program has no other option for them.
    pub(super) extra_body: Option<String>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The program's default.
    #[default]
    Default,
    /// Never: the API rejects a forced tool call while thinking is enabled (T32).
    Disabled,
}

/// The program asks the gateway about every use of every tool. By itself it would take reading in the working directory
/// for harmless, and some commands too. Such a rule precedes all permissions that it is given later.
const ASK_ABOUT_EVERYTHING: &str = r#"--settings={"permissions":{"ask":["*"]}}"#;

/// Environment variables that the operator's `env` may replace.
const ENVIRONMENT: [(&str, &str); 14] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("LANG", "C.UTF-8"),
    // The gateway is reached directly, also if the operator names a proxy for the agent's tools.
    ("NO_PROXY", "127.0.0.1,localhost,::1"),
    ("CLAUDE_AGENT_SDK_CLIENT_APP", concat!("toolgate/", env!("CARGO_PKG_VERSION"))),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    // User text is data: without this, `@path` in it would show a local file to the model.
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("ENABLE_CLAUDEAI_MCP_SERVERS", "0"),
    // The first request contains every tool, and results are not truncated.
    ("ENABLE_TOOL_SEARCH", "false"),
    ("MAX_MCP_OUTPUT_TOKENS", "1000000000"),
    // A call waits in the foreground as long as its client needs.
    ("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", "0"),
    // API failures reach the client quickly, and only streams are used.
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
];

/// What the rules for commands assume, so the operator's `env` cannot replace it: bash reads the commands (the program
/// would prefer zsh, which reads some words differently), and each of them starts in the working directory.
const ASSUMED_BY_RULES: [(&str, &str); 2] =
    [("SHELL", "/bin/bash"), ("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "1")];

/// The program runs git in its working directory when it starts. These settings keep git from executing programs that
/// the repository's own configuration names for reading commands: a file system monitor, a hook after the index was
/// refreshed, a program that verifies signatures. A folder that only looks like a repository is none: an agent could write
/// its `config` without touching `.git`.
const GIT_ENVIRONMENT: [(&str, &str); 8] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "log.showSignature"),
    ("GIT_CONFIG_VALUE_1", "false"),
    ("GIT_CONFIG_KEY_2", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_2", "explicit"),
];

/// The command that starts the program.
pub(super) fn command(
    config: &AgentConfig,
    launch: &Launch,
    access: &ProcessAccess,
    folders: &ProcessFolders,
) -> io::Result<Command> {
    let mut command = match config.supervision {
        Supervision::OwnProgram => {
            // The supervisor could report this only on stderr, where it would look like an error of the program.
            if !config.program.is_file() {
                return Err(io::ErrorKind::NotFound.into());
            }
            let sandbox = Sandbox::of(config, folders, access.address.port());
            supervised(&config.program, sandbox.as_ref())?
        }
        Supervision::None => Command::new(&config.program),
    };
    command
        .args(["--output-format=stream-json", "--input-format=stream-json", "--verbose"])
        .args(["--include-partial-messages", "--permission-prompt-tool=stdio", "--permission-mode=default"])
        // The operator's own settings, servers, commands and transcripts stay out.
        .args([
            "--setting-sources=",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--no-session-persistence",
        ])
        .arg(ASK_ABOUT_EVERYTHING)
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
    command.env_clear().envs(ENVIRONMENT).envs(GIT_ENVIRONMENT).envs(folders.environment());
    environment(&mut command, config, launch, access);
    command.current_dir(config.working_directory());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A process group of its own: terminal signals go to the gateway alone, and the group can be killed as a whole.
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// The program, started through its supervisor.
fn supervised(program: &Path, sandbox: Option<&Sandbox>) -> io::Result<Command> {
    let mut command = Command::new(OWN_PROGRAM);
    command.arg(SUPERVISE_COMMAND);
    if let Some(sandbox) = sandbox {
        command.arg(SANDBOX_OPTION).arg(sandbox.to_json()?);
    }
    command.arg(std::process::id().to_string()).arg(program);
    Ok(command)
}

fn environment(command: &mut Command, config: &AgentConfig, launch: &Launch, access: &ProcessAccess) {
    command.env("MCP_TOOL_TIMEOUT", MAX_CALL_WAIT_MS.to_string());
    if launch.builtins == Builtins::None {
        // The client's history is authoritative at any length: the program must not compact it, and the API decides
        // whether it is too long. With built-in tools a single turn may fill the context, and the client could do
        // nothing about it, so compaction stays on.
        command.envs([("DISABLE_COMPACT", "1"), ("DISABLE_AUTO_COMPACT", "1")]);
        command.env("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "1000000000");
    }
    if let Some(body) = &launch.extra_body {
        command.env("CLAUDE_CODE_EXTRA_BODY", body);
    }
    for (name, value) in config.env.iter().filter(|(name, _)| !stays_in_the_gateway(name)) {
        command.env(name, value.expose_secret());
    }
    command.envs(ASSUMED_BY_RULES);
    // Its tools can read everything here, so the only key is one that opens its model and ends with the process.
    command.env("ANTHROPIC_BASE_URL", access.base_url());
    command.env("ANTHROPIC_API_KEY", access.key.secret().expose_secret());
    if let AgentModel::Gateway(model) = &config.model {
        // The attribution line is meant for Anthropic's API; other models would only see noise.
        command.env("CLAUDE_CODE_ATTRIBUTION_HEADER", "0");
        // The program's background requests use the same model: it has access to no other.
        for small in ["ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"] {
            command.env(small, model);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gateway_access::ProcessKey;
    use super::*;

    /// The command for this program with these variables, or why there is none.
    fn command_of(program: &str, env: &[(&str, &str)]) -> io::Result<Command> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = AgentConfig::new("claude", program.into(), folder.path().to_owned());
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned().into());
        config.env = env.iter().map(owned).collect();
        config.supervision = Supervision::OwnProgram;
        let folders = ProcessFolders::create(folder.path()).expect("folders");
        let address = "127.0.0.1:9".parse().expect("an address");
        let access = ProcessAccess { address, key: ProcessKey::new("key".to_owned().into(), ()) };
        command(&config, &Launch::default(), &access, &folders)
    }

    #[test]
    fn a_name_that_is_no_file_is_never_searched_for_without_a_sandbox() {
        let error = command_of("sh", &[]).expect_err("no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let command = command_of("/bin/sh", &[]).expect("a command");
        assert_eq!(command.as_std().get_program(), OWN_PROGRAM);
    }

    #[test]
    fn the_operators_environment_cannot_replace_what_the_rules_assume() {
        let env = [("SHELL", "/bin/zsh"), ("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", ""), ("LANG", "C")];
        let command = command_of("/bin/sh", &env).expect("a command");
        let value = |name: &str| {
            let mut found = command.as_std().get_envs().filter(|(key, _)| *key == name);
            found.next().and_then(|(_, value)| value?.to_str().map(str::to_owned))
        };
        for (name, assumed) in ASSUMED_BY_RULES {
            assert_eq!(value(name).as_deref(), Some(assumed));
        }
        assert_eq!(value("LANG").as_deref(), Some("C"));
    }
}
