//! `[agents.NAME]`: an agent program that serves as a model.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;
use toml::de::DeValue;
use toolgate_backend::config::{
    AgentConfig, AgentModel, Builtins, PoolSize, SystemMode, bypasses_the_gateway,
};

use super::problem::{Located, ReadContext};
use super::sandbox;
use super::secret;
use super::section::{ListForm, Section};
use super::upstream::parse_base_url;

/// More processes than one machine runs.
const MAX_PROCESSES: u32 = 1024;

/// More model calls than any turn needs.
const MAX_TURNS: u32 = 100_000;

/// One agent, before its model is resolved.
pub(crate) struct AgentEntry {
    pub(crate) name: Located<String>,
    /// `None` after reporting a problem.
    pub(crate) config: Option<AgentConfig>,
    /// The model of this gateway that it uses.
    pub(crate) model: Option<Located<String>>,
}

/// Reads one agent.
pub(crate) fn read(
    name: Located<String>,
    section: &Section<'_>,
    context: &mut ReadContext<'_>,
) -> AgentEntry {
    let known = [
        "command",
        "env",
        "model",
        "tools",
        "system",
        "max_turns",
        "max_budget_usd",
        "workdir",
        "sandbox",
        "warm",
        "max",
        "hold",
    ];
    section.expect_keys(&known, context);
    let model = section.text("model", "gpt-4o-mini", context);
    let builtins = read_tools(section, context);
    let pool = read_pool(section, context);
    let env = read_env(section, context);
    let workdir = section.text("workdir", "/srv/project", context).map(|path| read_workdir(&path, context));
    let max_turns = section.count("max_turns", MAX_TURNS, context).map(|turns| turns.value.max(1));
    let max_budget_usd = section.amount("max_budget_usd", context).map(|dollars| dollars.value);
    let system = read_system(section, &builtins, context);
    let sandbox = sandbox::read(section, context);
    let program = read_program(section, context);
    let config = program.map(|program| AgentConfig {
        env,
        model: model.as_ref().map_or(AgentModel::Default, |model| AgentModel::Gateway(model.value.clone())),
        builtins,
        system,
        workdir,
        max_turns,
        max_budget_usd,
        pool,
        sandbox,
        ..AgentConfig::new(&name.value, program, private_folder(&name.value, context))
    });
    AgentEntry { name, config, model }
}

/// The folder for an agent's own files.
pub(crate) fn private_folder(name: &str, context: &ReadContext<'_>) -> PathBuf {
    let below = Path::new("agents").join(name);
    match context.environment().data_folder() {
        Some(folder) => folder.join(below),
        None => context.relative_to_file(below),
    }
}

fn read_program(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<PathBuf> {
    if section.key_position("command").is_none() {
        section.missing("command = \"claude\"", context);
    }
    let command = section.text("command", "claude", context)?;
    let is_path = Path::new(&command.value).components().count() > 1;
    if is_path {
        let path = context.relative_to_file(&command.value);
        if !path.exists() {
            let problem = format!("there is no program at {}: change `command`", path.display());
            context.warning(command.position, problem);
        }
        return Some(path);
    }
    let found = context.environment().program(&command.value);
    if found.is_none() {
        let problem = format!(
            "no program `{}` on the PATH: install Claude Code, or write the full path in `command`",
            command.value
        );
        context.warning(command.position, problem);
    }
    Some(found.unwrap_or_else(|| PathBuf::from(command.value)))
}

fn read_tools(section: &Section<'_>, context: &mut ReadContext<'_>) -> Builtins {
    let Some(tools) = section.texts("tools", ListForm::OneOrMany, context) else { return Builtins::None };
    let is_text =
        |field: &super::section::Field<'_>| field.key == "tools" && matches!(field.value, DeValue::String(_));
    if let [Located { value, position }] = &tools[..]
        && section.fields().iter().any(is_text)
    {
        if value == "default" {
            return Builtins::Default;
        }
        context.error(*position, format!("`tools` must be a list, \"default\" or []: write [\"{value}\"]"));
    }
    for tool in &tools {
        if tool.value.is_empty() || tool.value.contains(',') {
            context.error(tool.position, "write only the name of a built-in tool, as in \"Read\"");
        }
    }
    if tools.is_empty() {
        Builtins::None
    } else {
        Builtins::Only(tools.into_iter().map(|tool| tool.value).collect())
    }
}

/// An agent with built-in tools needs its own system prompt to use them, so the client's prompt is appended to it.
fn read_system(section: &Section<'_>, builtins: &Builtins, context: &mut ReadContext<'_>) -> SystemMode {
    let default = if *builtins == Builtins::None { SystemMode::Replace } else { SystemMode::Append };
    let Some(written) = section.text("system", "append", context) else { return default };
    match written.value.as_str() {
        "replace" => SystemMode::Replace,
        "append" => SystemMode::Append,
        other => {
            context.error(
                written.position,
                format!("`system` must be \"replace\" or \"append\", not \"{other}\""),
            );
            default
        }
    }
}

fn read_pool(section: &Section<'_>, context: &mut ReadContext<'_>) -> PoolSize {
    let default = PoolSize::default();
    let size = |written: Option<Located<u32>>, default| {
        written.map_or(default, |written| usize::try_from(written.value).unwrap_or(usize::MAX))
    };
    let max = section.count("max", MAX_PROCESSES, context);
    if let Some(Located { value: 0, position }) = max {
        context.error(position, "`max = 0` allows no agent process: write 1 or more");
    }
    let max = size(max, default.max);
    let warm = section.count("warm", MAX_PROCESSES, context);
    if let Some(written) = &warm
        && usize::try_from(written.value).unwrap_or(usize::MAX) > max
    {
        context.error(
            written.position,
            format!("`warm` is greater than `max` ({max}): lower `warm` or raise `max`"),
        );
    }
    PoolSize {
        warm: size(warm, default.warm.min(max)),
        max,
        hold: section.duration("hold", context).map_or(default.hold, |hold| hold.value),
        queue_wait: default.queue_wait,
    }
}

fn read_env(section: &Section<'_>, context: &mut ReadContext<'_>) -> Vec<(String, secrecy::SecretString)> {
    let Some(variables) = section.table("env", context) else { return Vec::new() };
    let mut env = Vec::new();
    for variable in variables.fields() {
        if bypasses_the_gateway(variable.key) {
            let problem = format!(
                "`{}` would let the agent call its model past the gateway, with a key that its tools can read: \
                 remove it, and set ANTHROPIC_API_KEY or `model`",
                variable.key
            );
            context.error(variable.position, problem);
        }
        let value = variable.text("env:ANTHROPIC_API_KEY", context);
        let value = value.and_then(|value| secret::fetch(variable.key, &value, context));
        if let (Some(url), "ANTHROPIC_BASE_URL") = (&value, variable.key)
            && let Err(why) = parse_base_url(url.expose_secret())
        {
            context.error(variable.position, format!("`{}` {why}", variable.key));
        }
        if let Some(value) = value {
            env.push((variable.key.to_owned(), value));
        }
    }
    env
}

fn read_workdir(written: &Located<String>, context: &mut ReadContext<'_>) -> PathBuf {
    let path = context.relative_to_file(&written.value);
    if !path.is_dir() {
        let problem =
            format!("`workdir`: there is no folder {}: create it, or choose another", path.display());
        context.error(written.position, problem);
    }
    path
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::needless_raw_string_hashes,
        reason = "expect-test writes them when it records a message"
    )]

    use expect_test::expect;

    use super::super::tests::check;

    #[test]
    fn variables_that_bypass_the_gateway_or_name_no_host_are_errors() {
        check(
            r#"
[agents.claude]
command = "/bin/sh"
[agents.claude.env]
ANTHROPIC_API_KEY = "env:A_KEY"
ANTHROPIC_BASE_URL = "api.example.com"
CLAUDE_CODE_OAUTH_TOKEN = "sk-ant-oat"
CLAUDE_CODE_USE_BEDROCK = "1"
[models."claude-code"]
agent = "claude"
"#,
            &expect![[r#"
                toolgate.toml:6:1: `ANTHROPIC_BASE_URL` must begin with http:// or https://, such as "https://api.openai.com/v1"
                toolgate.toml:7:1: `CLAUDE_CODE_OAUTH_TOKEN` would let the agent call its model past the gateway, with a key that its tools can read: remove it, and set ANTHROPIC_API_KEY or `model`
                toolgate.toml:8:1: `CLAUDE_CODE_USE_BEDROCK` would let the agent call its model past the gateway, with a key that its tools can read: remove it, and set ANTHROPIC_API_KEY or `model`
                3 errors: nothing was started
            "#]],
        );
    }

    #[test]
    fn a_key_and_a_host_are_accepted() {
        check(
            r#"
[agents.claude]
command = "/bin/sh"
[agents.claude.env]
ANTHROPIC_AUTH_TOKEN = "env:A_KEY"
ANTHROPIC_BASE_URL = "https://api.example.com/anthropic"
[models."claude-code"]
agent = "claude"
"#,
            &expect![[r#""#]],
        );
    }
}
