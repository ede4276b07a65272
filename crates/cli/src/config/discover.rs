//! The built-in config: the demo model, every host whose key is in the environment, and Claude Code if it is installed.

use http::Uri;
use secrecy::SecretString;
use toolgate_backend::ModelPattern;
use toolgate_backend::config::{
    AgentConfig, AgentName, BackendConfig, ModelRoute, PoolSize, Target, Tools, UpstreamConfig, UpstreamName,
    Via,
};
use toolgate_gateway::approval::ApprovalConfig;
use toolgate_gateway::config::{Limits, RecordConfig};
use toolgate_state::StoreUrl;

use super::Config;
use super::listen::DEFAULT_LISTEN;
use super::problem::{Problem, Severity};
use crate::environment::Environment;

/// The variable with a key for Anthropic.
pub(crate) const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
/// The variable with a key for OpenAI.
pub(crate) const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// The agent's program on the PATH.
pub(crate) const AGENT_PROGRAM: &str = "claude";
/// The model that it serves.
const AGENT_MODEL: &str = "claude-code";
/// The variables with a key for the agent's own model.
const AGENT_KEYS: [&str; 2] = [ANTHROPIC_KEY, "ANTHROPIC_AUTH_TOKEN"];

/// A host that needs only a key.
struct KnownHost {
    variable: &'static str,
    name: &'static str,
    dialect: &'static str,
    base_url: &'static str,
    models: &'static [&'static str],
}

const KNOWN_HOSTS: [KnownHost; 2] = [
    KnownHost {
        variable: ANTHROPIC_KEY,
        name: "anthropic",
        dialect: "anthropic-messages",
        base_url: "https://api.anthropic.com/v1",
        models: &["claude-*"],
    },
    KnownHost {
        variable: OPENAI_KEY,
        name: "openai",
        dialect: "openai-chat",
        base_url: "https://api.openai.com/v1",
        models: &["gpt-*", "o*"],
    },
];

/// The config without a file.
pub(crate) fn config(environment: &Environment) -> Result<(Config, Vec<Problem>), Problem> {
    let store = default_store(environment)
        .map_err(|why| Problem::without_position("environment", Severity::Error, why))?;
    let (backend, warnings) = back_ends(environment);
    let config = Config {
        listen: DEFAULT_LISTEN,
        store,
        hosts: Vec::new(),
        backend,
        keys: Vec::new(),
        approvals: ApprovalConfig::default(),
        record: RecordConfig::default(),
        limits: Limits::default(),
    };
    Ok((config, warnings))
}

/// The database in the platform's data folder.
pub(crate) fn default_store(environment: &Environment) -> Result<StoreUrl, String> {
    let folder = environment.data_folder().ok_or_else(|| {
        let variable = if cfg!(windows) { "LOCALAPPDATA" } else { "HOME" };
        format!("no folder for data: set {variable}, or write `store = \"sqlite:PATH\"` in the config")
    })?;
    Ok(StoreUrl::SqliteFile(folder.join("toolgate.db")))
}

/// The back ends: the demo model, every known host with a key, and the agent.
pub(crate) fn back_ends(environment: &Environment) -> (BackendConfig, Vec<Problem>) {
    let mut backend = BackendConfig {
        models: vec![ModelRoute {
            pattern: ModelPattern::new("demo"),
            targets: vec![Target { via: Via::Demo, model: None }],
            tools: Tools::Native,
        }],
        ..BackendConfig::default()
    };
    let mut warnings = Vec::new();
    for host in KNOWN_HOSTS {
        let Some(key) = environment.variable(host.variable) else { continue };
        let key = key.trim();
        if !is_key(key) {
            let problem =
                format!("{} is not a valid key: check that it was copied completely", host.variable);
            warnings.push(Problem::without_position("environment", Severity::Warning, problem));
            continue;
        }
        let mut upstream = UpstreamConfig::new(host.name, host.dialect, Uri::from_static(host.base_url));
        upstream.api_key = Some(SecretString::from(key));
        backend.upstreams.push(upstream);
        backend.models.extend(host.models.iter().map(|pattern| ModelRoute {
            pattern: ModelPattern::new(*pattern),
            targets: vec![Target { via: Via::Upstream(UpstreamName::new(host.name)), model: None }],
            tools: Tools::Native,
        }));
    }
    if let Some(agent) = find_agent(environment) {
        backend.models.push(ModelRoute {
            pattern: ModelPattern::new(AGENT_MODEL),
            targets: vec![Target { via: Via::Agent(agent.name.clone()), model: None }],
            tools: Tools::Native,
        });
        backend.agents.push(agent);
    }
    (backend, warnings)
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic())
}

/// Claude Code, if it is on the PATH.
fn find_agent(environment: &Environment) -> Option<AgentConfig> {
    let program = environment.program(AGENT_PROGRAM)?;
    let folder = environment.data_folder()?.join("agents").join(AGENT_PROGRAM);
    let keys = AGENT_KEYS.iter().filter_map(|name| Some((*name, environment.variable(name)?)));
    let keys =
        keys.map(|(name, key)| (name.to_owned(), key.trim().to_owned())).filter(|(_, key)| is_key(key));
    let env: Vec<(String, SecretString)> = keys.map(|(name, key)| (name, SecretString::from(key))).collect();
    // Without a key the agent cannot reply, so no process is kept warm.
    let warm = if env.is_empty() { 0 } else { PoolSize::default().warm };
    let mut agent = AgentConfig::new(AGENT_PROGRAM, program, folder);
    agent.name = AgentName::new(AGENT_PROGRAM);
    agent.env = env;
    agent.pool.warm = warm;
    Some(agent)
}
