//! `profile`, `family` and `facts` of `[upstreams.NAME]`: what the host accepts.

use toml::de::DeValue;
use toolgate_backend::config::UpstreamConfig;
use toolgate_dialect::host::{Facts, HostFacts, UnknownFact};

use super::nearest::suggestion;
use super::problem::ReadContext;
use super::section::{Field, Section};

/// Sets what the config says about the host.
pub(crate) fn read(section: &Section<'_>, upstream: &mut UpstreamConfig, context: &mut ReadContext<'_>) {
    if let Some(name) = section.text("profile", "groq", context) {
        if let Some(facts) = upstream.facts.named_like(&name.value) {
            upstream.facts = facts;
        } else {
            let hint = suggestion(&name.value, HostFacts::names(), "profiles");
            context.error(name.position, format!("unknown profile `{}`{hint}", name.value));
        }
    }
    if let Some(family) = section.text("family", "gpt-5", context) {
        if upstream.facts.family(&family.value).is_none() {
            context.error(
                family.position,
                format!("unknown family `{}`: write a model's name, such as \"gpt-5\"", family.value),
            );
        }
        upstream.facts = upstream.facts.clone().of_family(&family.value);
    }
    if let Some(facts) = section.table("facts", context) {
        for fact in facts.fields() {
            set(fact, &mut upstream.facts, context);
        }
    }
}

fn set(field: &Field<'_>, facts: &mut HostFacts, context: &mut ReadContext<'_>) {
    let Some(text) = text(field.value) else {
        return context
            .error(field.position, format!("`{}` must be a string, a number or a boolean", field.key));
    };
    match facts.set(field.key, &text) {
        Ok(()) => {}
        Err(UnknownFact::Key) => {
            let hint = suggestion(field.key, Facts::KEYS.iter().copied(), "facts");
            context.error(field.position, format!("unknown fact `{}`{hint}", field.key));
        }
        Err(UnknownFact::Value(allowed)) => {
            context.error(field.position, format!("`{}` cannot be `{text}`; allowed: {allowed}", field.key));
        }
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(digits) => Some(digits.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests;
