//! What the operator decides about an agent.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::launch::WORK_FOLDER;

/// Claude Code as a back end.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// As in `[agents.NAME]`; logs and headers show it.
    pub name: AgentName,
    /// The program.
    pub program: PathBuf,
    /// What the program's environment holds beside our own settings, and nothing else (invariant of the child).
    pub env: Vec<(String, SecretString)>,
    /// Which model thinks for it.
    pub model: AgentModel,
    /// The built-in tools it may use.
    pub builtins: Builtins,
    /// What a client's system prompt does to the program's own.
    pub system: SystemMode,
    /// Where it works; a folder of its own where there is none.
    pub workdir: Option<PathBuf>,
    /// Its private folder: settings, caches and logins of whoever runs the gateway stay out.
    pub folder: PathBuf,
    /// The most model calls in one turn; `None` for as many as it takes (E4).
    pub max_turns: Option<u32>,
    /// The most dollars in one turn, by the program's own prices; `None` for as many as it takes.
    pub max_budget_usd: Option<f64>,
    /// How long the program may say nothing in the middle of a turn before it counts as hanging.
    pub stall_timeout: Duration,
    /// How many processes there are.
    pub pool: PoolSize,
    /// Who ends its processes when the gateway is killed.
    pub supervision: Supervision,
}

/// A model that thinks, a build that runs, a person who is asked: longer than any of these.
const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_mins(30);

impl AgentConfig {
    /// An agent with no built-in tools and the usual pool.
    pub fn new(name: impl Into<String>, program: PathBuf, folder: PathBuf) -> Self {
        Self {
            name: AgentName::new(name),
            program,
            env: Vec::new(),
            model: AgentModel::default(),
            builtins: Builtins::default(),
            system: SystemMode::Replace,
            workdir: None,
            folder,
            max_turns: None,
            max_budget_usd: None,
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            pool: PoolSize::default(),
            supervision: Supervision::default(),
        }
    }
}

impl AgentConfig {
    /// Where it works.
    pub fn working_directory(&self) -> PathBuf {
        self.workdir.clone().unwrap_or_else(|| self.folder.join(WORK_FOLDER))
    }
}

/// What an agent is called in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(String);

impl AgentName {
    /// Takes the name as it is.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who ends an agent's processes when the gateway is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervision {
    /// They notice themselves that their input is closed; before they leave, they may ask their model once more.
    #[default]
    None,
    /// The program that runs now, started once more for each of them: it must know [`SUPERVISE_COMMAND`](crate::SUPERVISE_COMMAND).
    OwnProgram,
}

/// Which model thinks for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentModel {
    /// Whatever the program chooses, at the host its environment names.
    #[default]
    Default,
    /// A model of this gateway (X4).
    Gateway(String),
}

/// The built-in tools an agent may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Builtins {
    /// None: it can call only what the client offers (E6).
    #[default]
    None,
    /// All that the program has by default.
    Default,
    /// Only.
    Only(Vec<String>),
}

/// What a client's system prompt does to the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemMode {
    /// It stands alone, so the agent is as much a plain model as it can be.
    Replace,
    /// It comes after the program's own, which tells the model how to work with files and commands.
    Append,
}

/// How many processes there are, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// Kept ready before they are needed.
    pub warm: usize,
    /// The most that live at a time.
    pub max: usize,
    /// How long one is kept that waits for its client.
    pub hold: Duration,
    /// How long a request may wait for a free one.
    pub queue_wait: Duration,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self { warm: 1, max: 8, hold: Duration::from_mins(2), queue_wait: Duration::from_mins(1) }
    }
}
