//! Resolves references between sections and checks the config as a whole.

use toolgate_backend::ModelPattern;
use toolgate_backend::config::{AgentName, BackendConfig, ModelRoute, Target, UpstreamName, Via};
use toolgate_state::StoreUrl;

use super::file::ConfigFile;
use super::listen::{DEFAULT_LISTEN, error_without_keys};
use super::model::{AnsweredBy, ModelEntry};
use super::nearest::suggestion;
use super::problem::{Located, ReadContext};
use super::{Config, discover};

/// Resolves all references; `None` after reporting a problem.
pub(crate) fn resolve(file: ConfigFile, context: &mut ReadContext<'_>) -> Option<Config> {
    let names: Vec<&str> = file.upstreams.iter().map(|(name, _)| name.value.as_str()).collect();
    let agents: Vec<&str> = file.agents.iter().map(|agent| agent.name.value.as_str()).collect();
    let routes: Vec<ModelRoute> =
        file.models.iter().map(|entry| route(entry, &names, &agents, context)).collect();
    check_agents(&file, context);
    warn_about_unused_upstreams(&file, context);
    check_listen_address(&file, context);

    let has_no_back_end = file.upstreams.is_empty() && file.models.is_empty() && file.agents.is_empty();
    let backend = if has_no_back_end {
        discover::back_ends(context.environment()).0
    } else {
        BackendConfig {
            upstreams: file.upstreams.into_iter().filter_map(|(_, upstream)| upstream).collect(),
            agents: file.agents.into_iter().filter_map(|agent| agent.config).collect(),
            models: routes,
            ..BackendConfig::default()
        }
    };
    let store = file.store.or_else(|| default_store(context))?;
    Some(Config {
        listen: file.listen.map_or(DEFAULT_LISTEN, |listen| listen.value),
        store,
        hosts: file.hosts.into_iter().map(|host| host.value).collect(),
        backend,
        keys: file.keys,
        approvals: file.approvals,
        record: file.record,
        limits: file.limits,
    })
}

/// The store without `store` in the config; `None` after reporting a problem.
pub(crate) fn default_store(context: &mut ReadContext<'_>) -> Option<StoreUrl> {
    let store = discover::default_store(context.environment());
    if let Err(why) = &store {
        context.error_in_file(why.clone());
    }
    store.ok()
}

fn route(
    entry: &ModelEntry,
    upstreams: &[&str],
    agents: &[&str],
    context: &mut ReadContext<'_>,
) -> ModelRoute {
    let model = entry.model.as_ref().map(|model| model.value.clone());
    let targets = match &entry.answered_by {
        AnsweredBy::Demo => vec![Target { via: Via::Demo, model: None }],
        AnsweredBy::Upstreams(names) => names
            .iter()
            .filter(|name| is_known(name, "upstream", upstreams, context))
            .map(|name| Target { via: Via::Upstream(UpstreamName::new(&name.value)), model: model.clone() })
            .collect(),
        AnsweredBy::Agent(name) => {
            is_known(name, "agent", agents, context);
            vec![Target { via: Via::Agent(AgentName::new(&name.value)), model }]
        }
    };
    ModelRoute { pattern: ModelPattern::new(&entry.pattern.value), targets, tools: entry.tools.clone() }
}

fn is_known(name: &Located<String>, kind: &str, known: &[&str], context: &mut ReadContext<'_>) -> bool {
    let found = known.contains(&name.value.as_str());
    if !found {
        let hint = suggestion(&name.value, known.iter().copied(), &format!("{kind}s"));
        let problem = format!("unknown {kind} `{0}`: add [{kind}s.{0}]{hint}", name.value);
        context.error(name.position, problem);
    }
    found
}

/// An agent may use any model of this gateway except an agent's: agents could call each other in a loop.
fn check_agents(file: &ConfigFile, context: &mut ReadContext<'_>) {
    for agent in &file.agents {
        let name = &agent.name.value;
        let uses = |entry: &&ModelEntry| matches!(&entry.answered_by, AnsweredBy::Agent(used) if used.value == *name);
        if file.models.iter().find(uses).is_none() {
            let hint = format!("add [models.\"…\"] with `agent = \"{name}\"`");
            context.warning(agent.name.position, format!("no model uses [agents.{name}]: {hint}"));
        }
        let Some(model) = &agent.model else { continue };
        let matches = |entry: &&ModelEntry| ModelPattern::new(&entry.pattern.value).matches(&model.value);
        let exact = file.models.iter().find(|entry| entry.pattern.value == model.value);
        match exact.or_else(|| file.models.iter().find(matches)) {
            None => {
                let known = file.models.iter().map(|entry| entry.pattern.value.as_str());
                let hint = suggestion(&model.value, known, "models");
                let problem = format!("unknown model `{0}`: add [models.\"{0}\"]{hint}", model.value);
                context.error(model.position, problem);
            }
            Some(ModelEntry { answered_by: AnsweredBy::Agent(_), .. }) => {
                let problem = format!(
                    "`{}` is served by an agent: an agent cannot use another agent as its model",
                    model.value
                );
                context.error(model.position, problem);
            }
            Some(_) => {}
        }
    }
}

fn warn_about_unused_upstreams(file: &ConfigFile, context: &mut ReadContext<'_>) {
    let used: Vec<&str> = file
        .models
        .iter()
        .flat_map(|entry| match &entry.answered_by {
            AnsweredBy::Upstreams(names) => names.as_slice(),
            AnsweredBy::Agent(_) | AnsweredBy::Demo => &[],
        })
        .map(|name| name.value.as_str())
        .collect();
    for (name, _) in &file.upstreams {
        if !used.contains(&name.value.as_str()) {
            let hint = format!("add [models.\"…\"] with `upstream = \"{}\"`", name.value);
            context.warning(name.position, format!("no model uses [upstreams.{}]: {hint}", name.value));
        }
    }
}

fn check_listen_address(file: &ConfigFile, context: &mut ReadContext<'_>) {
    let public = file.listen.as_ref().filter(|listen| !listen.value.ip().is_loopback());
    let Some(listen) = public else {
        if let (Some(host), []) = (file.hosts.first(), file.keys.as_slice()) {
            context.warning(
                host.position,
                "there are no keys: behind a proxy on this machine, anybody could use your models; \
                 create a key with `toolgate keys new NAME` and add it to the config",
            );
        }
        return;
    };
    if file.keys.is_empty() {
        context.error(listen.position, error_without_keys(listen.value));
    } else if file.hosts.is_empty() && listen.value.ip().is_unspecified() {
        context.warning(
            listen.position,
            "other machines can only use this machine's IP addresses: to allow a name, \
             add `hosts = [\"gate.example.com\"]`",
        );
    }
}
