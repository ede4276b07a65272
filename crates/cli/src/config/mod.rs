//! The config: finds, reads and checks it and returns validated types.
//!
//! ```text
//!  toolgate.toml ─ toml ─▶ Section ─ upstream, agent, model, … ─▶ ConfigFile ─ resolve ─▶ Config
//!                              └────────── every problem, with its line ────────────────▶ ConfigErrors
//!  no file ─ discover (keys in the environment) ───────────────────────────────────────▶ Config
//! ```

mod agent;
mod approvals;
mod discover;
mod duration;
mod file;
mod keys;
mod lifetime;
mod limits;
pub(crate) mod listen;
mod mcp;
mod model;
mod nearest;
pub(crate) mod problem;
mod profile;
mod prompting;
mod record;
mod resolve;
mod sandbox;
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
use toolgate_gateway::config::{Key, Limits, RecordConfig};
use toolgate_state::StoreUrl;

pub(crate) use discover::{AGENT_PROGRAM, ANTHROPIC_KEY, OPENAI_KEY};
pub(crate) use problem::Problem;

use crate::environment::Environment;
use problem::{ReadContext, Severity};

/// The name of the config file in the working directory or in the platform's config folder.
pub(crate) const FILE_NAME: &str = "toolgate.toml";

/// All settings.
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) store: StoreUrl,
    /// Names that a `Host` header may carry besides the local ones.
    pub(crate) hosts: Vec<String>,
    pub(crate) backend: BackendConfig,
    pub(crate) keys: Vec<Key>,
    /// Rules for the tools that agents run themselves.
    pub(crate) approvals: ApprovalConfig,
    /// What is kept of conversations.
    pub(crate) record: RecordConfig,
    pub(crate) limits: Limits,
}

/// A valid config and its warnings.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) source: ConfigSource,
    pub(crate) warnings: Vec<Problem>,
}

/// Where a config comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// A file.
    File(PathBuf),
    /// No file: built-in settings and what was found on this machine.
    BuiltIn,
}

/// All errors of a config, one per line.
#[derive(Debug)]
pub(crate) struct ConfigErrors(Vec<Problem>);

impl fmt::Display for ConfigErrors {
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

impl std::error::Error for ConfigErrors {}

/// Loads the named file, else the file found, else the built-in settings. `listen` overrides the file's address.
pub(crate) fn load(
    named: Option<&Path>,
    listen: Option<SocketAddr>,
    environment: &Environment,
) -> Result<Loaded, ConfigErrors> {
    let source = find(named, environment);
    let mut loaded = match &source {
        ConfigSource::File(path) => from_file(path, environment),
        ConfigSource::BuiltIn => discover::config(environment)
            .map(|(config, warnings)| Loaded { config, source: ConfigSource::BuiltIn, warnings })
            .map_err(|problem| ConfigErrors(vec![problem])),
    }?;
    loaded.config.backend.proxy = environment
        .proxies()
        .map_err(|why| ConfigErrors(vec![Problem::without_position("environment", Severity::Error, why)]))?;
    let Some(listen) = listen else { return Ok(loaded) };
    loaded.config.listen = listen;
    if !listen.ip().is_loopback() && loaded.config.keys.is_empty() {
        let problem =
            Problem::without_position("--listen", Severity::Error, listen::error_without_keys(listen));
        return Err(ConfigErrors(vec![problem]));
    }
    Ok(loaded)
}

/// Where a gateway listens and what its store is.
pub(crate) struct Location {
    pub(crate) listen: SocketAddr,
    pub(crate) store: StoreUrl,
}

/// Finds the gateway that this config starts. Nothing else of the config is checked, so that the variables with its keys
/// need not be set.
pub(crate) fn locate(
    named: Option<&Path>,
    listen: Option<SocketAddr>,
    environment: &Environment,
) -> Result<Location, ConfigErrors> {
    let (path, text) = match find(named, environment) {
        ConfigSource::File(path) => {
            let text = read_file(&path)?;
            (path, text)
        }
        ConfigSource::BuiltIn => (PathBuf::from("environment"), String::new()),
    };
    let mut context = ReadContext::new(&path, &text, environment);
    let location = file::read_location(&text, &mut context);
    let location = location.and_then(|(written, store)| {
        let store = store.or_else(|| resolve::default_store(&mut context))?;
        Some(Location { listen: listen.or(written).unwrap_or(listen::DEFAULT_LISTEN), store })
    });
    location.filter(|_| !context.has_errors()).ok_or_else(|| ConfigErrors(context.into_problems()))
}

/// Finds the config.
pub(crate) fn find(named: Option<&Path>, environment: &Environment) -> ConfigSource {
    if let Some(path) = named {
        return ConfigSource::File(path.to_owned());
    }
    let in_config_folder = environment.config_folder().map(|folder| folder.join(FILE_NAME));
    let candidates = [Some(PathBuf::from(FILE_NAME)), in_config_folder];
    match candidates.into_iter().flatten().find(|candidate| candidate.exists()) {
        Some(path) => ConfigSource::File(path),
        None => ConfigSource::BuiltIn,
    }
}

fn from_file(path: &Path, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    from_text(path, &read_file(path)?, environment)
}

fn read_file(path: &Path) -> Result<String, ConfigErrors> {
    std::fs::read_to_string(path).map_err(|cause| {
        let message =
            format!("cannot read the config ({cause}): check the path in --config and its permissions");
        ConfigErrors(vec![Problem::without_position(path, Severity::Error, message)])
    })
}

/// Reads a text as if it were in this file.
pub(crate) fn from_text(path: &Path, text: &str, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    let mut context = ReadContext::new(path, text, environment);
    let file = file::read(text, &mut context);
    let config = file.and_then(|file| resolve::resolve(file, &mut context));
    let failed = context.has_errors();
    let mut problems = context.into_problems();
    if failed {
        // Warnings are shown once the errors are fixed.
        problems.retain(|problem| problem.severity == Severity::Error);
    }
    match config {
        Some(config) if !failed => {
            Ok(Loaded { config, source: ConfigSource::File(path.to_owned()), warnings: problems })
        }
        _ => Err(ConfigErrors(problems)),
    }
}
