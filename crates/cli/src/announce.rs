//! The message that the gateway prints when it is ready: its address, config, store, models and a command to try.

use std::io::{self, Write};
use std::net::SocketAddr;

use toolgate_backend::ModelPattern;
use toolgate_backend::config::{AgentModel, AgentName, BackendConfig, ModelRoute, Tools, Via};
use toolgate_state::StoreUrl;

use crate::config::{ANTHROPIC_KEY, Config, ConfigSource, Loaded, OPENAI_KEY};
use crate::environment::Environment;

/// Prints the message. The address comes first, because scripts look for it.
pub(crate) fn write(
    loaded: &Loaded,
    address: SocketAddr,
    console: &str,
    environment: &Environment,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "toolgate {} ready at http://{address}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "  config  {}", source(&loaded.source))?;
    writeln!(out, "  store   {}", store(&loaded.config.store))?;
    writeln!(out, "  console {console}")?;
    for (index, route) in loaded.config.backend.models.iter().enumerate() {
        let label = if index == 0 { "models" } else { "" };
        writeln!(
            out,
            "  {label:<7} {:<12} {}",
            route.pattern.as_str(),
            answered_by(route, &loaded.config.backend)
        )?;
    }
    if loaded.source == ConfigSource::BuiltIn {
        for (variable, models) in [(ANTHROPIC_KEY, "claude-*"), (OPENAI_KEY, "gpt-* and o*")] {
            if environment.variable(variable).is_none() {
                writeln!(out, "          {models}: set {variable} to use them")?;
            }
        }
    }
    writeln!(out, "\nTry it:\n  {}\n", curl(&loaded.config, address))
}

/// Where the config came from.
pub(crate) fn source(source: &ConfigSource) -> String {
    match source {
        ConfigSource::File(path) => path.display().to_string(),
        ConfigSource::BuiltIn => "no file, built-in settings".to_owned(),
    }
}

/// Where the store is.
pub(crate) fn store(store: &StoreUrl) -> String {
    match store {
        StoreUrl::Memory | StoreUrl::SqliteMemory => "in memory, lost when toolgate ends".to_owned(),
        StoreUrl::SqliteFile(path) => path.display().to_string(),
    }
}

/// Who answers for a model.
pub(crate) fn answered_by(route: &ModelRoute, backend: &BackendConfig) -> String {
    let answerers: Vec<String> = route
        .targets
        .iter()
        .map(|target| match &target.via {
            Via::Demo => "built in".to_owned(),
            Via::Agent(name) => agent(name, backend),
            Via::Upstream(name) => {
                let host = backend.upstreams.iter().find(|upstream| upstream.name == *name);
                let url = host.map(|host| format!(" ({})", host.base_url)).unwrap_or_default();
                let renamed = target.model.as_ref().map(|model| format!(" as {model}")).unwrap_or_default();
                format!("{name}{renamed}{url}")
            }
        })
        .collect();
    let tools = match route.tools {
        Tools::Native => "",
        Tools::Prompted(_) => ", tools in the prompt",
    };
    answerers.join(", then ") + tools
}

fn agent(name: &AgentName, backend: &BackendConfig) -> String {
    let Some(config) = backend.agents.iter().find(|agent| agent.name == *name) else {
        return name.to_string();
    };
    let program = config.program.display();
    match &config.model {
        AgentModel::Gateway(model) => format!("{name} ({program}), using the model {model}"),
        AgentModel::Default if config.has_own_host() => format!("{name} ({program})"),
        AgentModel::Default => format!("{name} ({program}), without a key: see `toolgate doctor`"),
    }
}

fn curl(config: &Config, address: SocketAddr) -> String {
    let names = config.backend.models.iter().map(|route| &route.pattern).filter(|pattern| pattern.is_exact());
    let model = names.map(ModelPattern::as_str).next().unwrap_or("MODEL");
    let key = if config.keys.is_empty() { "" } else { " -H 'x-api-key: YOUR-KEY'" };
    format!(
        "curl http://{address}/v1/messages -H 'content-type: application/json'{key} \
         -d '{{\"model\":\"{model}\",\"max_tokens\":100,\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'"
    )
}
