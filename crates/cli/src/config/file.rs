//! Reads the sections of a config file. References between sections are resolved later.

use std::net::SocketAddr;

use toml::de::DeTable;
use toolgate_backend::config::UpstreamConfig;
use toolgate_gateway::approval::ApprovalConfig;
use toolgate_gateway::config::{Key, Limits, RecordConfig};
use toolgate_state::StoreUrl;

use super::agent::AgentEntry;
use super::listen::parse_listen;
use super::model::ModelEntry;
use super::problem::{Located, ReadContext};
use super::section::{ListForm, Section};
use super::{agent, approvals, keys, limits, mcp, model, record, upstream};

/// The sections of a file. Values with problems are reported and missing here.
pub(crate) struct ConfigFile {
    pub(crate) listen: Option<Located<SocketAddr>>,
    pub(crate) store: Option<StoreUrl>,
    pub(crate) hosts: Vec<Located<String>>,
    pub(crate) upstreams: Vec<(Located<String>, Option<UpstreamConfig>)>,
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) agents: Vec<AgentEntry>,
    pub(crate) approvals: ApprovalConfig,
    pub(crate) record: RecordConfig,
    pub(crate) limits: Limits,
    pub(crate) keys: Vec<Key>,
}

/// Reads the text; `None` if it is not TOML.
pub(crate) fn read(text: &str, context: &mut ReadContext<'_>) -> Option<ConfigFile> {
    with_root(text, context, read_sections)
}

/// Reads only the address and the store; `None` if the text is not TOML.
pub(crate) fn read_location(
    text: &str,
    context: &mut ReadContext<'_>,
) -> Option<(Option<SocketAddr>, Option<StoreUrl>)> {
    with_root(text, context, |root, context| {
        (read_listen(root, context).map(|listen| listen.value), read_store(root, context))
    })
}

fn with_root<T>(
    text: &str,
    context: &mut ReadContext<'_>,
    read: impl FnOnce(&Section<'_>, &mut ReadContext<'_>) -> T,
) -> Option<T> {
    let (table, syntax_errors) = DeTable::parse_recoverable(text);
    let mut last_line = 0;
    for error in &syntax_errors {
        let position = context.position(&error.span().unwrap_or(0..0));
        // One mistake often causes several errors on a line; the first is the most useful.
        if position.line != last_line {
            context.error(position, syntax_message(text, error));
        }
        last_line = position.line;
    }
    if !syntax_errors.is_empty() {
        return None;
    }
    Some(read(&Section::root(&table, context), context))
}

fn syntax_message(text: &str, error: &toml::de::Error) -> String {
    let written = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    match error.message() {
        "duplicate key" => format!("`{written}` is defined twice: remove one"),
        other => format!("this is not TOML: {other}"),
    }
}

fn read_sections(root: &Section<'_>, context: &mut ReadContext<'_>) -> ConfigFile {
    let known = [
        "listen",
        "store",
        "hosts",
        "limits",
        "upstreams",
        "agents",
        "models",
        "mcp",
        "approvals",
        "record",
        "keys",
    ];
    root.expect_keys(&known, context);
    let upstreams = root.tables("upstreams", context);
    let agents = root.tables("agents", context);
    mcp::read(root, context);
    let models = root.tables("models", context);
    ConfigFile {
        listen: read_listen(root, context),
        store: read_store(root, context),
        hosts: read_hosts(root, context),
        upstreams: upstreams
            .into_iter()
            .map(|(name, section)| {
                let upstream = upstream::read(&name, &section, context);
                (name, upstream)
            })
            .collect(),
        models: models
            .into_iter()
            .filter_map(|(name, section)| model::read(&name, &section, context))
            .collect(),
        agents: agents.into_iter().map(|(name, section)| agent::read(name, &section, context)).collect(),
        approvals: approvals::read(root, context),
        record: record::read(root, context),
        limits: limits::read(root, context),
        keys: keys::read_all(&root.table_list("keys", context), context),
    }
}

fn read_listen(root: &Section<'_>, context: &mut ReadContext<'_>) -> Option<Located<SocketAddr>> {
    let written = root.text("listen", "127.0.0.1:8787", context)?;
    match parse_listen(&written.value) {
        Ok(value) => Some(Located { value, position: written.position }),
        Err(why) => {
            context.error(written.position, why);
            None
        }
    }
}

fn read_store(root: &Section<'_>, context: &mut ReadContext<'_>) -> Option<StoreUrl> {
    let written = root.text("store", "sqlite:toolgate.db", context)?;
    match written.value.parse() {
        Ok(StoreUrl::SqliteFile(path)) => Some(StoreUrl::SqliteFile(context.relative_to_file(path))),
        Ok(in_memory) => Some(in_memory),
        Err(why) => {
            let why: toolgate_state::StoreUrlError = why;
            context.error(written.position, format!("`store`: {why}"));
            None
        }
    }
}

fn read_hosts(root: &Section<'_>, context: &mut ReadContext<'_>) -> Vec<Located<String>> {
    let mut hosts = Vec::new();
    for host in root.texts("hosts", ListForm::Many, context).unwrap_or_default() {
        match host.value.parse::<http::uri::Authority>() {
            Ok(authority) if !authority.as_str().contains('@') => hosts.push(host),
            _ => context.error(
                host.position,
                format!(
                    "\"{}\" is not a host name: write \"gate.example.com\", without https:// or a path",
                    host.value
                ),
            ),
        }
    }
    hosts
}
