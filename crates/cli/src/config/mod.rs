//! The config: found, read, checked, and turned into types that cannot be wrong.
//!
//! ```text
//!  toolgate.toml ─ toml ─▶ Section ─ upstream, agent, model, caller, later ─▶ ConfigFile ─ resolve ─▶ Config
//!                              └──────────── every problem, with its line ─────────────▶ Refused
//!  no file ─ discover (keys in the environment) ────────────────────────────────────────▶ Config
//! ```

mod agent;
mod approvals;
mod caller;
mod discover;
mod duration;
mod file;
mod later;
mod limits;
pub(crate) mod listen;
mod model;
mod nearest;
pub(crate) mod problem;
mod prompting;
mod resolve;
mod secret;
mod section;
mod size;
#[cfg(test)]
mod tests;
pub(crate) mod upstream;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toolgate_backend::config::BackendConfig;
use toolgate_gateway::approval::ApprovalConfig;
use toolgate_gateway::config::{Key, Limits};
use toolgate_state::StoreUrl;

pub(crate) use discover::{AGENT_KEYS, AGENT_PROGRAM, ANTHROPIC_KEY, OPENAI_KEY};
pub(crate) use problem::Problem;

use crate::environment::Environment;
use problem::{Reading, Severity};

/// The name looked for in the working directory and in the platform's config folder.
pub(crate) const FILE_NAME: &str = "toolgate.toml";

/// Everything the operator decided.
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) store: StoreUrl,
    /// Names beside the local ones that a `Host` header may carry.
    pub(crate) hosts: Vec<String>,
    pub(crate) backend: BackendConfig,
    pub(crate) keys: Vec<Key>,
    /// What agents may do without asking.
    pub(crate) approvals: ApprovalConfig,
    pub(crate) limits: Limits,
}

/// A config that may be used, and what the operator should know about it.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) origin: Origin,
    pub(crate) warnings: Vec<Problem>,
}

/// Where a config came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This file.
    File(PathBuf),
    /// No file: what is built in and what was found.
    BuiltIn,
}

/// Every problem of a config that cannot be used, one a line.
#[derive(Debug)]
pub(crate) struct Refused(Vec<Problem>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}")?;
        }
        match self.0.len() {
            1 => write!(f, "1 error: nothing was started"),
            many => write!(f, "{many} errors: nothing was started"),
        }
    }
}

impl std::error::Error for Refused {}

/// The config that applies: the file named, else the one found, else what is built in. `listen` wins over the file's.
pub(crate) fn load(
    named: Option<&Path>,
    listen: Option<SocketAddr>,
    environment: &Environment,
) -> Result<Loaded, Refused> {
    let origin = find(named, environment);
    let mut loaded = match &origin {
        Origin::File(path) => from_file(path, environment),
        Origin::BuiltIn => discover::config(environment)
            .map(|(config, warnings)| Loaded { config, origin: Origin::BuiltIn, warnings })
            .map_err(|problem| Refused(vec![problem])),
    }?;
    loaded.config.backend.proxy = environment
        .proxies()
        .map_err(|why| Refused(vec![Problem::outside_the_file("environment", Severity::Error, why)]))?;
    let Some(listen) = listen else { return Ok(loaded) };
    loaded.config.listen = listen;
    if !listen.ip().is_loopback() && loaded.config.keys.is_empty() {
        let problem =
            Problem::outside_the_file("--listen", Severity::Error, listen::refusal_without_keys(listen));
        return Err(Refused(vec![problem]));
    }
    Ok(loaded)
}

/// Which file would be read.
pub(crate) fn find(named: Option<&Path>, environment: &Environment) -> Origin {
    if let Some(path) = named {
        return Origin::File(path.to_owned());
    }
    let in_config_folder = environment.config_folder().map(|folder| folder.join(FILE_NAME));
    let candidates = [Some(PathBuf::from(FILE_NAME)), in_config_folder];
    match candidates.into_iter().flatten().find(|candidate| candidate.exists()) {
        Some(path) => Origin::File(path),
        None => Origin::BuiltIn,
    }
}

fn from_file(path: &Path, environment: &Environment) -> Result<Loaded, Refused> {
    let text = std::fs::read_to_string(path).map_err(|cause| {
        let message =
            format!("cannot read the config ({cause}): check the path given to --config and its permissions");
        Refused(vec![Problem::outside_the_file(path, Severity::Error, message)])
    })?;
    from_text(path, &text, environment)
}

/// The config that a text would be in this file.
pub(crate) fn from_text(path: &Path, text: &str, environment: &Environment) -> Result<Loaded, Refused> {
    let mut reading = Reading::new(path, text, environment);
    let file = file::read(text, &mut reading);
    let config = file.and_then(|file| resolve::resolve(file, &mut reading));
    let failed = reading.has_errors();
    let mut problems = reading.into_problems();
    if failed {
        // First things first: warnings come once the file can be used.
        problems.retain(|problem| problem.severity == Severity::Error);
    }
    match config {
        Some(config) if !failed => {
            Ok(Loaded { config, origin: Origin::File(path.to_owned()), warnings: problems })
        }
        _ => Err(Refused(problems)),
    }
}
