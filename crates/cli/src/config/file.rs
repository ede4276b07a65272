//! The whole config file as it is written: every section read on its own, names not yet looked up.

use std::net::SocketAddr;

use toml::de::DeTable;
use toolgate_backend::config::UpstreamConfig;
use toolgate_gateway::approval::ApprovalConfig;
use toolgate_gateway::config::{Key, Limits};
use toolgate_state::StoreUrl;

use super::agent::AgentEntry;
use super::listen::parse_listen;
use super::model::ModelEntry;
use super::problem::{Placed, Reading};
use super::section::{ListForm, Section};
use super::{agent, approvals, caller, later, limits, model, upstream};

/// The sections of one file. What could not be read is missing here and reported.
pub(crate) struct ConfigFile {
    pub(crate) listen: Option<Placed<SocketAddr>>,
    pub(crate) store: Option<StoreUrl>,
    pub(crate) hosts: Vec<String>,
    pub(crate) upstreams: Vec<(Placed<String>, Option<UpstreamConfig>)>,
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) agents: Vec<AgentEntry>,
    pub(crate) approvals: ApprovalConfig,
    pub(crate) limits: Limits,
    pub(crate) keys: Vec<Key>,
}

/// Reads the text; None where it is no TOML.
pub(crate) fn read(text: &str, reading: &mut Reading<'_>) -> Option<ConfigFile> {
    let (table, syntax_errors) = DeTable::parse_recoverable(text);
    let mut last_line = 0;
    for error in &syntax_errors {
        let place = reading.place(&error.span().unwrap_or(0..0));
        // One slip often gives several complaints about the same line; the first says it best.
        if place.line != last_line {
            reading.error(place, syntax_message(text, error));
        }
        last_line = place.line;
    }
    if !syntax_errors.is_empty() {
        return None;
    }
    Some(read_sections(&Section::root(&table, reading), reading))
}

fn syntax_message(text: &str, error: &toml::de::Error) -> String {
    let written = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    match error.message() {
        "duplicate key" => format!("`{written}` is written twice: keep one of the two"),
        other => format!("this is not TOML: {other}"),
    }
}

fn read_sections(root: &Section<'_>, reading: &mut Reading<'_>) -> ConfigFile {
    let known =
        ["listen", "store", "hosts", "limits", "upstreams", "agents", "models", "mcp", "approvals", "keys"];
    root.expect_keys(&known, reading);
    let upstreams = root.tables("upstreams", reading);
    let agents = root.tables("agents", reading);
    later::read(root, reading);
    let models = root.tables("models", reading);
    ConfigFile {
        listen: read_listen(root, reading),
        store: read_store(root, reading),
        hosts: read_hosts(root, reading),
        upstreams: upstreams
            .into_iter()
            .map(|(name, section)| {
                let upstream = upstream::read(&name, &section, reading);
                (name, upstream)
            })
            .collect(),
        models: models
            .into_iter()
            .filter_map(|(name, section)| model::read(&name, &section, reading))
            .collect(),
        agents: agents.into_iter().map(|(name, section)| agent::read(name, &section, reading)).collect(),
        approvals: approvals::read(root, reading),
        limits: limits::read(root, reading),
        keys: caller::read_all(&root.table_list("keys", reading), reading),
    }
}

fn read_listen(root: &Section<'_>, reading: &mut Reading<'_>) -> Option<Placed<SocketAddr>> {
    let written = root.text("listen", "127.0.0.1:8787", reading)?;
    match parse_listen(&written.value) {
        Ok(value) => Some(Placed { value, place: written.place }),
        Err(why) => {
            reading.error(written.place, why);
            None
        }
    }
}

fn read_store(root: &Section<'_>, reading: &mut Reading<'_>) -> Option<StoreUrl> {
    let written = root.text("store", "sqlite:toolgate.db", reading)?;
    match written.value.parse() {
        Ok(StoreUrl::SqliteFile(path)) => Some(StoreUrl::SqliteFile(reading.beside_the_file(path))),
        Ok(in_memory) => Some(in_memory),
        Err(why) => {
            let why: toolgate_state::StoreUrlError = why;
            reading.error(written.place, format!("`store`: {why}"));
            None
        }
    }
}

fn read_hosts(root: &Section<'_>, reading: &mut Reading<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for host in root.texts("hosts", ListForm::Many, reading).unwrap_or_default() {
        match host.value.parse::<http::uri::Authority>() {
            Ok(authority) if !authority.as_str().contains('@') => hosts.push(host.value),
            _ => reading.error(
                host.place,
                format!(
                    "\"{}\" is no host name: write it as in \"gate.example.com\", without https:// or a path",
                    host.value
                ),
            ),
        }
    }
    hosts
}
