//! Toolify's config in our words, with a comment wherever something is different or has no equivalent.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::toolify::{Default, Entry, Features, Service, Toolify};
use crate::keys::hex;

/// Who answers for everything under `features.model_passthrough`.
const PASSTHROUGH_SERVICE: &str = "openai";

/// The config as a file.
pub(super) fn config(toolify: &Toolify, source: &str) -> String {
    let mut out = Out(String::new());
    out.comment(&format!(
        "Imported from {source} by `toolgate import toolify`. Every key: docs/configuration.md."
    ));
    listen(toolify, &mut out);
    general_remarks(toolify, &mut out);
    for service in &toolify.services {
        upstream(service, toolify, &mut out);
    }
    models(toolify, &mut out);
    keys(&toolify.keys, &mut out);
    out.0
}

struct Out(String);

impl Out {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            // A control character would end the comment or make the file unreadable.
            let shown: String = line.chars().filter(|letter| !letter.is_control()).collect();
            self.line(format!("# {shown}").trim_end());
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        let line = format!("{key} = {}", quoted(value));
        self.line(&line);
    }
}

fn quoted(value: &str) -> String {
    toml::Value::from(value).to_string()
}

fn listen(toolify: &Toolify, out: &mut Out) {
    let host = if toolify.host == "localhost" { "127.0.0.1" } else { toolify.host.as_str() };
    let address = host.parse::<IpAddr>();
    let is_local = address.as_ref().is_ok_and(IpAddr::is_loopback);
    let host = match address {
        Ok(_) if toolify.keys.is_empty() && !is_local => {
            out.comment("There are no keys, so only this machine may call: see `toolgate keys new NAME`.");
            "127.0.0.1".to_owned()
        }
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(address)) => address.to_string(),
        Err(_) => {
            out.comment(&format!("server.host was {host}, which is no IP address."));
            "127.0.0.1".to_owned()
        }
    };
    out.set("listen", &format!("{host}:{}", toolify.port));
    if !is_local {
        out.comment("If clients call this machine by a name, list it: hosts = [\"gate.example.com\"]");
    }
}

fn general_remarks(toolify: &Toolify, out: &mut Out) {
    let Features {
        log_level,
        convert_developer,
        key_passthrough,
        // These are said where they apply.
        function_calling: _,
        prompt_template: _,
        model_passthrough: _,
        retries: _,
        retry_template: _,
    } = &toolify.features;
    if let Some(level) = log_level {
        let ours = match level.to_ascii_uppercase().as_str() {
            "DEBUG" => "debug",
            "WARNING" => "warn",
            "ERROR" | "CRITICAL" => "error",
            "DISABLED" => "off",
            _ => "info",
        };
        out.comment(&format!("features.log_level: start with TOOLGATE_LOG={ours} in the environment."));
    }
    if *convert_developer == Some(true) {
        out.comment("features.convert_developer_to_system: no equivalent; roles go to the host as the client named them.");
    }
    if *key_passthrough {
        out.comment("features.key_passthrough: no equivalent; a caller's key never leaves the gateway, each host gets its own.");
    }
    for key in &toolify.unknown {
        out.comment(&format!("line {}, {}: no equivalent.", key.place.line, key.value));
    }
}

fn upstream(service: &Service, toolify: &Toolify, out: &mut Out) {
    out.line("");
    if let Some(description) = &service.description {
        out.comment(description);
    }
    out.line(&format!("[upstreams.{}]", quoted(&service.name)));
    out.set("dialect", "openai-chat");
    out.set("base_url", &service.base_url);
    out.set("api_key", &service.api_key);
    out.comment("Better kept out of this file: api_key = \"env:NAME\" or \"file:PATH\"");
    if let Some(seconds) = toolify.timeout {
        out.line(&format!("timeouts = {{ first_byte = \"{seconds}s\", idle = \"{seconds}s\" }}"));
    }
}

fn models(toolify: &Toolify, out: &mut Out) {
    if toolify.features.model_passthrough {
        passthrough(toolify, out);
        return;
    }
    let mut written: Vec<&str> = Vec::new();
    for service in &toolify.services {
        for entry in &service.models {
            let name = entry.alias.as_ref().unwrap_or(&entry.model);
            if !written.contains(&name.as_str()) {
                written.push(name);
                model(name, toolify, out);
            }
        }
    }
    if let Some(service) = toolify.services.iter().find(|service| service.default == Default::Yes) {
        out.line("");
        out.comment("Every other name: this was the default service.");
        section("*", &[service.name.as_str()], None, &toolify.features, out);
    }
}

/// One name that clients use. An alias may stand for several models.
fn model(name: &str, toolify: &Toolify, out: &mut Out) {
    let entries: Vec<(&str, &Entry)> = toolify
        .services
        .iter()
        .flat_map(|service| service.models.iter().map(|entry| (service.name.as_str(), entry)))
        .filter(|(_, entry)| entry.alias.as_ref().unwrap_or(&entry.model) == name)
        .collect();
    let Some((_, first)) = entries.first() else { return };
    let (same, others): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, entry)| entry.model == first.model);
    let hosts: Vec<&str> = same.iter().map(|(service, _)| *service).collect();
    out.line("");
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|(_, entry)| entry.model.as_str()).collect();
        out.comment(&format!(
            "Toolify chose among {} and {} at random; here the first always answers.",
            first.model,
            names.join(", ")
        ));
    }
    section(name, &hosts, first.alias.as_ref().map(|_| first.model.as_str()), &toolify.features, out);
}

fn passthrough(toolify: &Toolify, out: &mut Out) {
    let named = toolify.services.iter().find(|service| service.name == PASSTHROUGH_SERVICE);
    let Some(service) = named.or(toolify.services.first()) else { return };
    out.line("");
    out.comment("features.model_passthrough: every name goes to one host.");
    section("*", &[service.name.as_str()], None, &toolify.features, out);
}

fn section(name: &str, hosts: &[&str], model: Option<&str>, features: &Features, out: &mut Out) {
    out.line(&format!("[models.{}]", quoted(name)));
    let quoted_hosts: Vec<String> = hosts.iter().map(|host| quoted(host)).collect();
    match quoted_hosts.as_slice() {
        [only] => out.line(&format!("upstream = {only}")),
        several => out.line(&format!("upstream = [{}]", several.join(", "))),
    }
    if let Some(model) = model {
        out.set("model", model);
    }
    if !features.function_calling {
        return;
    }
    out.set("tools", "prompted");
    if let Some(template) = &features.prompt_template {
        out.set("prompted.prompt_template", template);
    }
    if let Some(retries) = features.retries {
        out.line(&format!("prompted.retries = {retries}"));
    }
    if let Some(template) = &features.retry_template {
        // Toolify fills it in as a Python format string, where a brace is written twice.
        out.set("prompted.retry_template", &template.replace("{{", "{").replace("}}", "}"));
    }
}

fn keys(keys: &[String], out: &mut Out) {
    for (index, key) in keys.iter().enumerate() {
        out.line("");
        out.line("[[keys]]");
        out.set("name", &format!("toolify-{}", index + 1));
        out.set("sha256", &hex(&Sha256::digest(key.as_bytes())));
        out.comment(&format!("Number {} of allowed_keys. Its caller goes on using it.", index + 1));
    }
}
