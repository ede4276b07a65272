//! The configuration of an agent.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use super::sandbox::SandboxConfig;

/// The subfolder of an agent's folder that it works in by default.
const WORK_FOLDER: &str = "work";

/// Claude Code as a back end.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The name in `[agents.NAME]`; shown in logs and headers.
    pub name: AgentName,
    /// The path of the program.
    pub program: PathBuf,
    /// Environment variables for the program. Apart from these and our own settings its environment is empty.
    pub env: Vec<(String, SecretString)>,
    /// The model it uses.
    pub model: AgentModel,
    /// The built-in tools it may use.
    pub builtins: Builtins,
    /// How a client's system prompt combines with the program's default one.
    pub system: SystemMode,
    /// Its working directory; defaults to a subfolder of `folder`.
    pub workdir: Option<PathBuf>,
    /// The folder for its own files. Each process has its private home directory below it, which keeps the operator's
    /// settings, caches and logins out.
    pub folder: PathBuf,
    /// The limit of model calls per turn; `None` for no limit (E4).
    pub max_turns: Option<u32>,
    /// The cost limit per turn in dollars, at the program's prices; `None` for no limit.
    pub max_budget_usd: Option<f64>,
    /// How long the program may be silent during a turn before it counts as stalled.
    pub stall_timeout: Duration,
    /// The size and timeouts of the process pool.
    pub pool: PoolSize,
    /// How its processes are ended when the gateway is killed.
    pub supervision: Supervision,
    /// What its processes may reach.
    pub sandbox: SandboxConfig,
}

/// Longer than a model thinks, a build runs or a person takes to decide.
const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_mins(30);

impl AgentConfig {
    /// An agent with no built-in tools and the default pool.
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
            sandbox: SandboxConfig::default(),
        }
    }
}

impl AgentConfig {
    /// True if its model sees the client's instructions and nothing of the program's own, like a plain model.
    pub fn shows_only_instructions(&self) -> bool {
        self.builtins == Builtins::None && self.system == SystemMode::Replace
    }

    /// The directory it works in.
    pub fn working_directory(&self) -> PathBuf {
        self.workdir.clone().unwrap_or_else(|| self.folder.join(WORK_FOLDER))
    }
}

/// The name of an agent in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(String);

impl AgentName {
    /// Wraps the name unchanged.
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

/// How an agent's processes are ended when the gateway is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervision {
    /// The program exits when its stdin closes. Before that it may call its model once more. It runs without a sandbox.
    #[default]
    None,
    /// The gateway's own executable supervises each process and starts it in its sandbox. It must implement
    /// [`SUPERVISE_COMMAND`](crate::SUPERVISE_COMMAND) and [`EXEC_COMMAND`](crate::EXEC_COMMAND).
    OwnProgram,
}

/// The model an agent uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentModel {
    /// The program's default model, at the API host that its environment names.
    #[default]
    Default,
    /// A model of this gateway (X4).
    Gateway(String),
}

/// The built-in tools an agent may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Builtins {
    /// None: the agent can call only the client's tools (E6).
    #[default]
    None,
    /// The program's default set.
    Default,
    /// Only the listed tools.
    Only(Vec<String>),
}

/// How a client's system prompt combines with the program's default one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemMode {
    /// It replaces the default prompt, so that the agent behaves as much like a plain model as possible.
    Replace,
    /// It is appended to the default prompt, which explains how to work with files and commands.
    Append,
}

/// The size and timeouts of the process pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// The number of processes kept ready for new conversations.
    pub warm: usize,
    /// The maximum number of live processes.
    pub max: usize,
    /// How long a process waits for its client to come back.
    pub hold: Duration,
    /// How long a request may wait for a free process.
    pub queue_wait: Duration,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self { warm: 1, max: 8, hold: Duration::from_mins(2), queue_wait: Duration::from_mins(1) }
    }
}
