//! The chosen profile of every upstream, for `toolgate check`.

use std::io::{self, Write};

use toolgate_backend::config::{BackendConfig, UpstreamConfig, Via};
use toolgate_dialect::host::Choice;

/// Prints each upstream's profile and why it was chosen, then the rules for each model's name there.
pub(crate) fn print(backend: &BackendConfig, out: &mut dyn Write) -> io::Result<()> {
    for upstream in &backend.upstreams {
        writeln!(out, "upstream {}: {}", upstream.name, describe(upstream))?;
        for (alias, model) in targets(backend, upstream) {
            let rules = match upstream.facts.family(model) {
                Some(family) => format!("rules of {}", family.trim_end_matches('$')),
                None => "no rules for this model".to_owned(),
            };
            writeln!(out, "  {alias} is {model} there: {rules}")?;
        }
    }
    Ok(())
}

fn describe(upstream: &UpstreamConfig) -> String {
    let host = upstream.base_url.host().unwrap_or_default();
    match (upstream.facts.name(), upstream.facts.choice()) {
        (Some(name), Choice::Configured) => format!("profile {name}, as configured"),
        (Some(name), Choice::Url | Choice::Unknown) => format!("profile {name}, because of {host}"),
        (None, _) => {
            format!("no profile: {host} is unknown, so it gets the most widely accepted form (set `profile`)")
        }
    }
}

/// The models of this upstream that have a name of their own there.
fn targets<'c>(
    backend: &'c BackendConfig,
    upstream: &'c UpstreamConfig,
) -> impl Iterator<Item = (String, &'c str)> {
    backend.models.iter().flat_map(move |route| {
        let here = route.targets.iter().filter(move |target| match &target.via {
            Via::Upstream(name) => *name == upstream.name,
            Via::Agent(_) | Via::Demo => false,
        });
        here.filter_map(|target| Some((route.pattern.to_string(), target.model.as_deref()?)))
    })
}
