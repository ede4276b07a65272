//! `[agents.NAME]`: a program that answers as if it were a model.

use std::path::{Path, PathBuf};

use toml::de::DeValue;
use toolgate_backend::config::{AgentConfig, AgentModel, Builtins, PoolSize, SystemMode};

use super::problem::{Placed, Reading};
use super::secret;
use super::section::{ListForm, Section};

/// More processes than any one machine runs.
const MOST_PROCESSES: u32 = 1024;

/// More model calls than any turn needs.
const MOST_TURNS: u32 = 100_000;

/// One agent, its model not yet looked up.
pub(crate) struct AgentEntry {
    pub(crate) name: Placed<String>,
    /// Nothing after reporting why not.
    pub(crate) config: Option<AgentConfig>,
    /// The model of this gateway that it thinks with.
    pub(crate) model: Option<Placed<String>>,
}

/// Reads one agent.
pub(crate) fn read(name: Placed<String>, section: &Section<'_>, reading: &mut Reading<'_>) -> AgentEntry {
    let known = [
        "command",
        "env",
        "model",
        "tools",
        "system",
        "max_turns",
        "max_budget_usd",
        "workdir",
        "warm",
        "max",
        "hold",
    ];
    section.expect_keys(&known, reading);
    let model = section.text("model", "gpt-4o-mini", reading);
    let builtins = read_tools(section, reading);
    let pool = read_pool(section, reading);
    let env = read_env(section, reading);
    let workdir = section.text("workdir", "/srv/project", reading).map(|path| read_workdir(&path, reading));
    let max_turns = section.count("max_turns", MOST_TURNS, reading).map(|turns| turns.value.max(1));
    let max_budget_usd = section.amount("max_budget_usd", reading).map(|dollars| dollars.value);
    let system = read_system(section, &builtins, reading);
    let program = read_program(section, reading);
    let config = program.map(|program| AgentConfig {
        env,
        model: model.as_ref().map_or(AgentModel::Default, |model| AgentModel::Gateway(model.value.clone())),
        builtins,
        system,
        workdir,
        max_turns,
        max_budget_usd,
        pool,
        ..AgentConfig::new(&name.value, program, private_folder(&name.value, reading))
    });
    AgentEntry { name, config, model }
}

/// Where an agent keeps what is its own.
pub(crate) fn private_folder(name: &str, reading: &Reading<'_>) -> PathBuf {
    let below = Path::new("agents").join(name);
    match reading.environment().data_folder() {
        Some(folder) => folder.join(below),
        None => reading.beside_the_file(below),
    }
}

fn read_program(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<PathBuf> {
    if section.key_place("command").is_none() {
        section.missing("command = \"claude\"", reading);
    }
    let command = section.text("command", "claude", reading)?;
    let is_path = Path::new(&command.value).components().count() > 1;
    if is_path {
        let path = reading.beside_the_file(&command.value);
        if !path.exists() {
            let problem = format!("there is no program at {}: correct `command`", path.display());
            reading.warning(command.place, problem);
        }
        return Some(path);
    }
    let found = reading.environment().program(&command.value);
    if found.is_none() {
        let problem = format!(
            "no program `{}` is on the PATH: install Claude Code, or write its whole path in `command`",
            command.value
        );
        reading.warning(command.place, problem);
    }
    Some(found.unwrap_or_else(|| PathBuf::from(command.value)))
}

fn read_tools(section: &Section<'_>, reading: &mut Reading<'_>) -> Builtins {
    let Some(tools) = section.texts("tools", ListForm::OneOrMany, reading) else { return Builtins::None };
    let is_text =
        |field: &super::section::Field<'_>| field.key == "tools" && matches!(field.value, DeValue::String(_));
    if let [Placed { value, place }] = &tools[..]
        && section.fields().iter().any(is_text)
    {
        if value == "default" {
            return Builtins::Default;
        }
        reading.error(*place, format!("`tools` is a list, \"default\" or []: write [\"{value}\"]"));
    }
    for tool in &tools {
        if tool.value.is_empty() || tool.value.contains(',') {
            reading.error(tool.place, "a built-in tool is written by its name alone, as in \"Read\"");
        }
    }
    if tools.is_empty() {
        Builtins::None
    } else {
        Builtins::Only(tools.into_iter().map(|tool| tool.value).collect())
    }
}

/// An agent with tools of its own needs to be told how to use them, so the client's words come after its own.
fn read_system(section: &Section<'_>, builtins: &Builtins, reading: &mut Reading<'_>) -> SystemMode {
    let usual = if *builtins == Builtins::None { SystemMode::Replace } else { SystemMode::Append };
    let Some(written) = section.text("system", "append", reading) else { return usual };
    match written.value.as_str() {
        "replace" => SystemMode::Replace,
        "append" => SystemMode::Append,
        other => {
            reading.error(written.place, format!("`system` is \"replace\" or \"append\", not \"{other}\""));
            usual
        }
    }
}

fn read_pool(section: &Section<'_>, reading: &mut Reading<'_>) -> PoolSize {
    let usual = PoolSize::default();
    let size = |written: Option<Placed<u32>>, usual| {
        written.map_or(usual, |written| usize::try_from(written.value).unwrap_or(usize::MAX))
    };
    let max = section.count("max", MOST_PROCESSES, reading);
    if let Some(Placed { value: 0, place }) = max {
        reading.error(place, "`max = 0` lets no agent process live: write 1 or more");
    }
    let max = size(max, usual.max);
    let warm = section.count("warm", MOST_PROCESSES, reading);
    if let Some(written) = &warm
        && usize::try_from(written.value).unwrap_or(usize::MAX) > max
    {
        reading.error(
            written.place,
            format!("`warm` is more than `max`, which is {max}: lower one or raise the other"),
        );
    }
    PoolSize {
        warm: size(warm, usual.warm.min(max)),
        max,
        hold: section.duration("hold", reading).map_or(usual.hold, |hold| hold.value),
        queue_wait: usual.queue_wait,
    }
}

fn read_env(section: &Section<'_>, reading: &mut Reading<'_>) -> Vec<(String, secrecy::SecretString)> {
    let Some(variables) = section.table("env", reading) else { return Vec::new() };
    let mut env = Vec::new();
    for variable in variables.fields() {
        let value = variable.text("env:ANTHROPIC_API_KEY", reading);
        let value = value.and_then(|value| secret::fetch(variable.key, &value, reading));
        if let Some(value) = value {
            env.push((variable.key.to_owned(), value));
        }
    }
    env
}

fn read_workdir(written: &Placed<String>, reading: &mut Reading<'_>) -> PathBuf {
    let path = reading.beside_the_file(&written.value);
    if !path.is_dir() {
        let problem = format!("`workdir`: there is no folder {}: make it, or name another", path.display());
        reading.error(written.place, problem);
    }
    path
}
