//! From the file as written to the config as used: names are looked up and the whole is checked.

use toolgate_backend::ModelPattern;
use toolgate_backend::config::{AgentName, BackendConfig, ModelRoute, Target, UpstreamName, Via};

use super::file::ConfigFile;
use super::listen::{DEFAULT_LISTEN, refusal_without_keys};
use super::model::{AnsweredBy, ModelEntry};
use super::nearest::suggestion;
use super::problem::{Placed, Reading};
use super::{Config, discover};

/// Looks every name up; None after reporting what is missing.
pub(crate) fn resolve(file: ConfigFile, reading: &mut Reading<'_>) -> Option<Config> {
    let names: Vec<&str> = file.upstreams.iter().map(|(name, _)| name.value.as_str()).collect();
    let agents: Vec<&str> = file.agents.iter().map(|agent| agent.name.value.as_str()).collect();
    let routes: Vec<ModelRoute> =
        file.models.iter().map(|entry| route(entry, &names, &agents, reading)).collect();
    check_agents(&file, reading);
    warn_about_idle_upstreams(&file, reading);
    check_reach(&file, reading);

    let names_no_back_end = file.upstreams.is_empty() && file.models.is_empty() && file.agents.is_empty();
    let backend = if names_no_back_end {
        discover::back_ends(reading.environment()).0
    } else {
        BackendConfig {
            upstreams: file.upstreams.into_iter().filter_map(|(_, upstream)| upstream).collect(),
            agents: file.agents.into_iter().filter_map(|agent| agent.config).collect(),
            models: routes,
            ..BackendConfig::default()
        }
    };
    let store = file.store.or_else(|| {
        let store = discover::default_store(reading.environment());
        if let Err(why) = &store {
            reading.error_anywhere(why.clone());
        }
        store.ok()
    })?;
    Some(Config {
        listen: file.listen.map_or(DEFAULT_LISTEN, |listen| listen.value),
        store,
        hosts: file.hosts,
        backend,
        keys: file.keys,
        approvals: file.approvals,
        limits: file.limits,
    })
}

fn route(entry: &ModelEntry, upstreams: &[&str], agents: &[&str], reading: &mut Reading<'_>) -> ModelRoute {
    let model = entry.model.as_ref().map(|model| model.value.clone());
    let targets = match &entry.answered_by {
        AnsweredBy::Demo => vec![Target { via: Via::Demo, model: None }],
        AnsweredBy::Upstreams(names) => names
            .iter()
            .filter(|name| is_known(name, "upstream", upstreams, reading))
            .map(|name| Target { via: Via::Upstream(UpstreamName::new(&name.value)), model: model.clone() })
            .collect(),
        AnsweredBy::Agent(name) => {
            is_known(name, "agent", agents, reading);
            vec![Target { via: Via::Agent(AgentName::new(&name.value)), model }]
        }
    };
    ModelRoute { pattern: ModelPattern::new(&entry.pattern.value), targets, tools: entry.tools.clone() }
}

fn is_known(name: &Placed<String>, kind: &str, known: &[&str], reading: &mut Reading<'_>) -> bool {
    let found = known.contains(&name.value.as_str());
    if !found {
        let hint = suggestion(&name.value, known.iter().copied(), &format!("{kind}s"));
        let problem = format!("no {kind} is called `{0}`: add [{kind}s.{0}]{hint}", name.value);
        reading.error(name.place, problem);
    }
    found
}

/// An agent may think with any model of this gateway but an agent's: those would ask each other for ever.
fn check_agents(file: &ConfigFile, reading: &mut Reading<'_>) {
    for agent in &file.agents {
        let name = &agent.name.value;
        let uses = |entry: &&ModelEntry| matches!(&entry.answered_by, AnsweredBy::Agent(used) if used.value == *name);
        if file.models.iter().find(uses).is_none() {
            let hint = format!("add [models.\"…\"] with `agent = \"{name}\"`");
            reading.warning(agent.name.place, format!("no model uses [agents.{name}]: {hint}"));
        }
        let Some(model) = &agent.model else { continue };
        let matches = |entry: &&ModelEntry| ModelPattern::new(&entry.pattern.value).matches(&model.value);
        let exact = file.models.iter().find(|entry| entry.pattern.value == model.value);
        match exact.or_else(|| file.models.iter().find(matches)) {
            None => {
                let known = file.models.iter().map(|entry| entry.pattern.value.as_str());
                let hint = suggestion(&model.value, known, "models");
                let problem = format!("no model is called `{0}`: add [models.\"{0}\"]{hint}", model.value);
                reading.error(model.place, problem);
            }
            Some(ModelEntry { answered_by: AnsweredBy::Agent(_), .. }) => {
                let problem = format!(
                    "`{}` is answered by an agent: an agent needs a model to think with",
                    model.value
                );
                reading.error(model.place, problem);
            }
            Some(_) => {}
        }
    }
}

fn warn_about_idle_upstreams(file: &ConfigFile, reading: &mut Reading<'_>) {
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
            reading.warning(name.place, format!("no model uses [upstreams.{}]: {hint}", name.value));
        }
    }
}

fn check_reach(file: &ConfigFile, reading: &mut Reading<'_>) {
    let Some(listen) = &file.listen else { return };
    if listen.value.ip().is_loopback() {
        return;
    }
    if file.keys.is_empty() {
        reading.error(listen.place, refusal_without_keys(listen.value));
    } else if file.hosts.is_empty() && listen.value.ip().is_unspecified() {
        reading.warning(
            listen.place,
            "other machines can call this one by its addresses only: to let them use a name, \
             add `hosts = [\"gate.example.com\"]`",
        );
    }
}
