//! Writes Toolify's config as a toolgate config, with comments on what differs or has no equivalent.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::toolify::{DefaultService, Features, ModelListing, Service, Toolify};
use crate::keys::hex;

/// The service that gets all requests under `features.model_passthrough`.
const PASSTHROUGH_SERVICE: &str = "openai";

/// The text of the config file.
pub(super) fn config(toolify: &Toolify, source: &str) -> String {
    let mut out = TomlText(String::new());
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

struct TomlText(String);

impl TomlText {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            // A control character would end the comment or be invalid TOML.
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

fn listen(toolify: &Toolify, out: &mut TomlText) {
    let host = if toolify.host == "localhost" { "127.0.0.1" } else { toolify.host.as_str() };
    let address = host.parse::<IpAddr>();
    let is_local = address.as_ref().is_ok_and(IpAddr::is_loopback);
    let host = match address {
        Ok(_) if toolify.keys.is_empty() && !is_local => {
            out.comment("There are no keys, so only this machine may connect: see `toolgate keys new NAME`.");
            "127.0.0.1".to_owned()
        }
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(address)) => address.to_string(),
        Err(_) => {
            out.comment(&format!("server.host was {host}, which is not an IP address."));
            "127.0.0.1".to_owned()
        }
    };
    out.set("listen", &format!("{host}:{}", toolify.port));
    if !is_local {
        out.comment("If clients connect to this machine by a name, list it: hosts = [\"gate.example.com\"]");
    }
}

fn general_remarks(toolify: &Toolify, out: &mut TomlText) {
    let Features {
        log_level,
        convert_developer,
        key_passthrough,
        // Written where they apply.
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
        out.comment(&format!("features.log_level: set TOOLGATE_LOG={ours} in the environment."));
    }
    if *convert_developer == Some(true) {
        out.comment("features.convert_developer_to_system: no equivalent; the host gets the roles that the client sent.");
    }
    if *key_passthrough {
        out.comment("features.key_passthrough: no equivalent; callers' keys are never sent to hosts, each host has its own key.");
    }
    for key in &toolify.unknown {
        out.comment(&format!("line {}, {}: no equivalent.", key.position.line, key.value));
    }
}

fn upstream(service: &Service, toolify: &Toolify, out: &mut TomlText) {
    out.line("");
    if let Some(description) = &service.description {
        out.comment(description);
    }
    out.line(&format!("[upstreams.{}]", quoted(&service.name)));
    out.set("dialect", "openai-chat");
    out.set("base_url", &service.base_url);
    out.set("api_key", &service.api_key);
    out.comment("Safer outside of this file: api_key = \"env:NAME\" or \"file:PATH\"");
    if let Some(seconds) = toolify.timeout {
        out.line(&format!("timeouts = {{ first_byte = \"{seconds}s\", idle = \"{seconds}s\" }}"));
    }
}

fn models(toolify: &Toolify, out: &mut TomlText) {
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
    if let Some(service) = toolify.services.iter().find(|service| service.default == DefaultService::Yes) {
        out.line("");
        out.comment("All other names go to the default service.");
        section("*", &[service.name.as_str()], None, &toolify.features, out);
    }
}

/// One name that clients use. Several models may share an alias.
fn model(name: &str, toolify: &Toolify, out: &mut TomlText) {
    let entries: Vec<(&str, &ModelListing)> = toolify
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
            "Toolify chose between {} and {} at random; toolgate always uses the first.",
            first.model,
            names.join(", ")
        ));
    }
    section(name, &hosts, first.alias.as_ref().map(|_| first.model.as_str()), &toolify.features, out);
}

fn passthrough(toolify: &Toolify, out: &mut TomlText) {
    let named = toolify.services.iter().find(|service| service.name == PASSTHROUGH_SERVICE);
    let Some(service) = named.or(toolify.services.first()) else { return };
    out.line("");
    out.comment("features.model_passthrough: all names go to one host.");
    section("*", &[service.name.as_str()], None, &toolify.features, out);
}

fn section(name: &str, hosts: &[&str], model: Option<&str>, features: &Features, out: &mut TomlText) {
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
        // In Toolify this is a Python format string, in which braces are doubled.
        out.set("prompted.retry_template", &template.replace("{{", "{").replace("}}", "}"));
    }
}

fn keys(keys: &[String], out: &mut TomlText) {
    for (index, key) in keys.iter().enumerate() {
        out.line("");
        out.line("[[keys]]");
        out.set("name", &format!("toolify-{}", index + 1));
        out.set("sha256", &hex(&Sha256::digest(key.as_bytes())));
        out.comment(&format!("Number {} of allowed_keys. The caller's key stays valid.", index + 1));
    }
}
